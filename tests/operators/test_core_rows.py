# SPDX-License-Identifier: Apache-2.0
"""The core knows the rows as table.py writes them, and its check on metadata is phase 1."""

from __future__ import annotations

import numpy as np
import pytest
from tests.operators.test_errors import (
    dtype,
    input_shape,
    none,
    output_shape,
    overlap_itself,
    product,
    rank,
    rule,
)
from tests.support import FLOATS, TITLES, all_rows, arguments, cases, refusal, rows

import openaclnn
from openaclnn import _core
from openaclnn.reference.evaluation import REFERENCES, input_shapes
from openaclnn.rows.calling import argument_name, given, made
from openaclnn.rows.gradients import gradient_row, sources
from openaclnn.rows.table import ANY, OPS, PRODUCTS


def described(op):
    """The row as `_core.rows` should describe it."""
    order = {p.name: i for group in (given(op), made(op)) for i, p in enumerate(group)}
    g, row = op.gradient, gradient_row(op)
    names = [p.name for p in op.parameters]
    return {
        "name": op.name,
        "python": op.python,
        "arguments": len(given(op)),
        "outputs": len(op.outputs),
        "inplace": op.inplace,
        "pointwise": op.pointwise,
        "parameters": [
            {
                "name": p.name,
                "python": argument_name(op, p),
                "kind": p.kind,
                "role": p.role,
                "required": p.required,
                "companion": p.companion,
                "condition": p.condition,
                "argument": order[p.name],
            }
            for p in op.parameters
        ],
        "accepted": {p.key: [d for d in FLOATS if d in op.accepted(p)] for p in (*PRODUCTS, ANY)},
        "gradient": None
        if g is None or row is None
        else {
            "row": row.name,
            "sources": [(s.kind, s.name or None, s.constant) for s in sources(op)],
            "zero": [n for n in names if n in g.zero],
            "nonnegative": [n for n in names if n in g.nonnegative],
            "only_if": g.only_if,
        },
    }


def test_the_rows_of_the_core_are_those_of_the_table():
    assert _core.rows() == [described(op) for op in OPS]


def metadata(op, named):
    """The arguments without memory."""

    def one(p):
        x = named[p.name]
        if p.kind != "tensor" or x is None:
            return x
        steps = [s // x.itemsize for s in x.strides]
        return x.dtype.name, x.shape, steps

    return [one(p) for p in op.parameters]


def said(op, named):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        _core.check(OPS.index(op), *metadata(op, named))
    assert type(caught.value) is ValueError
    return str(caught.value)


def faults(op):
    yield from ((product, key) for key in TITLES if key not in op.products)
    yield from ((dtype, p) for p in op.tensors)
    yield from ((rank, p) for p in op.tensors)
    yield from ((input_shape, p) for p in op.input_tensors[1:])
    yield from ((output_shape, p) for p in op.outputs if p.role == "output")
    yield from ((rule, name) for name in op.rules)
    yield from ((overlap_itself, p) for p in op.outputs)


@pytest.mark.parametrize("op", rows())
def test_a_check_says_what_phase_1_says(op):
    for fault, where in faults(op):
        openaclnn.set_product("A2")
        named = arguments(op)
        fault(op, named, where)
        _, sentence = refusal(op, named)
        assert said(op, named) == _core.python_sentence(OPS.index(op), sentence)


@pytest.mark.parametrize("op", all_rows())
def test_nothing_is_none(op):
    for p in (p for p in op.input_tensors if p.required):
        named = arguments(op)
        none(op, named, p)
        assert said(op, named) == f"{op.python}: {p.python_name} must not be None"


@pytest.mark.parametrize("op", all_rows(lambda op: op.family == "group_norm"))
def test_named_shapes_are_those_of_phase_1(op):
    """Each size that is one more than it should be."""
    for p in op.tensors:
        for d in range(len(arguments(op)[p.name].shape)):
            named = arguments(op)
            shape = list(named[p.name].shape)
            shape[d] += 1
            named[p.name] = np.ones(shape, np.float32)
            _, sentence = refusal(op, named)
            assert said(op, named) == _core.python_sentence(OPS.index(op), sentence)


@pytest.mark.parametrize(("op", "kind", "attributes"), cases())
def test_outputs_are_those_of_a_call(op, kind, attributes):
    named = arguments(op, dtype=kind, attributes=attributes)
    found = _core.check(OPS.index(op), *metadata(op, named))
    assert found == [None for _ in made(op)]  # all are given
    outputs = {p.name: (named[p.name].dtype.name, named[p.name].shape) for p in made(op)}
    named |= {p.name: None for p in made(op)}
    assert _core.check(OPS.index(op), *metadata(op, named)) == list(outputs.values())
    if op.inplace:
        return
    for p in (p for p in made(op) if p.condition):
        off = {**named, p.condition: False}
        expected = [
            x if q.condition != p.condition else None
            for q, x in zip(made(op), outputs.values(), strict=True)
        ]
        assert _core.check(OPS.index(op), *metadata(op, off)) == expected


def test_a_check_may_be_that_of_product_any():
    op = next(op for op in OPS if op.extra_dtypes)
    named = arguments(op, dtype=op.extra_dtypes[0])
    assert "OPENACLNN_PRODUCT=any accepts it" in said(op, named)
    assert _core.check(OPS.index(op), *metadata(op, named), everything=True) is not None
    openaclnn.set_product("310P")
    lacking = next(op for op in OPS if "310P" not in op.products)
    assert "the product must be" in said(lacking, arguments(lacking))
    assert _core.check(OPS.index(lacking), *metadata(lacking, arguments(lacking)), everything=True)


@pytest.mark.parametrize("op", all_rows())
def test_larger_than_all_memory(op):
    """Metadata costs nothing, and what no address space holds is refused."""
    attributes = REFERENCES[op.kernel].attributes[0]
    named = arguments(op)
    for sizes, fits in (((2, 12, 1 << 30, 1 << 10), True), ((2, 12, 1 << 40, 1 << 40), False)):
        shapes = input_shapes(op, sizes, attributes)
        given = {p.name: ("float32", s) for p, s in zip(op.input_tensors, shapes, strict=True)}
        values = [
            named[p.name] if p.role == "attribute" else given.get(p.name) for p in op.parameters
        ]
        if fits:
            _core.check(OPS.index(op), *values)
        else:
            with pytest.raises(ValueError, match=rf"^{op.python}: \w+ must "):
                _core.check(OPS.index(op), *values)


@pytest.mark.parametrize(
    ("values", "error", "sentence"),
    [
        ((), TypeError, "wrong number of arguments"),
        ((("float32", (2,)), "x", None), TypeError, "leaky_relu: negative_slope must be a number"),
        ((("float8", (2,)), 0.1, None), ValueError, "x must have a dtype of the aclnn API, but go"),
        ((("float32", (2,), (1, 1)), 0.1, None), TypeError, "a stride for each size"),
        ((("float32", (-2,)), 0.1, None), ValueError, "x must have sizes of at least 0, but got "),
        ((("float32", (2,), (-1,)), 0.1, None), ValueError, "must stay inside its storage"),
        ((("float32", (1,) * 40), 0.1, None), ValueError, "x must have at most 8 dimensions"),
        ((("float32",), 0.1, None), TypeError, "a tensor is "),
        ((3, 0.1, None), TypeError, "a tensor is "),
        ((("float32", (1 << 70,)), 0.1, None), TypeError, "a tensor is "),
    ],
)
def test_a_check_checks_what_it_is_given(values, error, sentence):
    with pytest.raises(error, match=sentence):
        _core.check(0, *values)
