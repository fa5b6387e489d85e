# SPDX-License-Identifier: Apache-2.0
"""The library of operators that ATen computes: this torch has what its rows name, and both phases
report what is wrong.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

import pytest
import torch

from openaclnn.aten import rows
from openaclnn.aten.library import built_library


@pytest.fixture(scope="module")
def library():
    torch.ones(1, device="npu")
    found = ctypes.CDLL(str(built_library()))
    found.openaclnn_aten_name.restype = ctypes.c_char_p
    found.openaclnn_aten_lacks.restype = ctypes.c_char_p
    return found


def test_this_torch_has_what_the_rows_name(library):
    lacking = {}
    for i, row in enumerate(rows()):
        assert library.openaclnn_aten_name(i).decode() == row.name
        if what := library.openaclnn_aten_lacks(i).decode():
            lacking[row.name] = what
    assert lacking == {}
    assert library.openaclnn_aten_name(len(rows())) is None


def test_both_functions_of_every_row_are_exported(library):
    for row in (row for row in rows() if not row.is_type):
        assert getattr(library, row.name)
        assert getattr(library, f"{row.name}GetWorkspaceSize")


KEPT: list[torch.Tensor] = []


def tensor(*shape: int) -> ctypes.c_void_p:
    """A handle of zeros."""
    base = ctypes.CDLL("libascendcl.so")
    base.aclCreateTensor.restype = ctypes.c_void_p
    sizes, rank = (ctypes.c_int64 * len(shape))(*shape), ctypes.c_uint64(len(shape))
    KEPT.append(torch.zeros(shape))
    data = ctypes.c_void_p(KEPT[-1].data_ptr())
    made = base.aclCreateTensor(sizes, rank, 0, None, ctypes.c_int64(0), 2, sizes, rank, data)
    return ctypes.c_void_p(made)


def message(acl) -> str:
    acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
    return acl.aclGetRecentErrMsg().decode()


def test_what_is_wrong_is_answered(library):
    acl = ctypes.CDLL("libascendcl.so")
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    relu = library.aclnnReluGetWorkspaceSize
    message(acl)
    assert relu(None, None, None, ctypes.byref(executor)) == 161001
    assert "aclnnRelu: workspaceSize and executor must not be NULL" in message(acl)
    stale = ctypes.c_void_p(0x1234560)
    run = library.aclnnRelu
    run.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]
    library.aclnnAbs.argtypes = run.argtypes
    stream = torch.npu.current_stream().npu_stream
    sentence = "was destroyed or never created"
    refused = relu(stale, None, ctypes.byref(size), ctypes.byref(executor))
    if os.environ.get("TASK_QUEUE_ENABLE") == "2":  # which leaves refusals to phase 2
        assert refused == 0
        assert run(None, 0, executor, stream) == 0
        with pytest.raises(RuntimeError, match=sentence):
            torch.npu.synchronize()
    else:
        assert refused == 161002
        assert sentence in message(acl)
        assert relu(None, None, ctypes.byref(size), ctypes.byref(executor)) == 161001
        assert "aclnnRelu: self must not be NULL" in message(acl)
    assert relu(tensor(2), tensor(2), ctypes.byref(size), ctypes.byref(executor)) == 0
    # Another operator's executor, and one that has run, are refused.
    first = library.aclnnAbs(None, 0, executor, stream)
    if first != 0:  # without the queue; with it the stream reports the failure
        assert "pass that of aclnnAbsGetWorkspaceSize" in message(acl)
    else:
        with pytest.raises(RuntimeError, match="pass that of aclnnAbsGetWorkspaceSize"):
            torch.npu.synchronize()


@pytest.mark.skipif(os.environ.get("TASK_QUEUE_ENABLE") != "0", reason="the queue runs all work")
def test_one_of_several_threads_runs_an_executor(library, tmp_path):
    source, built = Path(__file__).with_name("racing_threads.cpp"), tmp_path / "racing.so"
    words = ["c++", "-std=c++17", "-O2", "-shared", "-fPIC", "-pthread", source, "-o", built]
    subprocess.run(words, check=True)
    size, executors = ctypes.c_uint64(), (ctypes.c_void_p * 2000)()
    plan, x, y = library.aclnnReluGetWorkspaceSize, tensor(2), tensor(2)
    for i in range(len(executors)):
        made = ctypes.c_void_p()
        assert plan(x, y, ctypes.byref(size), ctypes.byref(made)) == 0
        executors[i] = made
    stream = ctypes.c_void_p(torch.npu.current_stream().npu_stream)
    race = ctypes.CDLL(str(built)).openaclnn_race
    assert race(library.aclnnRelu, executors, len(executors), stream) == 0


def test_phase_1_looks_at_shapes(library):
    """That of the result too, and again where only the shape of out has changed."""
    base = ctypes.CDLL("libascendcl.so")
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    message(base)

    def matmul(*shapes: tuple[int, ...]) -> int:
        handles = (tensor(*shape) for shape in shapes)
        return library.aclnnMatmulGetWorkspaceSize(
            *handles, ctypes.c_int8(0), ctypes.byref(size), ctypes.byref(executor)
        )

    queued = os.environ["TASK_QUEUE_ENABLE"] == "2"  # there phase 2 finds it
    for _ in range(2):
        assert matmul((2, 3), (3, 4), (2, 4)) == 0
        assert matmul((2, 3), (3, 4), (2, 5)) == (0 if queued else 161002)
        assert queued or "aclnnMatmul: out must have shape [2, 4], but got [2, 5]" in message(base)
        assert matmul((2, 3), (2, 3), (2, 3)) == (0 if queued else 161002)
        assert queued or "aclnnMatmul: a and b must have same reduction dim" in message(base)


PROBED = {
    "aclnnLogSigmoid": (1, torch.nn.functional.logsigmoid),
    "aclnnHardswishBackward": (2, torch.ops.aten.hardswish_backward),
}


@pytest.mark.parametrize("name", PROBED)
def test_operators_that_torch_npu_only_asks_for(library, name):
    count, call = PROBED[name]
    base = ctypes.CDLL("libopenaclnn.so")
    base.aclCreateTensor.restype = ctypes.c_void_p
    inputs = [torch.linspace(-4, 4, 6).reshape(2, 3) * (i + 1) for i in range(count)]
    out = torch.zeros(2, 3)
    shape = (ctypes.c_int64 * 2)(2, 3)
    handles = []
    for tensor in (*inputs, out):
        data = ctypes.c_void_p(tensor.data_ptr())
        two = ctypes.c_uint64(2)
        handles.append(
            ctypes.c_void_p(
                base.aclCreateTensor(shape, two, 0, None, ctypes.c_int64(0), 2, shape, two, data)
            )
        )
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    plan, run = getattr(library, f"{name}GetWorkspaceSize"), getattr(library, name)
    assert plan(*handles, ctypes.byref(size), ctypes.byref(executor)) == 0
    stream = ctypes.c_void_p(torch.npu.current_stream().npu_stream)
    assert run(None, ctypes.c_uint64(0), executor, stream) == 0
    assert torch.equal(out, call(*inputs))
    for handle in handles:
        assert base.aclDestroyTensor(handle) == 0
