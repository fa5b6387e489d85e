# SPDX-License-Identifier: Apache-2.0
"""The C symbols of every row: both phases, refusals with their messages, handles, executors.

The objects and the runtime themselves are tested in C++, tests/c.
"""

from __future__ import annotations

import numpy as np
import pytest
from abi import (
    UNTOUCHED,
    message,
    meta,
    objects,
    phase1,
    phase2,
    run,
    synchronize,
)
from support import SEED, all_rows, arguments, bits, results, rows

import openaclnn
from openaclnn import _core
from openaclnn.reference import REFERENCES, sample
from openaclnn.table import OPS

NULL, INVALID = 161001, 161002
SCALARS = "FLOAT, FLOAT16, INT8, INT32, UINT8, INT16, INT64, DOUBLE, BOOL or BFLOAT16"
RUN_ONCE = (
    "executor must come from {0}GetWorkspaceSize and be run once (make it repeatable to run it "
    "again), but got one that was already run, destroyed or never created"
)

pytestmark = pytest.mark.usefixtures("device")


def assert_refused(op, answer, status, sentence):
    assert answer == (status, UNTOUCHED, UNTOUCHED)  # a failed phase 1 writes nothing
    assert message() == ("EZ1001", f"{op.name}: {sentence}")


def replaced(values, index, value):
    return [value if i == index else v for i, v in enumerate(values)]


def sampled(op, dtype, attributes, shape=None):
    """Arguments by C name, their outputs, and what the Python function makes of them."""
    usual = (3, 41) if op.family == "elementwise" else REFERENCES[op.kernel].example
    shape = shape or usual
    inputs = sample(op, shape, dtype, SEED, attributes)
    named = arguments(op, shape, dtype, attributes)
    named |= {p.name: x.copy() for p, x in zip(op.inputs_, inputs, strict=True)}
    named |= {p.name: attributes[p.python_name] for p in op.attributes}
    return named, [named[p.name] for p in op.outputs], results(op, inputs, attributes)


def same(found, expected) -> bool:
    return all((bits(a) == bits(b)).all() for a, b in zip(found, expected, strict=True))


# ---- phase 1 ----


@pytest.mark.parametrize("op", all_rows())
def test_two_phases(op):
    for dtype in op.dtypes:
        for attributes in REFERENCES[op.kernel].attributes:
            named, out, expected = sampled(op, dtype, attributes)
            run(op, named)
            assert same(out, expected), f"{dtype} {attributes} seed {SEED}"


@pytest.mark.parametrize("op", all_rows())
def test_each_pointer_null(op):
    with objects() as made:
        values = made.values(op, arguments(op))
        for i, p in enumerate(op.parameters):
            if p.required:
                answer = phase1(op, replaced(values, i, None))
                assert_refused(op, answer, NULL, f"{p.name} must not be NULL")
        nothing = [None if p.required else v for p, v in zip(op.parameters, values, strict=True)]
        for given in (values, nothing):  # these two are looked at before all others
            answer = phase1(op, given, size=False)
            assert_refused(op, answer, NULL, "workspaceSize must not be NULL")
            answer = phase1(op, given, executor=False)
            assert_refused(op, answer, NULL, "executor must not be NULL")


@pytest.mark.parametrize("op", all_rows())
def test_stale_and_foreign_handles(op):
    with objects() as made:
        values = made.values(op, arguments(op))
        stale = {"tensor": made.tensor(np.ones(3)), "scalar": made.scalar(1.0)}
        for destroy, handle in made.made[-2:]:
            destroy(handle)
        del made.made[-2:]
        memory = np.ones(64)
        for i, p in enumerate(op.parameters):
            if p.kind not in stale:
                continue
            other = made.scalar(1.0) if p.kind == "tensor" else made.tensor(np.ones(3))
            inside = values[i] + 8
            for wrong in (stale[p.kind], other, inside, memory.ctypes.data, 1, 2**64 - 1):
                answer = phase1(op, replaced(values, i, wrong))
                kind = "aclTensor" if p.kind == "tensor" else "aclScalar"
                why = "but got a handle that was destroyed or never created"
                assert_refused(op, answer, INVALID, f"{p.name} must be a live {kind}, {why}")


@pytest.mark.parametrize("op", rows())
def test_scalar_dtypes(op):
    for i, p in enumerate(op.parameters):
        if p.kind != "scalar":
            continue
        results = set()
        for dtype in SCALARS.replace(" or ", ", ").split(", "):
            with objects() as made:
                named = arguments(op)
                for x in op.inputs_:
                    named[x.name] *= -1
                values = made.values(op, named)
                one = 0x3F80 if dtype == "BFLOAT16" else 1
                values[i] = made.scalar(one, dtype)
                status, _, executor = phase1(op, values)
                assert status == 0, message()
                assert phase2(op, executor) == 0, message()
                synchronize()
                results.add(named[op.outputs[0].name].tobytes())
        assert len(results) == 1, f"{p.name}: one, but not of every dtype"
        with objects() as made:
            values = made.values(op, arguments(op))
            values[i] = made.scalar(1, "COMPLEX64")
            sentence = f"{p.name} must have dtype {SCALARS}, but got COMPLEX64"
            assert_refused(op, phase1(op, values), INVALID, sentence)


