# SPDX-License-Identifier: Apache-2.0
"""Plausible calls of the functions that ATen computes, from the lines of golden/calls, and what
runs them in this process, through their C functions.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

import openaclnn  # loads the library that the rows need
from openaclnn.aten import Row, rows
from openaclnn.aten.library import built_library
from openaclnn.golden import samples as golden
from openaclnn.golden.samples import Sample, tensor_word, words

ROWS = {row.name: row for row in rows()}
CODES = {
    torch.float32: 0, torch.float16: 1, torch.int8: 2, torch.int32: 3, torch.uint8: 4,
    torch.int64: 9, torch.float64: 11, torch.bool: 12, torch.complex64: 16, torch.complex128: 17,
    torch.bfloat16: 27,
}  # fmt: skip
LETTERS = {
    "F": torch.float32, "s": torch.int8, "i": torch.int64, "b": torch.bool, "u": torch.uint8,
    "w": torch.int32,
}  # fmt: skip
NUMBERS = {
    "int": ctypes.c_int64, "int32": ctypes.c_int32, "byte": ctypes.c_int8,
    "double": ctypes.c_double, "float": ctypes.c_float, "bool": ctypes.c_bool,
    "dtype": ctypes.c_int32,
}  # fmt: skip


def sample(line: str) -> Sample:
    name, _, rest = line.partition("(")
    return Sample(ROWS[name], words(rest[:-1]))


def lines() -> list[str]:
    return [f"{name}({text})" for name, texts in golden.lines().items() for text in texts]


@cache
def samples() -> tuple[Sample, ...]:
    """Of the rows; a function that has become openaclnn's own keeps its calls."""
    return tuple(sample(line) for line in lines() if line.partition("(")[0] in ROWS)


def of_float(dtype: torch.dtype, letter: str) -> torch.dtype:
    if letter == "f":
        return dtype
    if letter == "c":
        return torch.complex128 if dtype == torch.float64 else torch.complex64
    return LETTERS[letter]


def tensor(word: str, dtype: torch.dtype, values: torch.dtype, random: torch.Generator) -> Tensor:
    """The tensor of a word; its floats are values that `values` has too."""
    letter, shape, low, high, listed = tensor_word(word)
    own = of_float(dtype, letter)
    if listed is not None:
        return torch.tensor(listed).reshape(shape).to(own)
    if letter == "b":
        return torch.rand(shape, generator=random) < 0.5
    if letter in "iuws":
        first, last = int(low or 0), int(high or 0)
        return torch.randint(first, last + 1, shape, generator=random).to(own)
    if letter == "c":
        pair = torch.rand([*shape, 2], generator=random, dtype=torch.float64)
        made = pair * (float(high or 0) - float(low or 0)) + float(low or 0)
        return torch.view_as_complex(made).to(own)
    first, last = float(low or 0), float(high or 0)
    made = torch.rand(shape, generator=random, dtype=torch.float64) * (last - first) + first
    return made.to(values if letter == "f" else own).to(own)


def arguments(
    sample: Sample,
    dtype: torch.dtype,
    values: torch.dtype,
    seed: int = 0,
    change: Callable[[Tensor], Tensor] = lambda x: x,
) -> list[Any]:
    """Of the C function, as torch's tensors and Python's numbers; change makes other views."""
    random = torch.Generator().manual_seed(seed)

    def made(kind: str, word: Any) -> Any:
        if word is None or kind not in ("tensor", "tensors", "dtype"):
            return word
        if kind == "dtype":
            return CODES[of_float(dtype, word)]
        if kind == "tensors":
            return [made("tensor", one) for one in word]
        return change(tensor(word, dtype, values, random))

    return [made(p.kind, w) for p, w in zip(sample.row.given, sample.words, strict=True)]


class Refused(Exception):
    """The sentence of a refusal."""


