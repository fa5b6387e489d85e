# SPDX-License-Identifier: Apache-2.0
"""Group norm: same inputs, same bits, for any layout, threads, stores and instruction set.

Run as a program it prints the instruction set and the digest of a battery.
"""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
import pytest
from tests.processes import assert_digest_on
from tests.support import LAYOUTS, SEED, all_rows, bits, results, same

import openaclnn
from openaclnn import _core
from openaclnn.reference.evaluation import CANONICAL_NAN, REFERENCES, dtype_name, sample

GROUPED = all_rows(lambda op: op.family == "group_norm")
# one position, short channels, ragged ones, rows beyond a tile, segments, groups split by threads,
# of many channels
SHAPES = (
    ((3, 24), 4), ((2, 24, 3, 5), 3), ((2, 24, 7, 7), 3), ((1, 6, 33, 70), 3), ((2, 64, 12, 12), 4),
    ((1, 3, 2, 17000), 1), ((9, 40, 40), 2), ((2, 72, 9, 60), 4), ((2, 2048, 8, 8), 1),
)  # fmt: skip


def channels_last(x):
    if x.ndim < 3:
        return x.copy()
    return np.moveaxis(np.moveaxis(x, 1, -1).copy(), -1, 1)


def spatially_transposed(x):
    return x.swapaxes(-1, -2).copy().swapaxes(-1, -2) if x.ndim > 3 else x.copy()


VIEWS = LAYOUTS | {"channels last": channels_last, "spatially transposed": spatially_transposed}


def case(op, shape, groups, dtype, companion=None):
    attributes = {**REFERENCES[op.kernel].attributes[0], "num_groups": groups}
    return sample(op, shape, dtype, SEED, attributes, companion), attributes


@pytest.mark.parametrize(("shape", "groups"), SHAPES, ids=str)
@pytest.mark.parametrize("op", GROUPED)
def test_layouts(op, shape, groups):
    """Every layout of the inputs against every layout of the outputs; of large tensors only pairs
    that are alike or of which one is contiguous."""
    for dtype in op.dtypes:
        inputs, attributes = case(op, shape, groups, dtype)
        expected = results(op, inputs, attributes)
        for (name, move), (to, move_out) in itertools.product(VIEWS.items(), repeat=2):
            if inputs[0].size > 50_000 and name != to and "contiguous" not in (name, to):
                continue
            out = tuple(move_out(np.zeros_like(x)) for x in expected)
            found = results(op, [move(x) for x in inputs], attributes, out)
            assert same(found, expected), f"{dtype}, {name} to {to}, seed {SEED}"


@pytest.mark.parametrize(("shape", "groups"), SHAPES, ids=str)
@pytest.mark.parametrize("op", GROUPED)
def test_threads_and_streaming_stores(op, shape, groups):
    for dtype, view in itertools.product(op.dtypes, ("contiguous", "channels last")):
        inputs, attributes = case(op, shape, groups, dtype)
        openaclnn.set_num_threads(1)
        _core.set_streaming_bytes(1 << 40)
        expected = results(op, inputs, attributes)
        moved = [VIEWS[view](x) for x in inputs]
        for threads, streaming in itertools.product((1, 2, 3, 4, 64), (1, 1 << 40)):
            openaclnn.set_num_threads(threads)
            _core.set_streaming_bytes(streaming)
            what = f"{dtype}, {view}, {threads} threads, streaming from {streaming} B"
            assert same(results(op, moved, attributes), expected), what


@pytest.mark.parametrize("view", ["contiguous", "channels last", "spatially transposed"])
@pytest.mark.parametrize("shape", [(2, 24, 7, 7), (2, 24, 12, 13), (1, 3, 130, 130)], ids=str)
@pytest.mark.parametrize("op", GROUPED)
def test_nan_of_any_payload(op, shape, view):
    """In 16 bits a payload of ones would be rounded up to -0; infinities make NaNs of their own."""
    for dtype, swish in itertools.product(op.dtypes, (True, False)):
        inputs, attributes = case(op, shape, 3, dtype, "FLOAT")
        if "activate_swish" in attributes:
            attributes["activate_swish"] = swish
        elif not swish:
            continue
        inputs = [VIEWS[view](x) for x in inputs]
        for x in inputs:
            if x.dtype != np.float32:
                continue
            at, before = (x.ndim * (0,)), x.flat[0]
            x[at] = np.nan
            expected = results(op, inputs, attributes)
            assert any(np.isnan(y.astype(np.float32)).any() for y in expected)
            for y in expected:
                nan = bits(y)[np.isnan(y.astype(np.float32))]
                assert (nan == CANONICAL_NAN[dtype_name(y.dtype)]).all(), f"{dtype}, of {x.shape}"
            for payload in (0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0xFF80FFFF):
                x[at] = np.uint32(payload).view(np.float32)
                found = results(op, inputs, attributes)
                assert same(found, expected), f"{dtype}, {payload:#x} in {x.shape}, {attributes}"
            for infinity in (np.inf, -np.inf):
                x[at] = infinity
                for y in results(op, inputs, attributes):
                    nan = bits(y)[np.isnan(y.astype(np.float32))]
                    assert (nan == CANONICAL_NAN[dtype_name(y.dtype)]).all(), f"{dtype}, {infinity}"
            x[at] = before


