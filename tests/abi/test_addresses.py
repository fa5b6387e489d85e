# SPDX-License-Identifier: Apache-2.0
"""Addresses that are set after phase 1: new memory, other tensors' memory, memory in between."""

from __future__ import annotations

import numpy as np
import pytest
from tests.abi.abi import INVALID, RUN_ONCE, message, meta, objects, phase1, phase2, synchronize
from tests.support import SEED, all_rows, same, sampled

import openaclnn
from openaclnn import _core
from openaclnn.reference.evaluation import REFERENCES
from openaclnn.rows.table import OPS

pytestmark = pytest.mark.usefixtures("device")


@pytest.mark.parametrize("op", all_rows())
def test_repeatable_executors_and_new_addresses(op):
    attributes = REFERENCES[op.kernel].attributes[0]
    named, out, expected = sampled(op, op.dtypes[0], attributes)
    with objects() as made:
        values = made.values(op, named)
        handles = dict(zip(named, values, strict=True))
        status, size, executor = phase1(op, values)
        assert status == 0, message()
        memory = np.zeros(size, np.uint8)
        assert meta.aclSetAclOpExecutorRepeatable(executor) == 0
        for _ in range(3):
            fresh, out, expected = sampled(op, op.dtypes[0], attributes)
            for setter, parameters in (
                (meta.aclSetInputTensorAddr, op.input_tensors),
                (meta.aclSetOutputTensorAddr, op.outputs),
            ):
                for index, p in enumerate(parameters):
                    address = fresh[p.name].ctypes.data
                    assert setter(executor, index, handles[p.name], address) == 0, message()
                assert setter(executor, len(parameters), handles[p.name], address) == INVALID
                assert message()[1].startswith(f"{setter.__name__}: index must be less than")
            assert phase2(op, executor, memory.ctypes.data, size) == 0, message()
            synchronize()
            assert same(out, expected)
        assert meta.aclDestroyAclOpExecutor(executor) == 0
        assert phase2(op, executor) == INVALID
        assert message() == ("EZ1001", f"{op.name}: {RUN_ONCE.format(op.name)}")


# Group norm has 3 groups of 2 channels. With (1, 6, 256, 270) they take turns when they are stored
# past the cache; u of each lies where the dx of the last will be, which must not be in an input
# still to be read.
@pytest.mark.parametrize("streaming", [1, 1 << 40])
@pytest.mark.parametrize("op", all_rows(lambda op: not op.inplace))
def test_outputs_set_to_the_place_of_inputs(op, streaming):
    """Apart in phase 1, in place in phase 2."""
    divisors = [p.python_name for p in op.attributes if p.name in op.multiples.values()]
    attributes = REFERENCES[op.kernel].attributes[0] | dict.fromkeys(divisors, 3)
    output = op.outputs[0].name
    _core.set_streaming_bytes(streaming)
    openaclnn.set_num_threads(2)  # with more the groups are too small for turns
    for shape in ((2, 6, 20, 9), (1, 6, 256, 270)):
        for over in (p.name for p in op.input_tensors):
            named, out, expected = sampled(op, op.dtypes[0], attributes, shape)
            if named[over].shape != named[output].shape:
                continue
            with objects() as made:
                values = made.values(op, named)
                status, size, executor = phase1(op, values)
                assert status == 0, message()
                handle = dict(zip(named, values, strict=True))[output]
                address = named[over].ctypes.data
                assert meta.aclSetOutputTensorAddr(executor, 0, handle, address) == 0, message()
                memory = np.zeros(size, np.uint8)
                assert phase2(op, executor, memory.ctypes.data, size) == 0, message()
                synchronize()
            assert same([named[over], *out[1:]], expected), f"{shape} over {over}, seed {SEED}"


def test_interleaved_views_may_be_set_to_the_same_addresses():
    """Even and odd elements: their ranges meet, their elements do not."""
    op = OPS[0]
    memory = np.full(9, -4.0, np.float32)
    with objects() as made:
        odd, even = (made.tensor(memory, (4,), (2,), offset) for offset in (1, 0))
        status, _, executor = phase1(op, [odd, made.scalar(0.25), even])
        assert status == 0, message()
        assert meta.aclSetAclOpExecutorRepeatable(executor) == 0
        assert meta.aclSetInputTensorAddr(executor, 0, odd, memory.ctypes.data) == 0
        assert phase2(op, executor) == 0, message()
        synchronize()
        assert (memory == [-1, -4, -1, -4, -1, -4, -1, -4, -4]).all()
        shifted = memory.ctypes.data + 4
        assert meta.aclSetInputTensorAddr(executor, 0, odd, shifted) == 0
        assert phase2(op, executor) == INVALID
        same = f"{op.name}: out must be the same view as self or share no memory with it"
        assert message() == ("EZ1001", f"{same}, but overlaps it at the addresses set")
        assert meta.aclSetInputTensorAddr(executor, 0, odd, shifted + 1) == 0
        assert phase2(op, executor) == INVALID
        assert "self must be aligned to its element size 4, but the address set is" in message()[1]
        assert meta.aclDestroyAclOpExecutor(executor) == 0


def test_views_beside_each_other_may_trade_places():
    """Column halves of one matrix: whole rows of both ranges meet, elements do not."""
    op = OPS[0]
    memory = np.full((4, 16), -4.0, np.float32)
    left, right = memory.ctypes.data, memory.ctypes.data + 32
    with objects() as made:
        x, out = (made.tensor(memory, (4, 8), (16, 1), offset) for offset in (0, 8))
        status, _, executor = phase1(op, [x, made.scalar(0.25), out])
        assert status == 0, message()
        assert meta.aclSetAclOpExecutorRepeatable(executor) == 0
        assert meta.aclSetInputTensorAddr(executor, 0, x, right) == 0
        # The offset of out stays, so this is where the left half begins.
        assert meta.aclSetOutputTensorAddr(executor, 0, out, left - 32) == 0
        assert phase2(op, executor) == 0, message()
        synchronize()
        assert (memory[:, :8] == -1).all()
        assert (memory[:, 8:] == -4).all()
        assert meta.aclSetInputTensorAddr(executor, 0, x, left + 4) == 0
        assert phase2(op, executor) == INVALID
        assert "but overlaps it at the addresses set" in message()[1]
        assert meta.aclDestroyAclOpExecutor(executor) == 0
