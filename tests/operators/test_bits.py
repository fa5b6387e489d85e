# SPDX-License-Identifier: Apache-2.0
"""Same inputs, same bits: for any length, alignment, layout, threads, stores and instruction set.

Run as a program it prints the instruction set and the digest of a large battery.
"""

from __future__ import annotations

import hashlib
import itertools
import math

import numpy as np
import pytest
from tests.support import (
    HALVES,
    LAYOUTS,
    SEED,
    assert_accurate,
    assert_digest_on,
    bits,
    boundaries,
    call,
    rows,
    run_battery,
    wide_dtypes,
)

import openaclnn
from openaclnn import _core
from openaclnn.reference.evaluation import (
    CANONICAL_NAN,
    REFERENCES,
    numpy_dtype,
    sample,
    special_values,
)

LENGTHS = range(131)
OFFSETS = (0, 1, 2, 3, 5, 7, 8, 13)


def first_case(op, shape, dtype):
    attributes = REFERENCES[op.kernel].attributes[0]
    return sample(op, shape, dtype, SEED, attributes), attributes


def assert_same(result, expected, what):
    assert (bits(result) == bits(expected)).all(), f"{what}: other bits (seed {SEED})"


@pytest.mark.parametrize("op", rows())
def test_lengths_and_alignments(op):
    for dtype in op.dtypes:
        inputs, attributes = first_case(op, (256,), dtype)
        expected = call(op, inputs, attributes)
        for n, start in itertools.product(LENGTHS, OFFSETS):
            part = slice(start, start + n)
            result = call(op, [x[part] for x in inputs], attributes)
            assert_same(result, expected[part], f"{dtype} of length {n} from {start}")


@pytest.mark.parametrize("op", rows())
def test_layouts(op):
    """Every layout of the inputs against every layout of the output."""
    for dtype in op.dtypes:
        inputs, attributes = first_case(op, (37, 5, 41), dtype)
        expected = call(op, inputs, attributes)
        for (name, move), (to, move_out) in itertools.product(LAYOUTS.items(), repeat=2):
            if op.inplace and name != to:
                continue
            out = move_out(np.zeros_like(expected))
            call(op, [move(x) for x in inputs], attributes, out)
            assert_same(out, expected, f"{dtype} {name} to {to}")


@pytest.mark.parametrize("op", rows(lambda op: op.shapes == "broadcast"))
def test_broadcast(op):
    for dtype in op.dtypes:
        shape = (5, 3, 1400)  # rows longer than a tile
        inputs, attributes = first_case(op, shape, dtype)
        for i, axes in itertools.product(range(len(inputs)), ((0,), (1,), (2,), (0, 2), (0, 1, 2))):
            small = list(inputs)
            small[i] = inputs[i][tuple(slice(1) if a in axes else slice(None) for a in range(3))]
            full = [np.broadcast_to(x, shape).copy() for x in small]
            expected = call(op, full, attributes)
            assert_same(call(op, small, attributes), expected, f"{dtype}, input {i} along {axes}")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", rows())
def test_threads_and_streaming_stores(op, layout):
    for dtype in op.dtypes:
        inputs, attributes = first_case(op, (64, 2053), dtype)
        moved = [LAYOUTS[layout](x) for x in inputs]
        openaclnn.set_num_threads(1)
        _core.set_streaming_bytes(1 << 40)
        expected = call(op, inputs, attributes)
        for threads, streaming in itertools.product((1, 2, 3, 4), (1, 1 << 40)):
            openaclnn.set_num_threads(threads)
            _core.set_streaming_bytes(streaming)
            out = LAYOUTS[layout](np.zeros_like(expected))
            call(op, moved, attributes, out)
            assert_same(out, expected, f"{dtype}, {threads} threads, streaming from {streaming} B")


@pytest.mark.parametrize("op", rows(lambda op: not op.inplace))
def test_short_streaming_stores(op):
    """A whole block may be streamed only where a line begins, even if it is the only one."""
    for dtype in op.dtypes:
        inputs, attributes = first_case(op, (130,), dtype)
        expected = call(op, inputs, attributes)
        _core.set_streaming_bytes(1)
        room = np.zeros(256, expected.dtype)
        for n, at in itertools.product((1, 31, 32, 33, 64, 96, 130), range(0, 64, 3)):
            out = room[at : at + n]
            call(op, [x[:n] for x in inputs], attributes, out)
            assert_same(out, expected[:n], f"{dtype}, {n} elements from {at}")


@pytest.mark.parametrize("op", rows(lambda op: not op.inplace))
def test_past_the_streaming_threshold(op):
    """The size from which stores bypass the cache, as it is set by default, and a ragged end."""
    dtype = op.dtypes[0]
    inputs, attributes = first_case(op, (1 << 16,), dtype)
    small = call(op, inputs, attributes)
    n = _core.config()["streaming_bytes"] // small.itemsize + 77
    times = n // small.size + 1
    result = call(op, [np.tile(x, times)[:n] for x in inputs], attributes)
    assert_same(result, np.tile(small, times)[:n], f"{dtype} of length {n}")


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


@pytest.mark.programs
@pytest.mark.parametrize("level", ["v2", "v3", "v4"])
def test_instruction_sets(level, digest_here):
    assert_digest_on(__file__, level, digest_here)


@pytest.mark.programs
def test_threads_from_the_environment(digest_here):
    assert run_battery(__file__, OPENACLNN_NUM_THREADS="3")[1] == digest_here


@pytest.fixture(scope="module")
def digest_here():
    return battery_digest()


def battery_digest() -> str:
    """One digest over every row, dtype, attribute set and layout, and every rounding boundary."""
    digest = hashlib.sha256()
    for op in (row.values[0] for row in rows()):
        for dtype, attributes in itertools.product(op.dtypes, REFERENCES[op.kernel].attributes):
            inputs = sample(op, (97, 131), dtype, SEED, attributes)
            for move in LAYOUTS.values():
                out = move(np.zeros_like(inputs[0]))
                call(op, [move(x) for x in inputs], attributes, out)
                digest.update(bits(out).tobytes())
        for dtype, half in itertools.product(wide_dtypes(op), HALVES):
            inputs = [boundaries(half, dtype)] * len(op.input_tensors)
            out = np.empty(inputs[0].shape, numpy_dtype(half))
            call(op, inputs, REFERENCES[op.kernel].attributes[0], out)
            digest.update(bits(out).tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    print(openaclnn.config()["kernels"], battery_digest())