@pytest.mark.parametrize("op", GROUPED)
def test_groups_know_nothing_of_each_other(op):
    """All groups at once against the first and the others: for every number of short positions, and
    groups of widths that fill a tile of channels or do not."""
    for positions, width in itertools.product((*range(1, 66), 100), (1, 3, 34)):
        groups = max(4, 4096 // positions // width + 3)
        inputs, attributes = case(op, (1, groups * width, positions), groups, "FLOAT")
        together = results(op, inputs, attributes)

        def some(tensors, names, first, end, width=width, groups=groups):
            channels, of_groups = slice(first * width, end * width), slice(first, end)
            for t, name in zip(tensors, names, strict=True):
                if t.ndim == 3:
                    yield t[:, channels]
                elif t.size == groups and ("mean" in name or "rstd" in name):
                    yield t.reshape(1, groups)[:, of_groups]
                else:
                    yield t[channels]

        outputs = [p.python_name for p in op.outputs]
        for first, end in ((0, 1), (1, groups)):
            part = list(some(inputs, [p.python_name for p in op.input_tensors], first, end))
            found = results(op, part, {**attributes, "num_groups": end - first})
            expected = some(together, outputs, first, end)
            assert same(found, expected), f"{positions} positions, {width} wide, seed {SEED}"


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("scale", [1.0, 300.0, 1e30])
@pytest.mark.parametrize("op", GROUPED)
def test_in_place(op, scale, view):
    """Over x and over dy, also where the formula for large t needs again what was written over."""
    for dtype in op.dtypes:
        inputs, attributes = case(op, (2, 72, 9, 60), 4, dtype)
        attributes["swish_scale"] = scale
        expected = results(op, inputs, attributes)
        for i, p in enumerate(op.input_tensors):
            if p.python_name in ("x", "dy"):
                given = [VIEWS[view](x) for x in inputs]
                out = (given[i], *map(np.zeros_like, expected[1:]))
                found = results(op, given, attributes, out)
                assert same(found, expected), f"{dtype}, over {p.python_name}, seed {SEED}"


@pytest.mark.parametrize("op", GROUPED)
def test_expanded_inputs(op):
    """Inputs of stride 0 are read in place."""
    for shape, axes in itertools.product(((2, 24, 3, 5), (2, 6, 11, 30)), ((0,), (1,), (2, 3))):
        inputs, attributes = case(op, shape, 3, "FLOAT")
        for i, p in enumerate(op.input_tensors):
            if p.companion:
                continue
            given = list(inputs)
            one = inputs[i][tuple(slice(1) if a in axes else slice(None) for a in range(4))]
            given[i] = np.broadcast_to(one, shape)
            full = [np.array(x) for x in given]
            assert same(results(op, given, attributes), results(op, full, attributes)), axes


@pytest.mark.programs
@pytest.mark.parametrize("level", ["v2", "v3", "v4"])
def test_instruction_sets(level, digest_here):
    assert_digest_on(__file__, level, digest_here)


@pytest.fixture(scope="module")
def digest_here():
    return battery_digest()


def battery_digest() -> str:
    """One digest over every row, dtype, attribute set, and shape."""
    digest = hashlib.sha256()
    for row in GROUPED:
        op = row.values[0]
        for dtype, companion in itertools.product(op.dtypes, (None, "FLOAT")):
            for attributes in REFERENCES[op.kernel].attributes:
                inputs = sample(op, (2, 12, 11, 13), dtype, SEED, attributes, companion)
                for x in results(op, inputs, attributes):
                    digest.update(bits(x).tobytes())
            for shape, groups in SHAPES:
                inputs, attributes = case(op, shape, groups, dtype, companion)
                for scale, move in itertools.product((1.0, 300.0), (np.copy, channels_last)):
                    scaled = {**attributes, "swish_scale": scale}  # 300: far beyond exp(-t) = 0
                    for x in results(op, [move(x) for x in inputs], scaled):
                        digest.update(bits(x).tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    print(openaclnn.config()["kernels"], battery_digest())
