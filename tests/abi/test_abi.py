# SPDX-License-Identifier: Apache-2.0
"""The C symbols of every row: both phases, refusals with their messages, handles, executors.

The objects and the runtime themselves are tested in C++, tests/c.
"""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from tests.abi.abi import (
    INVALID,
    RUN_ONCE,
    UNTOUCHED,
    acl,
    message,
    meta,
    objects,
    phase1,
    phase2,
    run,
    synchronize,
)
from tests.support import SEED, all_rows, arguments, rows, same, sampled

from openaclnn.reference.evaluation import REFERENCES
from openaclnn.rows.table import OPS

NULL = 161001
SCALARS = "FLOAT, FLOAT16, INT8, INT32, UINT8, INT16, INT64, DOUBLE, BOOL or BFLOAT16"

pytestmark = pytest.mark.usefixtures("device")


def assert_refused(op, returned, status, sentence):
    assert returned == (status, UNTOUCHED, UNTOUCHED)  # a failed phase 1 writes nothing
    assert message() == ("EZ1001", f"{op.name}: {sentence}")


def replaced(values, index, value):
    return [value if i == index else v for i, v in enumerate(values)]


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
                returned = phase1(op, replaced(values, i, None))
                assert_refused(op, returned, NULL, f"{p.name} must not be NULL")
        nothing = [None if p.required else v for p, v in zip(op.parameters, values, strict=True)]
        for given in (values, nothing):  # these two are looked at before all others
            returned = phase1(op, given, size=False)
            assert_refused(op, returned, NULL, "workspaceSize must not be NULL")
            returned = phase1(op, given, executor=False)
            assert_refused(op, returned, NULL, "executor must not be NULL")


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
                returned = phase1(op, replaced(values, i, wrong))
                why = f"{p.name} {wrong:#x} was destroyed or never created"
                assert_refused(op, returned, INVALID, why)


@pytest.mark.parametrize("op", rows())
def test_scalar_dtypes(op):
    for i, p in enumerate(op.parameters):
        if p.kind != "scalar":
            continue
        results = set()
        for dtype in SCALARS.replace(" or ", ", ").split(", "):
            with objects() as made:
                named = arguments(op)
                for x in op.input_tensors:
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
            returned = phase1(op, replaced(values, i, outside))
            reach = "its view of shape [2, 3], strides [4, 1] and offset 5 reaches outside"
            sentence = f"{p.name} must stay inside its storage [11], but {reach}"
            assert_refused(op, returned, INVALID, sentence)
        synchronize()


# ---- phase 2 ----


def test_a_workspace_between_the_elements_of_a_tensor():
    """Rows of x lie far apart; a workspace may lie between them."""
    op = next(op for op in OPS if op.name == "aclnnGroupNormSwishGrad")
    given = arguments(op)
    x = given["x"]
    apart = 1 << 16
    rows = np.zeros((x.shape[0], apart), np.float32)
    elements = x[0].size
    rows[:, :elements] = x.reshape(x.shape[0], -1)
    with objects() as made:
        values = made.values(op, given)
        strides = (apart, *(s // 4 for s in x.strides[1:]))
        values[[p.name for p in op.parameters].index("x")] = made.tensor(rows, x.shape, strides)
        status, size, executor = phase1(op, values)
        assert status == 0, message()
        assert 0 < size < apart
        between = rows.ctypes.data + (4 * elements + 7) // 8 * 8
        over = f"{op.name}: workspace must share no memory with x, but overlaps it"
        inside = 4 * elements // 16 * 8  # with enough memory around it for any gap
        for on in (0, inside, 4 * apart - 8):
            assert phase2(op, executor, rows.ctypes.data + on, size) == INVALID
            assert message()[1] == over
        assert phase2(op, executor, between, size) == 0, message()
        synchronize()


def test_ending_executors():
    """An executor that was run may be destroyed any number of times; any other once."""
    op = OPS[0]
    with objects() as made:
        values = made.values(op, arguments(op))
        ran, kept, unused = (phase1(op, values)[2] for _ in range(3))
        assert meta.aclSetAclOpExecutorRepeatable(kept) == 0
        assert phase2(op, ran) == phase2(op, kept) == 0
        synchronize()
        for _ in range(2):
            assert meta.aclDestroyAclOpExecutor(ran) == 0
        lasting, foreign = [], np.zeros(1)
        for executor in (kept, unused):
            assert meta.aclDestroyAclOpExecutor(executor) == 0
            lasting.append(executor)
        for wrong in (*lasting, kept + 8, foreign.ctypes.data, 1):
            assert meta.aclDestroyAclOpExecutor(wrong) == INVALID, hex(wrong)
            call = "aclDestroyAclOpExecutor"
            gone = f"{call}: executor {wrong:#x} was destroyed or never created"
            assert message() == ("EZ1001", gone)
        # Clients destroy all that they ran at exit, when handles have come again.
        many = []
        for _ in range(1000):
            many.append(phase1(op, values)[2])
            assert phase2(op, many[-1]) == 0
        synchronize()
        assert len(set(many)) < len(many)
        assert all(meta.aclDestroyAclOpExecutor(executor) == 0 for executor in many)


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
        given = arguments(op)
        named = {p.name: given[p.name] for p in (*op.input_tensors, *op.outputs)}
        values = made.values(op, given)
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
            own = ctypes.c_void_p()  # with 32 bytes more, as on the device
            assert acl.aclrtMalloc(ctypes.byref(own), ctypes.c_size_t(size), 0) == 0
            assert phase2(op, executor, own.value + 40, size) == INVALID
            asked = f"{op.name}: workspace must have the {size} bytes that phase 1 asked for"
            short = f"but the allocation of {own.value + 40:#x} has {size - 8} left"
            assert message() == ("EZ1001", f"{asked}, {short}")
            assert acl.aclrtFree(own) == 0
            for name, array in named.items():
                for end in (0, (array.nbytes - 1) // 8 * 8):
                    over = array.ctypes.data + end
                    assert phase2(op, executor, over, size) == INVALID
                    apart = f"{op.name}: workspace must share no memory with"
                    assert message()[1].startswith(apart), name
        assert phase2(op, executor, memory.ctypes.data, size) == 0  # a refusal consumes nothing
        synchronize()


def test_an_executor_of_another_operator():
    one, other = OPS[0], OPS[1]
    with objects() as made:
        status, _, executor = phase1(one, made.values(one, arguments(one)))
        assert status == 0
        assert phase2(other, executor) == INVALID
        source = f"executor belongs to another operator; pass that of {other.name}GetWorkspaceSize"
        assert message() == ("EZ1001", f"{other.name}: {source}")
        assert phase2(one, executor) == 0
        synchronize()


def test_a_foreign_stream():
    op = OPS[0]
    with objects() as made:
        _, _, executor = phase1(op, made.values(op, arguments(op)))
        wrong = np.zeros(8)
        assert phase2(op, executor, stream=wrong.ctypes.data) == 361001
        code, sentence = message()
        assert code == "EZ9903"
        assert sentence.startswith(f"{op.name}: stream {wrong.ctypes.data:#x} was destroyed")
        assert phase2(op, executor) == 0
        synchronize()


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
