# SPDX-License-Identifier: Apache-2.0
"""Every refusal derived from the rows: status and full sentence, and which of two comes first."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from tests.support import (
    AN_ARRAY,
    FLOATS,
    RULES,
    TITLES,
    all_rows,
    arguments,
    dtypes_on,
    either,
    plan,
    refusal,
    refusal_of,
    rows,
)

import openaclnn
from openaclnn.reference.evaluation import numpy_dtype
from openaclnn.rows.table import PRODUCTS

INVALID, UNSUPPORTED = 161002, 561003
FOREIGN = {
    "INT8": np.int8, "INT32": np.int32, "UINT8": np.uint8, "INT16": np.int16,
    "UINT16": np.uint16, "UINT32": np.uint32, "INT64": np.int64, "UINT64": np.uint64,
    "BOOL": np.bool_, "COMPLEX64": np.complex64, "COMPLEX128": np.complex128,
}  # fmt: skip


def tensors():
    """Row x tensor parameter."""
    return [
        pytest.param(row.values[0], p, id=f"{row.id}-{p.name}")
        for row in rows()
        for p in row.values[0].tensors
    ]


# ---- one fault each ----


def none(op, named, parameter):
    """None, which C calls NULL, is neither an array nor a number, so it is a TypeError."""
    named[parameter.name] = None
    what = AN_ARRAY if parameter.kind == "tensor" else "a number"
    return TypeError, f"{op.name}: {parameter.name} must be {what}, but got None"


def product(op, named, key):
    openaclnn.set_product(key)
    titles = either(p.title for p in PRODUCTS if p.key in op.products)
    return UNSUPPORTED, f"{op.name}: the product must be {titles}, but is {TITLES[key]}"


def dtype(op, named, parameter, name="INT32", kind=np.int32, key="A2"):
    named[parameter.name] = named[parameter.name].astype(kind)
    allowed = either(dtypes_on(op, parameter, key))
    casts = parameter.role == "output" and op.output == "castable"
    hint = (
        "; OPENACLNN_PRODUCT=any accepts it" if name in (FLOATS if casts else op.computed) else ""
    )
    return INVALID, (
        f"{op.name}: {parameter.name} must have dtype {allowed} on {TITLES[key]}, "
        f"but got {name}{hint}"
    )


def rank(op, named, parameter, dims=9):
    named[parameter.name] = np.ones((1,) * dims, named[parameter.name].dtype)
    return INVALID, f"{op.name}: {parameter.name} must have at most 8 dimensions, but got {dims}"


def input_shape(op, named, parameter):
    named[parameter.name] = np.ones((2, 4), named[parameter.name].dtype)
    must = "have the shape of" if op.shapes == "same" else "broadcast with"
    first = op.input_tensors[0].name
    return INVALID, f"{op.name}: {parameter.name} must {must} {first} [2, 3], but got [2, 4]"


def output_shape(op, named, parameter):
    named[parameter.name] = np.ones((3, 2), named[parameter.name].dtype)
    same = f"shape of {op.input_tensors[0].name}"
    whose = same if op.shapes == "same" else "broadcast shape of the inputs"
    return INVALID, f"{op.name}: {parameter.name} must have the {whose} [2, 3], but got [3, 2]"


def rule(op, named, name):
    attributes, sentence = RULES[name]
    named.update(attributes)
    return INVALID, f"{op.name}: {sentence}"


def overlap_itself(op, named, parameter):
    x = named[parameter.name]
    named[parameter.name] = as_strided(x, (2, 3), (0, x.itemsize))
    return INVALID, (
        f"{op.name}: {parameter.name} must not overlap itself, "
        "but has shape [2, 3] with strides [0, 1]"
    )


def overlap(op, named, parameter, other):
    memory = np.ones(7, named[other.name].dtype)
    named[other.name] = memory[:6].reshape(2, 3)
    named[parameter.name] = memory[1:].reshape(2, 3)
    return INVALID, (
        f"{op.name}: {parameter.name} must be the same view as {other.name} "
        "or share no memory with it, but overlaps it"
    )


# ---- every fault at every place ----


@pytest.mark.parametrize("op", all_rows())
def test_none(op):
    for p in op.parameters:
        if p.required:
            named = arguments(op)
            expected = none(op, named, p)
            assert refusal(op, named) == expected


@pytest.mark.parametrize("key", TITLES)
@pytest.mark.parametrize("op", all_rows())
def test_products(op, key):
    if key not in op.products:
        named = arguments(op)
        expected = product(op, named, key)
        assert refusal(op, named) == expected
        return
    openaclnn.set_product(key)
    for name in dtypes_on(op, op.input_tensors[0], key):
        plan(op, arguments(op, dtype=name)).run()


@pytest.mark.parametrize(("op", "parameter"), tensors())
def test_dtypes(op, parameter):
    for key in op.products:
        openaclnn.set_product(key)
        wrong = FOREIGN | {
            d: numpy_dtype(d) for d in FLOATS if d not in dtypes_on(op, parameter, key)
        }
        for name, kind in wrong.items():
            named = arguments(op)
            expected = dtype(op, named, parameter, name, kind, key)
            assert refusal(op, named) == expected


@pytest.mark.parametrize(("op", "parameter"), tensors())
def test_equal_dtypes(op, parameter):
    head = op.input_tensors[0]
    rule = op.inputs if parameter.role == "input" else op.output
    if parameter is head or rule != "equal":
        return
    for name, other in itertools.permutations(op.dtypes, 2):
        named = arguments(op, dtype=name)
        named[parameter.name] = named[parameter.name].astype(numpy_dtype(other))
        assert refusal(op, named) == (
            INVALID,
            f"{op.name}: {parameter.name} must have the dtype of {head.name} {name}, "
            f"but got {other}",
        )


@pytest.mark.parametrize(("op", "parameter"), tensors())
def test_rank(op, parameter):
    for dims in (9, 25):
        named = arguments(op)
        expected = rank(op, named, parameter, dims)
        assert refusal(op, named) == expected
    named = arguments(op)
    named[parameter.name] = np.ones((1,) * 26, np.float32)
    sentence = f"{op.name}: {parameter.name} must have at most 8 dimensions, but got more than 25"
    assert refusal(op, named) == (INVALID, sentence)


@pytest.mark.parametrize(("op", "parameter"), tensors())
def test_shape(op, parameter):
    if parameter is op.input_tensors[0]:
        return
    named = arguments(op)
    fault = input_shape if parameter.role == "input" else output_shape
    expected = fault(op, named, parameter)
    assert refusal(op, named) == expected


@pytest.mark.parametrize("op", rows(lambda op: op.rules))
def test_rules(op):
    for name in op.rules:
        named = arguments(op)
        expected = rule(op, named, name)
        assert refusal(op, named) == expected


@pytest.mark.parametrize("op", rows())
def test_overlap(op):
    for out in op.outputs:
        named = arguments(op)
        expected = overlap_itself(op, named, out)
        assert refusal(op, named) == expected
        for other in op.tensors:
            if other is not out:
                named = arguments(op)
                expected = overlap(op, named, out, other)
                assert refusal(op, named) == expected


@pytest.mark.parametrize("op", rows())
def test_interleaved_views_do_not_overlap(op):
    named = arguments(op)
    for out in op.outputs:
        for other in op.input_tensors:
            if other is not out:
                memory = np.ones((2, 6), named[other.name].dtype)
                named[other.name], named[out.name] = memory[:, ::2], memory[:, 1::2]
    packed = {key: x.copy() if isinstance(x, np.ndarray) else x for key, x in named.items()}
    for given in (named, packed):
        plan(op, given).run()
    for out in op.outputs:
        assert named[out.name].tobytes() == packed[out.name].tobytes()


@pytest.mark.parametrize("op", rows())
def test_the_first_failure_wins(op):
    """None, product, dtype, rank, shape, attribute, view: the earlier one of two is reported."""
    head, out = op.input_tensors[0], op.outputs[0]
    required = [p for p in op.parameters if p.required]
    absent = [key for key in TITLES if key not in op.products]
    faults = [
        *[(none, p) for p in required],
        *[(product, key) for key in absent[:1]],
        (dtype, head),
        (rank, head),
        *[(input_shape, p) for p in op.input_tensors[1:]],
        *[(output_shape, p) for p in op.outputs if p.role == "output"],
        *[(rule, name) for name in op.rules],
        (overlap_itself, out),
    ]
    for earlier, later in itertools.combinations(faults, 2):
        openaclnn.set_product("A2")
        named = arguments(op)
        later[0](op, named, later[1])
        expected = earlier[0](op, named, earlier[1]) if named[head.name] is not None else None
        if expected is not None:
            assert refusal(op, named) == expected


@pytest.mark.parametrize("op", rows())
def test_functions_answer_like_plans(op):
    """Without outputs the library has to infer them; that fails with the same sentences."""
    for fault, p in [
        (none, op.input_tensors[-1]),
        (dtype, op.input_tensors[-1]),
        (rank, op.input_tensors[0]),
    ]:
        named = arguments(op)
        status, sentence = fault(op, named, p)
        given = {p.python_name: named[p.name] for p in op.parameters if p.role != "output"}
        function = partial(getattr(openaclnn, op.python), **given)
        assert refusal_of(function) == (status, sentence)
