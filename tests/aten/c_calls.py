# SPDX-License-Identifier: Apache-2.0
"""Calls of the C functions of rows from NumPy, in a process without Python's torch: what the tests
of refusals run. `python c_calls.py HOME` reads expressions, one a line, and writes what each
call answered as a line of JSON: the codes of its phases, and the last sentence or the arrays.
"""

from __future__ import annotations

import ctypes
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from openaclnn.aten import prototypes

CODES = {
    "float32": 0, "float16": 1, "int8": 2, "int32": 3, "uint8": 4, "int16": 6, "int64": 9,
    "float64": 11, "bool": 12, "complex64": 16, "bfloat16": 27,
}  # fmt: skip
NUMBERS = {
    "int": ctypes.c_int64, "int32": ctypes.c_int32, "byte": ctypes.c_int8,
    "double": ctypes.c_double, "float": ctypes.c_float, "bool": ctypes.c_bool,
    "dtype": ctypes.c_int32,
}  # fmt: skip
ACL_INT4 = 29


@dataclass
class Int4:
    """Two elements in a byte; the offset counts elements."""

    data: np.ndarray
    shape: tuple[int, ...]
    offset: int = 0


def f32(*shape: int) -> np.ndarray:
    """1, 2, 3, ..."""
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


def f64(*shape: int) -> np.ndarray:
    return f32(*shape).astype(np.float64)


def bf16(*shape: int) -> np.ndarray:
    import ml_dtypes

    return f32(*shape).astype(ml_dtypes.bfloat16)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def out(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Memory for a result, filled with a value that no result has."""
    return np.full(shape, 77, dtype)


class Calls:
    def __init__(self, home: str) -> None:
        self.rows = ctypes.CDLL(f"{home}/lib64/libopapi.so")
        self.acl = ctypes.CDLL(f"{home}/lib64/libascendcl.so")
        self.base = ctypes.CDLL(f"{home}/lib64/libnnopbase.so")
        self.acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
        for name in (
            "Tensor",
            "Scalar",
            "IntArray",
            "BoolArray",
            "FloatArray",
            "TensorList",
            "ScalarList",
        ):
            getattr(self.base, f"aclCreate{name}").restype = ctypes.c_void_p
        assert self.acl.aclrtSetDevice(0) == 0

    def made(self, name: str, *words: object) -> ctypes.c_void_p:
        handle = getattr(self.base, f"aclCreate{name}")(*words)
        assert handle, self.acl.aclGetRecentErrMsg()
        return ctypes.c_void_p(handle)

    def tensor(self, value: np.ndarray | Int4 | None) -> ctypes.c_void_p | None:
        if value is None:
            return None
        data, offset = value, 0
        dtype, strides = ACL_INT4, None
        if isinstance(value, Int4):
            data, offset = value.data, value.offset
        else:
            dtype = CODES[value.dtype.name]
            strides = (ctypes.c_int64 * value.ndim)(*(s // value.itemsize for s in value.strides))
        shape = (ctypes.c_int64 * len(value.shape))(*value.shape)
        rank = ctypes.c_uint64(len(value.shape))
        memory = ctypes.c_void_p(data.ctypes.data)
        return self.made(
            "Tensor", shape, rank, dtype, strides, ctypes.c_int64(offset), 2, shape, rank, memory
        )

    def scalar(self, value: float) -> ctypes.c_void_p:
        whole = isinstance(value, int)
        held = (ctypes.c_int64 if whole else ctypes.c_double)(value)
        return self.made("Scalar", ctypes.byref(held), 9 if whole else 11)

    def argument(self, kind: str, value: object) -> object:
        if kind in NUMBERS:
            return NUMBERS[kind](value)
        if value is None:
            return None
        if kind == "text":
            return ctypes.c_char_p(value.encode())
        if kind in ("tensor", "scalar"):
            return getattr(self, kind)(value)
        count = ctypes.c_uint64(len(value))
        if kind == "ints":
            return self.made("IntArray", (ctypes.c_int64 * len(value))(*value), count)
        if kind == "bools":
            return self.made("BoolArray", (ctypes.c_bool * len(value))(*value), count)
        if kind == "floats":
            return self.made("FloatArray", (ctypes.c_float * len(value))(*value), count)
        make = self.tensor if kind == "tensors" else self.scalar
        items = (ctypes.c_void_p * len(value))(*(one and one.value for one in map(make, value)))
        return self.made("TensorList" if kind == "tensors" else "ScalarList", items, count)

    def __call__(self, name: str, *values: object, destroyed: int | None = None) -> list[object]:
        """Both phases, each as long as the one before succeeds. A tensor is destroyed between."""
        given = prototypes.functions()[name].given
        assert len(given) == len(values), f"{name} has {len(given)} parameters"
        arguments = [self.argument(p.kind, v) for p, v in zip(given, values, strict=True)]
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        plan = getattr(self.rows, f"{name}GetWorkspaceSize")
        codes = [plan(*arguments, ctypes.byref(size), ctypes.byref(executor))]
        if codes == [0]:
            if destroyed is not None:
                assert self.base.aclDestroyTensor(arguments[destroyed]) == 0
            codes.append(getattr(self.rows, name)(None, ctypes.c_uint64(0), executor, None))
        if codes[-1] != 0:
            return [codes, self.acl.aclGetRecentErrMsg().decode().strip()]
        results = []
        for p, value in zip(given, values, strict=True):
            if p.written or (p is given[0] and not any(q.written for q in given)):
                many = (value or []) if p.kind == "tensors" else [value]
                results += [None if one is None else one.tolist() for one in many]
        return [codes, results]


def main() -> None:
    call = Calls(sys.argv[1])
    names = {f.__name__: f for f in (f32, f64, bf16, i64, i32, out, Int4)} | {
        "np": np,
        "call": call,
    }
    for line in sys.stdin:
        print(json.dumps(eval(line, names)), flush=True)


if __name__ == "__main__":
    assert Path(sys.argv[1]).is_dir()
    main()
