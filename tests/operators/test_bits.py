# SPDX-License-Identifier: Apache-2.0
"""Same inputs, same bits: for any length, alignment, layout, threads, stores and instruction set.

Run as a program it prints the instruction set and the digest of a large battery.
"""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
import pytest
from tests.processes import assert_digest_on, run_battery
from tests.support import HALVES, LAYOUTS, SEED, bits, boundaries, call, rows, wide_dtypes

import openaclnn
from openaclnn import _core
from openaclnn.reference.evaluation import (
    REFERENCES,
    numpy_dtype,
    sample,
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
