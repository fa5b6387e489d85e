# SPDX-License-Identifier: Apache-2.0
"""Random views: their values, and the exact verdict on overlap, judged by listing every element."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from tests.support import FLOATS, SEED, bits, call, rows

import openaclnn
from openaclnn.reference.evaluation import REFERENCES, numpy_dtype, sample

DIMS = (1, 2, 3, 5, 8, 33)


def scattered(rng, x):
    """The values of `x` in permuted, stepped, flipped and padded memory."""
    order = rng.permutation(x.ndim)
    steps = rng.choice((1, 1, 2, 3), x.ndim)
    pads = rng.integers(3, size=x.ndim)
    memory = np.ones([x.shape[i] * steps[i] + pads[i] for i in order], x.dtype)
    picks = [slice(0, n * s, s) for n, s in zip(x.shape, steps, strict=True)]
    flips = [slice(None, None, rng.choice((1, -1))) for _ in x.shape]
    view = memory.transpose(np.argsort(order))[(*picks, ...)][(*flips, ...)]
    view[...] = x
    return view


def repeated(rng, x):
    """One slice of `x` along a random axis, and the same with stride 0."""
    axis = int(rng.integers(x.ndim))
    one = np.take(x, [0], axis)
    return np.broadcast_to(one, x.shape).copy(), np.broadcast_to(scattered(rng, one), x.shape)


@pytest.mark.parametrize("op", rows())
def test_random_layouts(op):
    attributes = REFERENCES[op.kernel].attributes[0]
    for seed in range(SEED, SEED + 300):
        rng = np.random.default_rng(seed)
        shape = tuple(int(n) for n in rng.choice(DIMS, rng.integers(5)))
        plain = sample(op, shape, rng.choice(op.dtypes), seed, attributes)
        moved = [scattered(rng, x) for x in plain]
        for i in range(len(plain)):
            if shape and not op.inplace and rng.random() < 0.3:
                plain[i], moved[i] = repeated(rng, plain[i])
        free = op.output == "castable" and not op.inplace
        wanted = numpy_dtype(rng.choice(FLOATS)) if free else plain[0].dtype
        expected = call(op, plain, attributes, np.empty(shape, wanted))
        out = scattered(rng, np.zeros(shape, wanted))
        call(op, moved, attributes, out)
        assert (bits(out) == bits(expected)).all(), f"{op.name} {shape}, seed {seed}"


@pytest.mark.parametrize("op", [p for p in rows() if p.values[0].shapes == "broadcast"])
@pytest.mark.parametrize("dtype", ["FLOAT", "FLOAT16"])
def test_broadcasts_that_end_in_a_tile_of_one_row(op, dtype):
    """Each input in turn repeated along rows, columns or slices, where tiles leave a rest."""
    attributes = REFERENCES[op.kernel].attributes[0]
    for rows_, columns in ((21, 100), (41, 50), (81, 100), (3, 2049), (65, 33)):
        for picked in range(len(op.input_tensors)):
            for axes in ((2,), (1,), (0,), (0, 2), (0, 1), (1, 2)):
                seed = SEED + rows_ * 10 + picked
                plain = sample(op, (3, rows_, columns), dtype, seed, attributes)
                small = plain[picked]
                for axis in axes:
                    small = np.take(small, [0], axis)
                plain[picked] = np.broadcast_to(small, (3, rows_, columns)).copy()
                given = [small if i == picked else x for i, x in enumerate(plain)]
                expected = call(op, plain, attributes, np.empty((3, rows_, columns), small.dtype))
                out = call(op, given, attributes, np.empty_like(expected))
                case = f"{op.name} {rows_} x {columns}, input {picked} along {axes}, seed {seed}"
                assert (bits(out) == bits(expected)).all(), case


def random_view(rng, memory, shape):
    """Any view inside the memory; it may overlap itself and run backwards."""
    while True:
        strides = rng.integers(-9, 10, len(shape))
        reach = (np.array(shape) - 1) * strides
        low, high = reach[reach < 0].sum(), reach[reach > 0].sum()
        if high - low < memory.size:
            start = rng.integers(-low, memory.size - high)
            return as_strided(memory[start:], shape, strides * memory.itemsize)


def addresses(view) -> list[int]:
    """The address of every element, in order."""
    start = view.__array_interface__["data"][0]
    return [start + int(np.dot(index, view.strides)) for index in np.ndindex(view.shape)]


def touched(view) -> set[int]:
    return {address + k for address in addresses(view) for k in range(view.itemsize)}


def refused(x, out) -> bool:
    try:
        openaclnn.leaky_relu(x, 0.5, out=out)
    except openaclnn.AclnnError as error:
        return "overlap" in str(error)
    return False


def test_overlap_is_judged_exactly():
    count = 0
    for seed in range(SEED, SEED + 2000):
        rng = np.random.default_rng(seed)
        memory = np.ones(40, np.float32)
        shape = tuple(int(n) for n in rng.choice((1, 2, 3, 4), rng.integers(1, 4)))
        x = random_view(rng, memory, shape)
        out = random_view(rng, memory.view(rng.choice((np.float32, np.float16))), shape)
        if rng.random() < 0.2:
            out = x
        repeats = len(set(addresses(out))) < out.size
        same = out.dtype == x.dtype and addresses(out) == addresses(x)
        overlap = repeats or not (same or touched(out).isdisjoint(touched(x)))
        case = f"out {out.dtype} {out.strides}, x {x.strides}, shape {shape}, seed {seed}"
        assert refused(x, out) == overlap, case
        count += overlap
    assert 500 < count < 1500  # both kinds were tried often


def test_columns_of_many_rows_do_not_overlap():
    """Each row of either half could reach each row of the other: 4e10 pairs, a few steps."""
    both = np.zeros((200_001, 8), np.float32)
    left, right = both[:, :4], both[:, 4:]
    left[...] = -1
    openaclnn.leaky_relu(left, 0.5, out=right)
    assert (right == -0.5).all()
    images = np.zeros((2, 300, 300, 8), np.float32).transpose(0, 3, 1, 2)
    images[:, :3] = -1
    openaclnn.leaky_relu(images[:, :3], 0.5, out=images[:, 3:6])
    assert (images[:, 3:6] == -0.5).all()
    assert (images[:, 6:] == 0).all()
    assert refused(left, both[:, 3:7])
    assert refused(images[:, :3], images[:, 2:5])
