# SPDX-License-Identifier: Apache-2.0
"""What GroupNormSwish and its gradient refuse: ranks, shapes, attributes, dtypes, overlaps."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
from tests.support import (
    AN_ARRAY,
    FLOATS,
    LAYOUTS,
    SEED,
    all_rows,
    arguments,
    bits,
    refusal,
    results,
)

import openaclnn
from openaclnn.reference.evaluation import REFERENCES, input_shapes, numpy_dtype, sample

INVALID = 161002
GROUPED = all_rows(lambda op: op.family == "group_norm")


def with_groups(op, groups, **more):
    return {**REFERENCES[op.kernel].attributes[0], "num_groups": groups, **more}


def test_ranks():
    for row in GROUPED:
        op = row.values[0]
        first = op.input_tensors[0]
        for name in {first.name, "x"}:
            named = arguments(op)
            named[name] = named[name].reshape(-1)
            message = f"{op.name}: {name} must have 2 to 8 dimensions, but got 1"
            assert refusal(op, named) == (INVALID, message)
        for name in ("gamma", "beta"):
            named = arguments(op)
            named[name] = named[name].reshape(1, -1)
            message = f"{op.name}: {name} must have 1 dimension, but got 2"
            assert refusal(op, named) == (INVALID, message)


@pytest.mark.parametrize("op", GROUPED)
def test_shapes_that_do_not_fit(op):
    samples, channels, *_ = shape = REFERENCES[op.kernel].example
    groups = REFERENCES[op.kernel].attributes[0]["num_groups"]
    of_channels = (
        f"shape [{channels}], the channels of {op.input_tensors[0].name} {list(shape)}, but got"
    )
    each = "an element for each of 2 samples and 4 groups, samples first, but got shape"
    wrong = {
        "gamma": ((channels + 1,), of_channels),
        "beta": ((1,), of_channels),
        "yOut": (shape[::-1], f"the shape of x {list(shape)}, but got"),
        "dxOut": (shape[:2], f"the shape of x {list(shape)}, but got"),
        "dgammaOut": ((channels, 1), of_channels),
        "dbetaOut": ((), of_channels),
        "mean": ((samples, groups + 1), each),
        "rstd": ((groups, samples), each),
        "meanOut": ((samples * groups,), "the shape of samples and groups [2, 4], but got"),
        "rstdOut": ((samples, groups, 1), "the shape of samples and groups [2, 4], but got"),
    }
    if op.input_tensors[0].name == "dy":
        wrong["x"] = (shape[::-1], f"the shape of dy {list(shape)}, but got")
    for p in op.tensors:
        if p.name in wrong:
            named, (bad, must) = arguments(op), wrong[p.name]
            named[p.name] = np.ones(bad, np.float32)
            message = f"{op.name}: {p.name} must have {must} {list(bad)}"
            assert refusal(op, named) == (INVALID, message)


@pytest.mark.parametrize("op", GROUPED)
def test_empty_tensors(op):
    for shape in ((0, 12, 5), (2, 0, 5), (2, 12, 0)):
        named = arguments(op)
        for p in op.tensors:
            if not p.companion:
                named[p.name] = np.ones(shape, np.float32)
        first = op.input_tensors[0].name
        message = f"{op.name}: {first} must not be empty, but has shape {list(shape)}"
        assert refusal(op, named) == (INVALID, message)


@pytest.mark.parametrize("op", GROUPED)
def test_attributes(op):
    wrong = (
        ({"numGroups": 0}, "numGroups must be greater than 0, but got 0"),
        ({"numGroups": -4}, "numGroups must be greater than 0, but got -4"),
        ({"numGroups": 5}, "numGroups must divide the 12 channels of x, but got 5"),
        ({"numGroups": 24}, "numGroups must divide the 12 channels of x, but got 24"),
        ({"dataFormatOptional": "NHWC"}, f'{FORMAT}, but got "NHWC"'),
        ({"dataFormatOptional": ""}, f'{FORMAT}, but got ""'),
        ({"swishScale": float("inf")}, "swishScale must be finite, but got inf"),
        ({"swishScale": float("nan")}, "swishScale must be finite, but got nan"),
    )
    for changed, sentence in wrong:
        assert refusal(op, arguments(op) | changed) == (INVALID, f"{op.name}: {sentence}")
    for wrong, must in (
        (3, "a string or None"), (b"NCHW", "a string or None"),
        ("\udc80", "a string without lone surrogates"),
        ("ND\0", "a string without null characters"),
    ):  # fmt: skip
        given = arguments(op) | {"dataFormatOptional": wrong}
        message = (
            f"^{op.name}: dataFormatOptional must be {must}, but got {re.escape(repr(wrong))}$"
        )
        function = getattr(openaclnn, op.python)
        inputs = {p.python_name: given[p.name] for p in op.parameters if p.role != "output"}
        phase1 = getattr(openaclnn.aclnn, f"{op.name}GetWorkspaceSize")
        with pytest.raises(TypeError, match=message):
            openaclnn.plan(op.name, **given)
        with pytest.raises(TypeError, match=message):
            phase1(*given.values())
        with pytest.raises(TypeError, match=message):
            function(**inputs)
    for shown in ("好" * 11, "好" * 10 + "xx"):  # 32 bytes are shown, and no part of a character
        message = refusal(op, arguments(op) | {"dataFormatOptional": shown})[1]
        assert message.startswith(f'{op.name}: {FORMAT}, but got "{"好" * 10}')
    for accepted in (None, "NCHW", "ND"):
        openaclnn.plan(op.name, **(arguments(op) | {"dataFormatOptional": accepted})).run()


@pytest.mark.parametrize("op", GROUPED)
def test_out_must_be_a_tuple(op):
    names = ", ".join(p.result_name for p in op.outputs)
    assert names in ("y, mean, rstd", "dx, dgamma, dbeta")
    given = arguments(op)
    inputs = {p.python_name: given[p.name] for p in op.parameters if p.role != "output"}
    outputs = tuple(given[p.name] for p in op.outputs)
    function = getattr(openaclnn, op.python)
    for wrong, found in (
        (np.zeros((3, 4), np.float32), "ndarray"), (3, "int"), ("abc", "str"),
        (outputs[:2], "2 elements"), ([*outputs, None], "4 elements"), ({1, 2, 3}, "set"),
    ):  # fmt: skip
        with pytest.raises(TypeError) as caught:
            function(**inputs, out=wrong)
        assert str(caught.value) == f"{op.name}: out must be a tuple ({names}), but got {found}"
    for out in (outputs, list(outputs), (outputs[0], None, outputs[2])):
        for one, result in zip(out, function(**inputs, out=out), strict=True):
            assert result is one or one is None
    assert f"Returns ({names})." in function.__doc__


def test_any_eps():
    """differences.md: eps is not restricted; where var + eps < 0 the result is NaN."""
    x = np.array([[1.0, 3.0]], np.float32)  # mean 2, var 1
    ones, zeros = np.ones(2, np.float32), np.zeros(2, np.float32)
    for eps, expected in ((3.0, 0.5), (-0.75, 2.0), (-2.0, np.nan), (np.nan, np.nan), (np.inf, 0)):
        _, mean, rstd = openaclnn.group_norm_swish(x, ones, zeros, 1, eps=eps)
        assert mean == 2
        np.testing.assert_array_equal(rstd, [[expected]])


FORMAT = (
    'dataFormatOptional must be "NCHW" or "ND" where it is given (strides tell the memory order)'
)


@pytest.mark.parametrize("op", GROUPED)
def test_channels_of_a_group(op):
    for channels, good in ((4000, True), (4001, False)):
        attributes = with_groups(op, 1)
        shapes = input_shapes(op, (1, channels), attributes)
        given = [np.ones(s, np.float32) for s in shapes]
        if good:
            results(op, given, attributes)
            continue
        with pytest.raises(openaclnn.AclnnError) as caught:
            results(op, given, attributes)
        assert caught.value.status == INVALID
        assert str(caught.value) == (
            f"{op.name}: numGroups must leave at most 4000 channels a group, "
            "but 4001 channels in 1 groups are 4001"
        )


@pytest.mark.parametrize("op", GROUPED)
def test_dtypes(op):
    """All dtypes are equal, or x has 16 bits beside FLOAT; each other dtype is named."""
    first, *others = op.tensors
    companions = [p for p in others if p.companion]
    for dtype, other in itertools.permutations((d for d in FLOATS if d in op.dtypes), 2):
        for p in others:
            named = arguments(op, dtype=dtype)
            named[p.name] = named[p.name].astype(numpy_dtype(other))
            if not p.companion:
                must = f"have the dtype of {first.name} {dtype}"
                message = f"{op.name}: {p.name} must {must}, but got {other}"
            elif p is companions[0] and other != "FLOAT":
                either = "" if dtype == "FLOAT" else "dtype FLOAT or "
                must = f"have {either}the dtype of {first.name} {dtype}"
                message = f"{op.name}: {p.name} must {must}, but got {other}"
            elif p is companions[0]:  # then the next differs from it
                must = f"have the dtype of {p.name} FLOAT"
                message = f"{op.name}: {companions[1].name} must {must}, but got {dtype}"
            else:
                must = f"have the dtype of {companions[0].name} {dtype}"
                message = f"{op.name}: {p.name} must {must}, but got {other}"
            assert refusal(op, named) == (INVALID, message)


@pytest.mark.parametrize("op", GROUPED)
def test_null_outputs_that_are_required(op):
    for p in op.outputs:
        named = arguments(op) | {p.name: None}
        message = f"{op.name}: {p.name} must be {AN_ARRAY}, but got None"
        assert refusal(op, named) == (TypeError, message)


@pytest.mark.parametrize("op", GROUPED)
def test_overlap(op):
    """dx may be x or dy, but no part of either, and no other output."""
    shape = (2, 12, 40)
    attributes = with_groups(op, 4)
    inputs = sample(op, shape, "FLOAT", SEED, attributes)
    expected = results(op, inputs, attributes)
    big = [i for i, p in enumerate(op.input_tensors) if not p.companion]
    for i, layout in itertools.product(big, LAYOUTS.values()):
        moved = [layout(x) if k in big else x for k, x in enumerate(inputs)]
        out = (moved[i], *(np.zeros_like(x) for x in expected[1:]))
        found = results(op, moved, attributes, out)
        assert found[0] is moved[i]
        for a, b in zip(found, expected, strict=True):
            assert (bits(a) == bits(b)).all()
    named = arguments(op)
    memory = np.ones(named["x"].size + 1, np.float32)
    first = op.outputs[0].name
    named["x"] = memory[1:].reshape(named["x"].shape)
    named[first] = memory[:-1].reshape(named["x"].shape)
    must = "must be the same view as x or share no memory with it, but overlaps it"
    assert refusal(op, named) == (INVALID, f"{op.name}: {first} {must}")
    for p in op.outputs[1:]:  # x seen as statistics, or the first row of dy as channels
        named = arguments(op)
        whole = named[op.input_tensors[0].name]
        assert whole.flags.c_contiguous
        shape = named[p.name].shape
        named[p.name] = whole.reshape(-1)[: math.prod(shape)].reshape(shape)
        must = f"must share no memory with {op.input_tensors[0].name}, but overlaps it"
        assert refusal(op, named) == (INVALID, f"{op.name}: {p.name} {must}")
    named = arguments(op)
    one, other = (p.name for p in op.outputs[1:])
    named[other] = named[one]
    must = f"must share no memory with {other}, but overlaps it"
    assert refusal(op, named) == (INVALID, f"{op.name}: {one} {must}")
