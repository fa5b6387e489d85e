# SPDX-License-Identifier: Apache-2.0
"""Gradients of large fp32 groups that are stored past the cache: all threads take one group after
the other, and the u of each lies where the dx of the last one will be. The bits do not change.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.support import SEED, bits, results, same

import openaclnn
from openaclnn import _core
from openaclnn.reference.evaluation import CANONICAL_NAN, REFERENCES, sample

OP = next(op for op in openaclnn.OPS if op.python == "group_norm_swish_grad")
LARGE = (2, 4, 400, 451), 2


def case(shape, groups, **attributes):
    given = {**REFERENCES[OP.kernel].attributes[0], "num_groups": groups, **attributes}
    return sample(OP, shape, "FLOAT", SEED, given), given


def in_one_piece(inputs, attributes):
    """The results of groups that do not take turns, and the workspace of that."""
    openaclnn.set_num_threads(1)
    _core.set_streaming_bytes(1 << 40)
    expected = results(OP, inputs, attributes, outputs_for(inputs))
    return expected, workspace(inputs, attributes, expected)


def outputs_for(inputs):
    x, gamma = inputs[3], inputs[4]  # a result like an expanded dy would have its strides
    return np.zeros(x.shape, x.dtype), np.zeros_like(gamma), np.zeros_like(gamma)


def workspace(inputs, attributes, outputs):
    named = {p.python_name: x for p, x in zip(OP.input_tensors, inputs, strict=True)} | attributes
    named |= {p.python_name: x for p, x in zip(OP.outputs, outputs, strict=True)}
    return openaclnn.plan(OP.name, **named).workspace_size


def assert_in_turns(inputs, attributes, out=None):
    """Same bits, for any number of threads; and it is in turns that they are found."""
    expected, whole = in_one_piece(inputs, attributes)
    _core.set_streaming_bytes(1)
    assert workspace(inputs, attributes, expected) > whole  # for the sums of segments
    for threads in (1, 2, 3):
        openaclnn.set_num_threads(threads)
        dx, *others = outputs_for(inputs)
        found = results(OP, inputs, attributes, (dx if out is None else out, *others))
        assert same(found, expected), f"{threads} threads, seed {SEED}"
    return expected


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_anywhere_in_a_cache_line(scale):
    inputs, attributes = case(*LARGE, swish_scale=scale)
    for start in (0, 1, 5, 16):
        room = np.zeros(inputs[0].size + 32, np.float32)
        part = room[start : start + inputs[0].size]
        assert_in_turns(inputs, attributes, part.reshape(inputs[0].shape))
        assert not np.delete(room, np.s_[start : start + part.size]).any(), f"beyond, from {start}"


# One channel a group; a last segment, of 16,384 positions, shorter than what is before a line.
@pytest.mark.parametrize(
    ("shape", "groups"), [((1, 3, 180229), 3), ((3, 8, 1 << 14), 1), ((2, 6, 211, 311), 3)], ids=str
)
def test_shapes(shape, groups):
    inputs, attributes = case(shape, groups)
    for start in (0, 3):
        room = np.zeros(inputs[0].size + 16, np.float32)
        assert_in_turns(inputs, attributes, room[start : start + inputs[0].size].reshape(shape))


def test_channels_apart():
    """Every second channel of larger tensors, in and out, or one sample for all."""
    inputs, attributes = case(*LARGE)
    names = [p.python_name for p in OP.input_tensors]
    shape, _ = LARGE
    for spread in itertools.product((False, True), repeat=3):
        given = list(inputs)
        for name, apart in zip(("x", "dy"), spread, strict=False):
            if apart:
                given[names.index(name)] = np.repeat(inputs[names.index(name)], 2, 1)[:, ::2]
        room = np.zeros((shape[0], 2 * shape[1], *shape[2:]), np.float32)
        assert_in_turns(given, attributes, room[:, ::2] if spread[2] else None)
        assert not room[:, 1::2].any()
    dy = inputs[names.index("dy")]
    given = [np.broadcast_to(x[:1], x.shape) if x is dy else x for x in inputs]
    assert_in_turns(given, attributes, np.zeros(shape, np.float32))


@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
def test_no_number_in_one_group(value):
    inputs, attributes = case(*LARGE)
    for name, channel in itertools.product(("x", "dy"), (0, 3)):
        given = [x.copy() for x in inputs]
        given[[p.python_name for p in OP.input_tensors].index(name)][1, channel, 399, 450] = value
        dx = assert_in_turns(given, attributes)[0]
        nan = np.isnan(dx)
        assert nan.any()
        assert not nan[0].any()
        assert not nan[1, 2:].any() or not nan[1, :2].any()
        assert (bits(dx)[nan] == CANONICAL_NAN["FLOAT"]).all()


@pytest.mark.parametrize(("gamma", "beta"), [(False, True), (True, False), (False, False)])
def test_parameters_that_are_not_required(gamma, beta):
    inputs, attributes = case(*LARGE)
    expected, _ = in_one_piece(inputs, attributes)
    _core.set_streaming_bytes(1)
    openaclnn.set_num_threads(2)
    attributes |= {"dgamma_is_require": gamma, "dbeta_is_require": beta}
    named = {p.python_name: x for p, x in zip(OP.input_tensors, inputs, strict=True)} | attributes
    found = openaclnn.group_norm_swish_grad(**named)
    for wanted, y, z in zip((True, gamma, beta), found, expected, strict=True):
        assert y is None or not wanted or same([y], [z])
        assert (y is not None) == wanted
