# SPDX-License-Identifier: Apache-2.0
"""What the tests of quantised functions share: calls with 4-bit integers, rounding to integers, and
comparison with what float64 says.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_rounding import ulp
from tests.aten.aten_samples import CODES, ROWS, Library, Refused, torch

Tensor = torch.Tensor
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
HALVES = (torch.float16, torch.bfloat16)
INT4 = 29

__all__ = ["FLOATS", "HALVES", "INT4", "Int4", "Refused", "call", "miss", "random"]


@dataclass
class Int4:
    """Two elements in a byte, the first in the low half; strides count elements."""

    data: Tensor  # bytes
    shape: tuple[int, ...]
    strides: tuple[int, ...] = ()

    @classmethod
    def of(cls, numbers: Tensor) -> Int4:
        return cls(packed(numbers), tuple(numbers.shape))

    @classmethod
    def empty(cls, *shape: int) -> Int4:
        return cls(torch.full((*shape[:-1], shape[-1] // 2), 0x77, dtype=torch.uint8), shape)

    def transposed(self) -> Int4:
        rows, columns = self.shape
        return Int4(self.data, (columns, rows), (1, columns))

    def numbers(self) -> Tensor:
        return unpacked(self.data).reshape(self.shape)


def packed(numbers: Tensor) -> Tensor:
    pairs = (numbers.to(torch.int64) & 15).unflatten(-1, (-1, 2))
    return (pairs[..., 0] | pairs[..., 1] << 4).to(torch.uint8).contiguous()


def words(numbers: Tensor) -> Tensor:
    return packed(numbers).view(torch.int32)


def unpacked(data: Tensor) -> Tensor:
    """Of bytes or words."""
    halves = data.contiguous().view(torch.uint8).to(torch.int64)
    return ((torch.stack([halves & 15, halves >> 4], -1).flatten(-2) ^ 8) - 8).to(torch.int8)


class PackedLibrary(Library):
    def tensor(self, value: Any) -> int:
        if not isinstance(value, Int4):
            return super().tensor(value)
        rank = len(value.shape)
        shape = (ctypes.c_int64 * rank)(*value.shape)
        strides = (ctypes.c_int64 * rank)(*value.strides) if value.strides else None
        return self.handle(
            "Tensor", shape, ctypes.c_uint64(rank), INT4, strides, ctypes.c_int64(0), 2, shape,
            ctypes.c_uint64(rank), ctypes.c_void_p(value.data.data_ptr()),
        )  # fmt: skip


CODES.setdefault(torch.uint64, 10)


@cache
def library() -> PackedLibrary:
    return PackedLibrary()


def call(name: str, *values: Any) -> list[Any]:
    """Runs both phases; what the function writes."""
    return library()(ROWS[name], list(values))


def random(*shape: int, seed: int = 0, low: float = -2, high: float = 2,
           dtype: torch.dtype = torch.float32) -> Tensor:  # fmt: skip
    """Numbers in [low, high), or integers of the dtype from low to high."""
    generator = torch.Generator().manual_seed(seed + sum(shape))
    if not dtype.is_floating_point:
        return torch.randint(int(low), int(high) + 1, shape, generator=generator).to(dtype)
    made = torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low
    return made.to(dtype)


def saturated(x: Tensor, bits: int = 8) -> Tensor:
    top = 2 ** (bits - 1) - 1
    return torch.round(x).nan_to_num(0).clamp(-top - 1, top).to(torch.int8)


def bits64(scale: Tensor) -> Tensor:
    """Floats as quantisation parameters."""
    return scale.view(torch.int32).to(torch.int64) & 0xFFFFFFFF


def miss(got: Tensor, expected: Tensor, slack: float = 2e-6, ulps: float = 0.51) -> str:
    """How far got is off, an empty text where it is not: 16-bit floats are the expected ones
    rounded once, past rounding errors of a short sum in float, slack of the largest; integers are
    equal.
    """
    if list(got.shape) != list(expected.shape):
        return f"shape {list(got.shape)}, not {list(expected.shape)}"
    if not got.is_floating_point():
        return "" if torch.equal(got, expected.to(got.dtype)) else f"{got} is not {expected}"
    wanted = expected.detach().double()
    allowed = torch.full_like(wanted, slack * float(wanted.abs().max()) if wanted.numel() else 0.0)
    if got.dtype in HALVES:
        allowed += ulps * ulp(wanted, got.dtype)
    off = (got.double() - wanted).abs() - allowed
    off = off.nan_to_num(torch.inf, torch.inf)
    return "" if off.numel() == 0 or off.max() <= 0 else f"off by {off.max().item():.3g}: {got}"


def neighbours(got: Tensor, expected: Tensor, part: float = 0.01) -> bool:
    """Integers of values near a tie may be one apart, in so small a part of them."""
    off = (got.int() - expected.int()).abs()
    return bool(off.max() <= 1) and off.float().mean().item() <= part
