# SPDX-License-Identifier: Apache-2.0
"""The library of operators that ATen computes: this torch has what its rows name, and both phases
report what is wrong.
"""

from __future__ import annotations

import ctypes

import pytest
import torch

from openaclnn.aten import rows
from openaclnn.torch_npu.provider import provider


@pytest.fixture(scope="module")
def library():
    torch.ones(1, device="npu")
    found = ctypes.CDLL(str(provider()))
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
    assert relu(stale, None, ctypes.byref(size), ctypes.byref(executor)) == 161002
    assert "aclnnRelu: self must be alive, but was destroyed or never created" in message(acl)
    assert relu(None, None, ctypes.byref(size), ctypes.byref(executor)) == 0
    # Another operator's executor, and one that has run, are refused.
    run = library.aclnnRelu
    run.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]
    library.aclnnAbs.argtypes = run.argtypes
    stream = torch.npu.current_stream().npu_stream
    first = library.aclnnAbs(None, 0, executor, stream)
    if first != 0:  # without the queue; with it the stream reports the failure
        assert "executor must come from aclnnAbsGetWorkspaceSize" in message(acl)
    else:
        with pytest.raises(RuntimeError, match="executor must come from aclnnAbsGetWorkspaceSize"):
            torch.npu.synchronize()


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
