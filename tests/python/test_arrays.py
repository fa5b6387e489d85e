# SPDX-License-Identifier: Apache-2.0
"""Kinds of arrays in and out: NumPy and DLPack. torch has its own file."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from tests.support import SEED, call, rows

import openaclnn
from openaclnn.reference.evaluation import REFERENCES, dtype_name, sample

X = np.array([[-2.0, -0.0, 3.0], [1.0, -4.0, 0.5]], np.float32)
Y = np.array([[-0.5, -0.0, 3.0], [1.0, -1.0, 0.5]], np.float32)  # leaky_relu(X, 0.25)


class Producer:
    """An array of a library that knows DLPack and nothing else."""

    def __init__(self, array):
        self.array = np.from_dlpack(array)

    def __dlpack__(self):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Standard(Producer):
    """The same with the array API standard's way to its namespace."""

    def __array_namespace__(self):
        return SimpleNamespace(from_dlpack=Standard)


@pytest.mark.parametrize("op", rows())
def test_numpy_in_numpy_out(op):
    for dtype in op.dtypes:
        inputs = sample(op, (3, 5), dtype, SEED)
        result = call(op, inputs, REFERENCES[op.kernel].attributes[0])
        assert type(result) is np.ndarray
        assert (dtype_name(result.dtype), result.shape) == (dtype, (3, 5))


def test_results_keep_the_memory_order():
    for order in ("C", "F"):
        result = openaclnn.leaky_relu(np.asarray(X, order=order), 0.25)
        assert result.flags[f"{order}_CONTIGUOUS"]
    permuted = openaclnn.leaky_relu(np.zeros((2, 3, 4, 5), np.float32).transpose(0, 3, 1, 2))
    assert permuted.transpose(0, 2, 3, 1).flags.c_contiguous


def test_rank_0_stays_an_array():
    result = openaclnn.leaky_relu(np.array(-2.0), 0.25)
    assert type(result) is np.ndarray
    assert (result.shape, result.item()) == ((), -0.5)


def test_dlpack_in_numpy_out():
    result = openaclnn.leaky_relu(Producer(X), 0.25)
    assert type(result) is np.ndarray
    assert (result == Y).all()


def test_dlpack_in_its_own_kind_out():
    result = openaclnn.leaky_relu(Standard(X), 0.25)
    assert type(result) is Standard
    assert (result.array == Y).all()


def test_what_numpy_does_not_lend_goes_by_asarray():
    """bfloat16, in an array of ml_dtypes."""

    def refused(_):
        raise BufferError

    class Other(Producer):
        ways = SimpleNamespace(from_dlpack=refused, asarray=lambda array: ("ours", array))

        def __array_namespace__(self):
            return self.ways

    kind, result = openaclnn.leaky_relu(Other(X), 0.25)
    assert kind == "ours"
    assert (result == Y).all()
    del Other.ways.asarray
    assert type(openaclnn.leaky_relu(Other(X), 0.25)) is np.ndarray


def test_dlpack_views_are_read_in_place():
    backwards = Producer(X[::-1, ::-1])
    assert (openaclnn.leaky_relu(backwards, 0.25) == Y[::-1, ::-1]).all()
    source = X.copy()
    out = np.empty_like(X)
    later = openaclnn.plan("aclnnLeakyRelu", Producer(source), 0.25, out)
    source *= 2
    later.run()
    assert (out == 2 * Y).all()


def test_dlpack_is_not_written():
    with pytest.raises(openaclnn.AclnnError, match="out must be a NumPy array or a torch tensor"):
        openaclnn.leaky_relu(X, out=Producer(X.copy()))


def test_masked_arrays_are_not_read_as_plain_ones():
    with pytest.raises(openaclnn.AclnnError, match=r"but is a masked one: pass x.filled"):
        openaclnn.leaky_relu(np.ma.masked_array(X, X > 0))


def test_an_out_array_is_returned_as_it_is():
    out = np.empty_like(X)
    assert openaclnn.leaky_relu(Standard(X), 0.25, out=out) is out
