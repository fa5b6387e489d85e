# SPDX-License-Identifier: Apache-2.0
"""NaN, infinities, zeros and any bits among ordinary numbers leave the bits of the others alone."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from tests.operators.test_bits import assert_same, first_case
from tests.support import (
    SEED,
    assert_accurate,
    bits,
    call,
    rows,
)

import openaclnn
from openaclnn import _core
from openaclnn.reference.evaluation import (
    CANONICAL_NAN,
    REFERENCES,
    numpy_dtype,
    special_values,
)

# Quiet and signalling, of either sign, with few and all bits: what stands behind the exponent.
PAYLOADS = {
    "FLOAT": (0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0xFFC01234),
    "FLOAT16": (0x7FFF, 0xFFFF, 0x7C01, 0xFE12),
    "BFLOAT16": (0x7FFF, 0xFFFF, 0x7F81, 0xFFC1),
    "DOUBLE": (0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0x7FF0000000000001, 0xFFF8000000001234),
}


def numbers(op, n, dtype):
    """Inputs without NaN and infinity."""
    inputs, attributes = first_case(op, (n,), dtype)
    return [np.where(np.isfinite(x), x, x.dtype.type(0.25)) for x in inputs], attributes


@pytest.mark.parametrize("op", rows())
def test_one_nan_among_numbers(op):
    """A NaN becomes the canonical one, wherever it is, whatever it carries; others stay."""
    for dtype in op.dtypes:
        inputs, attributes = numbers(op, 131, dtype)
        expected = call(op, inputs, attributes)
        for i, payload in itertools.product(range(len(inputs)), PAYLOADS[dtype]):
            nans = [x.copy() for x in inputs]
            bits(nans[i])[:] = payload
            with_nan = call(op, nans, attributes)
            assert_accurate(op, nans, attributes, with_nan, SEED)
            for at in range(131):
                one = [x.copy() for x in inputs]
                bits(one[i])[at] = payload
                mixed = expected.copy()
                mixed[at] = with_nan[at]
                what = f"{dtype}, {payload:#x} in input {i} at {at}"
                assert_same(call(op, one, attributes), mixed, what)


@pytest.mark.parametrize("op", rows())
def test_nan_attributes(op):
    for dtype, bits64 in itertools.product(op.dtypes, PAYLOADS["DOUBLE"]):
        payload = np.array(bits64, np.uint64).view(np.float64).item()
        inputs, attributes = numbers(op, 131, dtype)
        for name in (name for name, value in attributes.items() if isinstance(value, float)):
            odd, plain = ({**attributes, name: value} for value in (payload, math.nan))
            result, expected = call(op, inputs, odd), call(op, inputs, plain)
            assert_same(result, expected, f"{dtype}, {name} {bits64:#x}")
            nans = bits(result)[np.isnan(result)]
            assert (nans == CANONICAL_NAN[dtype]).all(), f"{dtype}, {name} NaN: another NaN"


@pytest.mark.parametrize("op", rows())
def test_nan_in_any_tile(op):
    """Tiles with a NaN are written again; those behind them stream or not."""
    openaclnn.set_num_threads(1)
    for dtype in op.dtypes:
        inputs, attributes = numbers(op, 3 * 16384 + 77, dtype)
        n = inputs[0].size
        for places in ((), (0,), (16384, 16385), (20000, n - 1), (5, 40000), (n - 1,)):
            some = [x.copy() for x in inputs]
            some[-1][list(places)] = math.nan
            some[-1][777] = math.inf
            strided = [np.repeat(x, 2)[::2] for x in some]
            expected = call(op, strided, attributes, np.repeat(np.zeros_like(some[0]), 2)[::2])
            for streaming in (1, 1 << 40):
                _core.set_streaming_bytes(streaming)
                out = np.zeros_like(some[0])
                call(op, [x.copy() for x in some], attributes, out)
                assert_same(out, expected, f"{dtype}, NaN at {places}, streaming from {streaming}")


@pytest.mark.parametrize("share", [0.001, 0.2])
@pytest.mark.parametrize("op", rows())
def test_special_values_among_numbers(op, share):
    """Special values stand at the ends of pieces and between: each element has the bits that it has
    when it is computed alone.
    """
    edges = (0, 63, 64, 127, 2047, 2048, 16383, 16384, 16384 + 63, 2 * 16384 - 1, 40000, 3 * 16384)
    rng = np.random.default_rng(SEED)
    for dtype in op.dtypes:
        inputs, attributes = numbers(op, 3 * 16384 + 77, dtype)
        special = special_values(op, dtype, attributes)
        places = np.union1d(edges, np.flatnonzero(rng.random(inputs[0].size) < share))
        for x in inputs:
            x[places] = rng.choice(special, places.size)
        alone = call(op, [np.repeat(x[places], 2)[::2] for x in inputs], attributes)
        some = [x[places] for x in inputs]
        assert_accurate(op, some, attributes, alone, SEED)
        ordinary = np.setdiff1d(np.arange(inputs[0].size), places)
        expected = np.empty_like(inputs[0])
        expected[places] = alone
        expected[ordinary] = call(op, [x[ordinary] for x in inputs], attributes)
        what = f"{dtype}, {places.size} special values"
        assert_same(call(op, inputs, attributes), expected, what)
        if op.inplace or len(inputs) == 1:
            onto = [x.copy() for x in inputs]
            result = call(op, onto, attributes, onto[0])
            assert_same(result, expected, f"{what}, onto the input")


@pytest.mark.parametrize("op", rows())
def test_stretches_of_special_values(op):
    """The form that computes a tile depends on the tiles before it; the bits do not."""
    openaclnn.set_num_threads(1)
    tiles = [0, 0.2, 0, *[0.001] * 3, *[0.2] * 20, 0.001, 0, 0, 0.2]  # of 16384 values
    rng = np.random.default_rng(SEED)
    for dtype in op.dtypes:
        inputs, attributes = numbers(op, len(tiles) * 16384, dtype)
        special = special_values(op, dtype, attributes)
        places = np.flatnonzero(rng.random(inputs[0].size) < np.repeat(tiles, 16384))
        for x in inputs:
            x[places] = rng.choice(special, places.size)
        expected = call(op, [np.repeat(x, 2)[::2] for x in inputs], attributes)
        for streaming in (1, 1 << 40):
            _core.set_streaming_bytes(streaming)
            result = call(op, inputs, attributes)
            assert_same(result, expected, f"{dtype}, streaming from {streaming}")


@pytest.mark.parametrize("op", rows())
def test_any_bits_among_numbers(op):
    """Half of the numbers have any pattern of bits. Which form computes an element depends on its
    neighbours, but its bits do not.
    """
    rng = np.random.default_rng(SEED)
    for dtype in op.dtypes:
        kind, n = numpy_dtype(dtype), 600
        for attributes in REFERENCES[op.kernel].attributes:
            ordinary, _ = numbers(op, n, dtype)
            patterns = [rng.integers(0, 256, (n, kind.itemsize), np.uint8) for _ in ordinary]
            any_bits = [pattern.view(kind).reshape(-1) for pattern in patterns]
            pairs = zip(any_bits, ordinary, strict=True)
            inputs = [np.where(rng.random(n) < 0.5, x, y) for x, y in pairs]
            together = call(op, [x.copy() for x in inputs], attributes)
            alone = [call(op, [x[k : k + 1].copy() for x in inputs], attributes) for k in range(n)]
            assert_same(together, np.concatenate(alone), f"{dtype} {attributes}")


@pytest.mark.parametrize("op", rows())
def test_results_whose_sum_overflows(op):
    """Each result is a finite number, though their sum, which detects others, overflows."""
    for dtype in set(op.dtypes) - {"FLOAT16"}:  # too small for that
        inputs, attributes = numbers(op, 3000, dtype)
        for i, step in itertools.product(range(len(inputs)), (1, 2)):
            many = [np.repeat(x, step)[::step] for x in inputs]
            many[i][:] = 2.0**125
            together = call(op, many, attributes)
            for k in range(0, 3000, 137):
                alone = call(op, [x[k : k + 1] for x in many], attributes)
                what = f"{dtype}, input {i} large, step {step}, at {k}"
                assert_same(together[k : k + 1], alone, what)
