# SPDX-License-Identifier: Apache-2.0
"""The C interface through ctypes: tensors over NumPy memory, both phases of any row, messages."""

from __future__ import annotations

import ctypes
import re
from contextlib import contextmanager

import numpy as np

import openaclnn
from openaclnn.reference.evaluation import dtype_name
from openaclnn.rows.libraries import LIBRARIES
from openaclnn.rows.schema import Op

LIB = openaclnn.home() / "lib64"
NAMES = tuple(LIBRARIES)
DTYPES = {
    "FLOAT": 0, "FLOAT16": 1, "INT8": 2, "INT32": 3, "UINT8": 4, "INT16": 6, "INT64": 9,
    "DOUBLE": 11, "BOOL": 12, "COMPLEX64": 16, "BFLOAT16": 27,
}  # fmt: skip
C_TYPES = {
    "tensor": ctypes.c_void_p,
    "scalar": ctypes.c_void_p,
    "double": ctypes.c_double,
    "int64": ctypes.c_int64,
    "bool": ctypes.c_bool,
    "text": ctypes.c_char_p,
}
UNTOUCHED = 0x5A5A5A5A
INVALID = 161002
RUN_ONCE = (
    "executor was already run, destroyed or never created; call {0}GetWorkspaceSize again, or "
    "make it repeatable"
)


def library(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(LIB / f"lib{name}.so"))


acl, meta, ops = library("ascendcl"), library("nnopbase"), library("opapi_nn")
acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
acl.aclrtGetSocName.restype = ctypes.c_char_p
meta.aclCreateTensor.restype = meta.aclCreateScalar.restype = ctypes.c_void_p
for _destroy in (meta.aclDestroyTensor, meta.aclDestroyScalar, meta.aclDestroyAclOpExecutor):
    _destroy.argtypes = [ctypes.c_void_p]
for _set in (meta.aclSetInputTensorAddr, meta.aclSetOutputTensorAddr, meta.aclSetTensorAddr):
    _set.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
meta.aclSetAclOpExecutorRepeatable.argtypes = [ctypes.c_void_p]


def message() -> tuple[str, str]:
    """Takes the one pending message; returns its code and sentence."""
    text = acl.aclGetRecentErrMsg().decode()
    match = re.fullmatch(r"\[PID:\d+\] \d{4}(?:-\d\d){3}[\d:.]+ \w+\((\w+)\): (.*)\n", text)
    assert match, text
    return match[1], match[2]


def int64s(values):
    return (ctypes.c_int64 * len(values))(*values)


class Objects:
    """Makes tensors and scalars and destroys them at the end."""

    def __init__(self):
        self.made = []
        self.arrays = []  # whose memory the tensors are

    def tensor(self, array, shape=None, strides=None, offset=0, storage=None):
        """A view of an array's memory; without further arguments, the array itself."""
        shape = array.shape if shape is None else shape
        storage = (array.size,) if storage is None else storage
        handle = meta.aclCreateTensor(
            int64s(shape), ctypes.c_uint64(len(shape)), DTYPES[dtype_name(array.dtype)],
            None if strides is None else int64s(strides), ctypes.c_int64(offset), 2,
            int64s(storage), ctypes.c_uint64(len(storage)), ctypes.c_void_p(array.ctypes.data),
        )  # fmt: skip
        assert handle
        self.made.append((meta.aclDestroyTensor, handle))
        self.arrays.append(array)
        return handle

    def scalar(self, value, dtype="DOUBLE"):
        kinds = {"FLOAT": "f4", "DOUBLE": "f8", "BFLOAT16": "u2", "BOOL": "u1"}
        memory = np.array([value]).astype(kinds.get(dtype, dtype.lower()))
        handle = meta.aclCreateScalar(ctypes.c_void_p(memory.ctypes.data), DTYPES[dtype])
        assert handle
        self.made.append((meta.aclDestroyScalar, handle))
        return handle

    def values(self, op: Op, named):
        """The arguments of phase 1, in order, from arrays and numbers by C name."""
        make = {"tensor": self.tensor, "scalar": self.scalar}
        return [make.get(p.kind, lambda value: value)(named[p.name]) for p in op.parameters]


@contextmanager
def objects():
    made = Objects()
    try:
        yield made
    finally:
        for destroy, handle in reversed(made.made):
            destroy(handle)


def phase1(op: Op, values, size=True, executor=True):
    """Status, workspaceSize and executor; the last two UNTOUCHED where phase 1 left them alone."""
    function = getattr(ops, op.name + "GetWorkspaceSize")
    function.argtypes = [C_TYPES[p.kind] for p in op.parameters] + [ctypes.c_void_p] * 2
    workspace_size, handle = ctypes.c_uint64(UNTOUCHED), ctypes.c_void_p(UNTOUCHED)
    status = function(
        *values,
        ctypes.byref(workspace_size) if size else None,
        ctypes.byref(handle) if executor else None,
    )
    return status, workspace_size.value, handle.value


def phase2(op: Op, executor, workspace=None, workspace_size=0, stream=None):
    function = getattr(ops, op.name)
    function.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]
    return function(workspace, workspace_size, executor, stream)


def synchronize():
    assert acl.aclrtSynchronizeStream(None) == 0


def run(op: Op, named):
    """Both phases over contiguous arrays, on the default stream."""
    with objects() as made:
        status, size, executor = phase1(op, made.values(op, named))
        assert status == 0, message()
        workspace = np.empty(size, np.uint8)
        assert phase2(op, executor, workspace.ctypes.data if size else None, size) == 0, message()
    synchronize()  # after the tensors are gone, as programs do