class Library:
    """Calls the C functions."""

    def __init__(self) -> None:
        os.environ["TASK_QUEUE_ENABLE"] = "0"  # phase 2 returns its errors
        self.base = ctypes.CDLL("libopenaclnn.so")
        self.rows = ctypes.CDLL(str(built_library()))
        self.base.aclGetRecentErrMsg.restype = ctypes.c_char_p
        for name in ("Tensor", "Scalar", "IntArray", "FloatArray", "BoolArray", "TensorList",
                     "ScalarList"):  # fmt: skip
            getattr(self.base, f"aclCreate{name}").restype = ctypes.c_void_p
        assert self.base.aclrtSetDevice(0) == 0
        self.stream = ctypes.c_void_p()
        assert self.base.aclrtCreateStream(ctypes.byref(self.stream)) == 0

    def array(self, name: str, kind: Any, values: list[Any]) -> int:
        items = (kind * len(values))(*values)
        return self.handle(name, items, ctypes.c_uint64(len(values)))

    def handle(self, name: str, *words: Any) -> int:
        made = getattr(self.base, f"aclCreate{name}")(*words)
        self.made.append((name, made))
        return made

    def tensor(self, value: Tensor) -> int:
        rank = ctypes.c_uint64(value.dim())
        shape = (ctypes.c_int64 * value.dim())(*value.shape)
        strides = (ctypes.c_int64 * value.dim())(*value.stride())
        return self.handle(
            "Tensor", shape, rank, CODES[value.dtype], strides, ctypes.c_int64(0), 2, shape, rank,
            ctypes.c_void_p(value.data_ptr()),
        )  # fmt: skip

    def scalar(self, value: complex | float | int | bool) -> int:
        if isinstance(value, bool):
            held, code = ctypes.c_bool(value), 12
        elif isinstance(value, int):
            held, code = ctypes.c_int64(value), 9
        else:
            held, code = ctypes.c_double(value), 11
        return self.handle("Scalar", ctypes.byref(held), code)

    def argument(self, kind: str, value: Any) -> Any:
        if kind in NUMBERS:
            return NUMBERS[kind](value)
        if value is None:
            return None
        if kind == "text":
            return ctypes.c_char_p(value.encode())
        if kind == "tensor":
            return ctypes.c_void_p(self.tensor(value))
        if kind == "scalar":
            return ctypes.c_void_p(self.scalar(value))
        if kind == "ints":
            return ctypes.c_void_p(self.array("IntArray", ctypes.c_int64, value))
        if kind == "floats":
            return ctypes.c_void_p(self.array("FloatArray", ctypes.c_float, value))
        if kind == "bools":
            return ctypes.c_void_p(self.array("BoolArray", ctypes.c_bool, value))
        one = self.scalar if kind == "scalars" else self.tensor
        items = [None if v is None else one(v) for v in value]
        name = "ScalarList" if kind == "scalars" else "TensorList"
        return ctypes.c_void_p(self.array(name, ctypes.c_void_p, items))

    def __call__(self, row: Row, values: list[Any]) -> list[Tensor]:
        """Runs both phases; returns what the row writes. No product refuses what ATen takes."""
        openaclnn.set_product(None)
        self.made: list[tuple[str, int]] = []
        try:
            self.run(row, values)
        finally:
            for name, made in reversed(self.made):
                getattr(self.base, f"aclDestroy{name}")(ctypes.c_void_p(made))
        written = [
            v
            for i, (p, v) in enumerate(zip(row.given, values, strict=True))
            if p.written or (row.inplace and i == 0)
        ]
        found = []
        for value in written:
            found += value if isinstance(value, list) else [value]
        return [value for value in found if value is not None]

    def run(self, row: Row, values: list[Any]) -> None:
        given = [self.argument(p.kind, v) for p, v in zip(row.given, values, strict=True)]
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        plan = getattr(self.rows, f"{row.name}GetWorkspaceSize")
        code = plan(*given, ctypes.byref(size), ctypes.byref(executor))
        if code == 0:
            code = getattr(self.rows, row.name)(None, size, executor, self.stream)
        if code != 0:
            raise Refused((self.base.aclGetRecentErrMsg() or b"").decode())
