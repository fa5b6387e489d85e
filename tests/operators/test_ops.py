# SPDX-License-Identifier: Apache-2.0
"""One matrix for all operators: the values of every row against its reference."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.support import (
    FLOATS,
    LAYOUTS,
    SEED,
    assert_accurate,
    bits,
    call,
    grid,
    results,
    row_dtypes,
    rows,
    shape_for,
)

from openaclnn.reference.evaluation import REFERENCES, evaluate, numpy_dtype, sample

SHAPES = ((), (1,), (7,), (0,), (2, 0, 3), (3, 1, 5), (2, 3, 4, 5), (2, 1, 2, 1, 3, 1, 2, 2))
BROADCASTS = (
    ((2, 3, 4), (2, 3, 4)),
    ((2, 3, 4), ()),
    ((4,), (2, 3, 4)),
    ((3, 1), (1, 4)),
    ((2, 1, 4), (3, 1)),
    ((5, 1, 3, 1), (2, 1, 70)),
    ((0, 1), (1, 3)),
    ((1,), (1, 1, 1)),
)


@pytest.mark.parametrize(("op", "dtype"), row_dtypes())
def test_values(op, dtype):
    """Every row, whatever its family, with every attribute set: the same bits in all layouts."""
    shape = shape_for(op, (5, 3, 67))
    for attributes in REFERENCES[op.kernel].attributes:
        inputs = sample(op, shape, dtype, SEED, attributes)
        likes = evaluate(op, inputs, attributes)
        packed = ()
        for layout, move in LAYOUTS.items():
            outs = tuple(move(np.zeros(like.shape, inputs[0].dtype)) for like in likes)
            moved = [move(x) for x in inputs]
            found = results(op, moved, attributes, outs[0] if len(outs) == 1 else outs)
            assert all(result is out for result, out in zip(found, outs, strict=True))
            if not packed:
                assert_accurate(op, inputs, attributes, found, SEED)
                packed = tuple(map(bits, found))
            for got, expected in zip(found, packed, strict=True):
                assert (bits(got) == expected).all(), (dict(attributes), layout)


@pytest.mark.parametrize(("op", "dtype"), row_dtypes(lambda op: op.pointwise))
def test_special_values(op, dtype):
    for attributes in REFERENCES[op.kernel].attributes:
        inputs = grid(op, dtype, attributes)
        assert_accurate(op, inputs, attributes, call(op, inputs, attributes))


@pytest.mark.parametrize("op", rows())
def test_shapes(op):
    attributes = REFERENCES[op.kernel].attributes[0]
    for shape, dtype in itertools.product(SHAPES, op.dtypes):
        inputs = sample(op, shape, dtype, SEED, attributes)
        assert_accurate(op, inputs, attributes, call(op, inputs, attributes), SEED)


@pytest.mark.parametrize("op", rows(lambda op: op.shapes == "broadcast"))
def test_broadcast(op):
    attributes = REFERENCES[op.kernel].attributes[0]
    for shapes, dtype in itertools.product(BROADCASTS, op.dtypes):
        for order in itertools.permutations(shapes):
            inputs = [
                sample(op, shape, dtype, SEED + i, attributes)[i % len(op.input_tensors)]
                for i, shape in enumerate(order)
            ]
            assert_accurate(op, inputs, attributes, call(op, inputs, attributes), SEED)
            expanded = [np.broadcast_to(x, np.broadcast_shapes(*order)) for x in inputs]  # stride 0
            assert_accurate(op, expanded, attributes, call(op, expanded, attributes), SEED)


@pytest.mark.parametrize("op", rows(lambda op: op.output == "castable" and not op.inplace))
def test_output_dtypes(op):
    for dtype, wanted in itertools.product(op.dtypes, FLOATS):
        for attributes in REFERENCES[op.kernel].attributes:
            inputs = sample(op, (3, 67), dtype, SEED, attributes)
            out = np.empty((3, 67), numpy_dtype(wanted))
            assert_accurate(op, inputs, attributes, call(op, inputs, attributes, out), SEED)


@pytest.mark.parametrize(
    "op", rows(lambda op: len(op.input_tensors) > 1 and op.inputs == "promote")
)
def test_promotion(op):
    attributes = REFERENCES[op.kernel].attributes[0]
    for dtypes in itertools.product(op.dtypes, repeat=len(op.input_tensors)):
        inputs = [sample(op, (3, 67), d, SEED, attributes)[i] for i, d in enumerate(dtypes)]
        result = call(op, inputs, attributes)
        assert result.dtype == _promoted(dtypes)
        assert_accurate(op, inputs, attributes, result, SEED)


def _promoted(dtypes):
    """FLOAT16 and BFLOAT16 meet in FLOAT, everything meets DOUBLE in DOUBLE."""
    if len(set(dtypes)) == 1:
        return numpy_dtype(dtypes[0])
    return numpy_dtype("DOUBLE" if "DOUBLE" in dtypes else "FLOAT")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", rows(lambda op: not op.inplace))
def test_output_over_an_input(op, layout):
    attributes = REFERENCES[op.kernel].attributes[0]
    for position, dtype in itertools.product(range(len(op.input_tensors)), op.dtypes):
        inputs = sample(op, (5, 3, 67), dtype, SEED, attributes)
        moved = [LAYOUTS[layout](x) for x in inputs]
        result = call(op, moved, attributes, out=moved[position])
        assert result is moved[position]
        assert_accurate(op, inputs, attributes, result, SEED)