@pytest.mark.parametrize("op", rows())
def test_views(op):
    """Strides and offsets over a storage that holds them, and one element less."""
    with objects() as made:
        named = arguments(op)
        values = made.values(op, named)
        for i, p in enumerate(op.parameters):
            if p.kind != "tensor":
                continue
            view = {"shape": (2, 3), "strides": (4, 1), "offset": 5}  # ends at 5 + 4 + 2
            inside = made.tensor(np.ones(12, np.float32), **view, storage=(3, 4))
            status, _, executor = phase1(op, replaced(values, i, inside))
            assert status == 0, message()
            assert phase2(op, executor) == 0, message()
            outside = made.tensor(np.ones(12, np.float32), **view, storage=(11,))
            answer = phase1(op, replaced(values, i, outside))
            reach = "its view of shape [2, 3], strides [4, 1] and offset 5 reaches outside"
            sentence = f"{p.name} must stay inside its storage [11], but {reach}"
            assert_refused(op, answer, INVALID, sentence)
        synchronize()


# ---- phase 2 ----


@pytest.mark.parametrize("op", all_rows())
def test_executors_run_once(op):
    with objects() as made:
        status, size, executor = phase1(op, made.values(op, arguments(op)))
        assert status == 0, message()
        memory = np.zeros(size + 64, np.uint8)
        assert phase2(op, executor, memory.ctypes.data, size + 64) == 0  # more than asked for
        once = f"{op.name}: {RUN_ONCE.format(op.name)}"
        for consumed in (executor, memory.ctypes.data, executor + 8, 1):
            assert phase2(op, consumed, memory.ctypes.data, size + 64) == INVALID
            assert message() == ("EZ1001", once)
        synchronize()


@pytest.mark.parametrize("op", all_rows())
def test_workspace_rules(op):
    with objects() as made:
        values = made.values(op, arguments(op))
        status, size, executor = phase1(op, values)
        assert status == 0, message()
        assert phase2(op, None) == NULL
        assert message() == ("EZ1001", f"{op.name}: executor must not be NULL")
        assert phase2(op, executor, None, size + 1) == NULL
        sentence = f"workspace must not be NULL when workspaceSize is {size + 1}"
        assert message() == ("EZ1001", f"{op.name}: {sentence}")
        memory = np.zeros(size + 5, np.uint8)
        if size > 0:
            assert phase2(op, executor, memory.ctypes.data, size - 1) == INVALID
            least = f"{op.name}: workspaceSize must be at least {size} as phase 1 asked for"
            assert message() == ("EZ1001", f"{least}, but got {size - 1}")
            askew = memory.ctypes.data + 4
            assert phase2(op, executor, askew, size) == INVALID
            aligned = f"{op.name}: workspace must be aligned to 8 bytes, but its address is"
            assert message() == ("EZ1001", f"{aligned} {askew:#x}")
        assert phase2(op, executor, memory.ctypes.data, size) == 0  # a refusal consumes nothing
        synchronize()


def test_an_executor_of_another_operator():
    one, other = OPS[0], OPS[1]
    with objects() as made:
        status, _, executor = phase1(one, made.values(one, arguments(one)))
        assert status == 0
        assert phase2(other, executor) == INVALID
        source = f"executor must come from {other.name}GetWorkspaceSize"
        sentence = f"{other.name}: {source}, but got one of another operator"
        assert message() == ("EZ1001", sentence)
        assert phase2(one, executor) == 0
        synchronize()


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
                (meta.aclSetInputTensorAddr, op.inputs_),
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


# Of group norm: (1, 6, 256, 270) has groups that take turns when they are stored past the cache; u
# of each lies where the dx of the last will be, which must not be in an input still to be read.
@pytest.mark.parametrize("streaming", [1, 1 << 40])
@pytest.mark.parametrize("op", all_rows(lambda op: not op.inplace))
def test_outputs_set_to_the_place_of_inputs(op, streaming):
    """Apart in phase 1, in place in phase 2."""
    grouped = op.family == "group_norm"
    attributes = REFERENCES[op.kernel].attributes[0] | ({"num_groups": 3} if grouped else {})
    output = op.outputs[0].name
    _core.set_streaming_bytes(streaming)
    openaclnn.set_num_threads(2)  # with more the groups are too small for turns
    for shape in ((2, 6, 20, 9), (1, 6, 256, 270)):
        for over in (p.name for p in op.inputs_):
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


def test_a_foreign_stream():
    op = OPS[0]
    with objects() as made:
        _, _, executor = phase1(op, made.values(op, arguments(op)))
        wrong = np.zeros(8)
        assert phase2(op, executor, stream=wrong.ctypes.data) == 361001
        code, sentence = message()
        assert code == "EZ9903"
        assert sentence.startswith(f"{op.name}: stream must be alive, but ")
        assert phase2(op, executor) == 0
        synchronize()


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


@pytest.mark.parametrize(
    ("shape", "strides", "accepted"),
    [
        ((2**62, 4, 0), (4, 1, 1), True),
        ((2**40, 2**40, 0), None, True),
        ((0,), (2**62,), True),
        ((2, 2), (2**61, 1), False),
        ((2**58,), (0,), False),
        ((2**62,), (2**62,), False),
    ],
)
def test_huge_dims(shape, strides, accepted):
    """Sizes do not overflow: an empty view is empty, any other reaches out of its storage."""
    op = OPS[0]
    with objects() as made:
        both = [made.tensor(np.ones(4, np.float32), shape, strides) for _ in range(2)]
        status, size, _ = phase1(op, [both[0], made.scalar(0.25), both[1]])
        assert (status == 0) == accepted, message()
        assert not accepted or size == 0
        if not accepted:
            assert message()[1].startswith((f"{op.name}: self must", f"{op.name}: out must"))
