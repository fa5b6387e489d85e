# SPDX-License-Identifier: Apache-2.0
"""The C functions on a communicator of one rank refuse what a task could not survive."""

from __future__ import annotations

import ctypes

import openaclnn.npu  # isort: skip  # noqa: F401
import torch

torch.npu.set_device(0)
torch.npu.current_stream()
acl = ctypes.CDLL("libhccl.so")
runtime = ctypes.CDLL("libascendcl.so")
runtime.aclGetRecentErrMsg.restype = ctypes.c_char_p

root, comm = ctypes.create_string_buffer(4108), ctypes.c_void_p()
assert acl.HcclGetRootInfo(root) == 0
assert acl.HcclCommInitRootInfo(1, root, 0, ctypes.byref(comm)) == 0

NULL, FLOAT, SUM, N = None, 4, 0, ctypes.c_uint64
values = (ctypes.c_float * 4)(1, 2, 3, 4)
numbers = ctypes.c_uint64 * 1
HUGE = N(2**60)
FAR = numbers(2**61)


def refused(result: int, sentence: str, function: str, *arguments: object) -> None:
    assert getattr(acl, function)(*arguments, comm, NULL) == result, function
    assert sentence in runtime.aclGetRecentErrMsg().decode(), function


NOT_NULL, TOO_MANY = "a buffer must not be NULL where its count is 4", "a count must be at most"
RANK = "must be in [0, 1), but got 3"
refused(2, NOT_NULL, "HcclAllReduce", NULL, values, N(4), FLOAT, SUM)
refused(2, NOT_NULL, "HcclAllReduce", values, NULL, N(4), FLOAT, SUM)
refused(1, TOO_MANY, "HcclAllReduce", values, values, HUGE, FLOAT, SUM)
refused(2, NOT_NULL, "HcclBroadcast", NULL, N(4), FLOAT, 0)
refused(1, RANK, "HcclBroadcast", values, N(4), FLOAT, 3)
refused(2, NOT_NULL, "HcclAllGather", values, NULL, N(4), FLOAT)
refused(1, TOO_MANY, "HcclReduceScatter", values, values, HUGE, FLOAT, SUM)
refused(2, NOT_NULL, "HcclReduce", values, NULL, N(4), FLOAT, SUM, 0)
refused(2, NOT_NULL, "HcclScatter", NULL, values, N(4), FLOAT, 0)
refused(2, NOT_NULL, "HcclAlltoAll", values, N(4), FLOAT, NULL, N(4), FLOAT)
refused(2, NOT_NULL, "HcclSend", NULL, N(4), FLOAT, 0)
refused(1, RANK, "HcclSend", values, N(4), FLOAT, 3)
refused(1, TOO_MANY, "HcclRecv", values, HUGE, FLOAT, 0)
four, none = numbers(4), numbers(0)
refused(2, NOT_NULL, "HcclAllGatherV", values, N(4), NULL, four, none, FLOAT)
refused(1, TOO_MANY, "HcclAllGatherV", values, N(4), values, four, FAR, FLOAT)
refused(1, TOO_MANY, "HcclReduceScatterV", values, four, FAR, values, N(4), FLOAT, SUM)

refused(1, "recvCount must be", "HcclReduceScatterV", values, four, none, values, N(3), FLOAT, SUM)
refused(5, "op must be in", "HcclAllReduce", values, values, N(4), FLOAT, 7)
refused(5, "dataType must be", "HcclAllReduce", values, values, N(4), 13, SUM)

assert acl.HcclAllReduce(values, values, N(4), FLOAT, SUM, comm, NULL) == 0
assert acl.HcclAllReduce(NULL, NULL, N(0), FLOAT, SUM, comm, NULL) == 0
torch.npu.synchronize()
assert list(values) == [1, 2, 3, 4]
assert acl.HcclCommDestroy(comm) == 0
print("all were refused")
