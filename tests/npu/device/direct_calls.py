# SPDX-License-Identifier: Apache-2.0
"""What the tests of rows that are called as C functions share: the calls, memory for results and
some inputs.
"""

from __future__ import annotations

import ctypes

import pytest
import torch
from torch import Tensor

from openaclnn.aten import rows
from openaclnn.aten.library import built_library

ROWS = {row.name: row for row in rows()}
LACKING = 561003  # the product has no such function
CODES = {
    torch.float32: 0,
    torch.int8: 2,
    torch.int32: 3,
    torch.uint8: 4,
    torch.int64: 9,
    torch.bool: 12,
}
NUMBERS = {
    "int": ctypes.c_int64, "byte": ctypes.c_int8, "double": ctypes.c_double,
    "float": ctypes.c_float, "bool": ctypes.c_bool, "dtype": ctypes.c_int32,
}  # fmt: skip


class DirectCalls:
    """Calls the C functions of rows on tensors and numbers."""

    def __init__(self) -> None:
        torch.ones(1, device="npu")
        self.rows = ctypes.CDLL(str(built_library()))
        self.base = ctypes.CDLL("libopenaclnn.so")
        self.base.aclGetRecentErrMsg.restype = ctypes.c_char_p
        made = ("Tensor", "Scalar", "IntArray", "TensorList")
        for name in made:
            getattr(self.base, f"aclCreate{name}").restype = ctypes.c_void_p
        self.kept: list[object] = []

    def tensor(self, value: Tensor) -> ctypes.c_void_p:
        self.kept.append(value)
        rank = ctypes.c_uint64(value.dim())
        shape = (ctypes.c_int64 * value.dim())(*value.shape)
        strides = (ctypes.c_int64 * value.dim())(*value.stride())
        return ctypes.c_void_p(
            self.base.aclCreateTensor(
                shape, rank, CODES[value.dtype], strides, ctypes.c_int64(0), 2, shape, rank,
                ctypes.c_void_p(value.data_ptr()),
            )
        )  # fmt: skip

    def argument(self, kind: str, value: object) -> object:
        if kind in NUMBERS:
            return NUMBERS[kind](value)
        if value is None:
            return None
        if kind == "tensor":
            return self.tensor(value)
        if kind == "text":
            return ctypes.c_char_p(value.encode())
        if kind == "scalar":
            whole = isinstance(value, int)
            held = (ctypes.c_int64 if whole else ctypes.c_double)(value)
            return ctypes.c_void_p(
                self.base.aclCreateScalar(ctypes.byref(held), 9 if whole else 11)
            )
        count = ctypes.c_uint64(len(value))
        if kind == "ints":
            items = (ctypes.c_int64 * len(value))(*value)
            return ctypes.c_void_p(self.base.aclCreateIntArray(items, count))
        assert kind == "tensors", kind
        items = (ctypes.c_void_p * len(value))(*(self.tensor(one).value for one in value))
        return ctypes.c_void_p(self.base.aclCreateTensorList(items, count))

    def __call__(self, name: str, *values: object) -> tuple[object, ...]:
        """Runs both phases and returns the values; the row writes some of them. Skips the test if
        the product lacks the function.
        """
        given = ROWS[name].given
        assert len(given) == len(values), name
        arguments = [self.argument(p.kind, v) for p, v in zip(given, values, strict=True)]
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        plan = getattr(self.rows, f"{name}GetWorkspaceSize")
        code = plan(*arguments, ctypes.byref(size), ctypes.byref(executor))
        if code == LACKING:
            pytest.skip(self.base.aclGetRecentErrMsg().decode())
        assert code == 0, self.base.aclGetRecentErrMsg()
        stream = ctypes.c_void_p(torch.npu.current_stream().npu_stream)
        code = getattr(self.rows, name)(None, ctypes.c_uint64(0), executor, stream)
        assert code == 0, self.base.aclGetRecentErrMsg()
        code = self.base.aclrtSynchronizeStream(stream)
        if code == LACKING:  # TASK_QUEUE_ENABLE=2 leaves refusals to phase 2
            pytest.skip(self.base.aclGetRecentErrMsg().decode())
        assert code == 0, self.base.aclGetRecentErrMsg()
        return values


def out(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Memory for a result, filled with a value that no result has."""
    return torch.full(shape, 77, dtype=dtype)


def gradients(f, dy: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    return torch.autograd.grad(f(*leaves), leaves, dy)


x23 = torch.linspace(-2, 2, 6).reshape(2, 3)
y23 = torch.linspace(1, 3, 6).reshape(2, 3)
image = torch.sin(torch.arange(2 * 3 * 6 * 6.0)).reshape(2, 3, 6, 6)
volume = torch.sin(torch.arange(2 * 4 * 4 * 4.0)).reshape(1, 2, 4, 4, 4)
line = torch.sin(torch.arange(12.0)).reshape(1, 2, 6)
whole = torch.tensor([[1, 2, 3], [4, 5, 6]])
