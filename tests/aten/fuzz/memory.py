# SPDX-License-Identifier: Apache-2.0
"""Memory of tensors: between pages without access, so that a step over its end is a death."""

from __future__ import annotations

import ctypes
import mmap
import random
import struct
from functools import cache

from .values import BFLOAT16, BOOL, DOUBLE, DTYPES, FLOAT, HALF, T

PAGE = mmap.PAGESIZE
POISON = bytes([0xA5, 0xA5, 0xA5, 0xA7, 0xA5, 0xA5, 0xA5, 0x25])
MOST_BYTES = 1 << 22
_SLOTS = 48
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_NOTHING, _READ_WRITE, _PRIVATE_ANONYMOUS = 0, 3, 0x22


def _map(pages: int) -> int:
    """Pages between two without access."""
    base = _libc.mmap(None, (pages + 2) * PAGE, _NOTHING, _PRIVATE_ANONYMOUS, -1, 0)
    if base == ctypes.c_void_p(-1).value or _libc.mprotect(base + PAGE, pages * PAGE, _READ_WRITE):
        raise MemoryError(f"{pages} pages for the tensors of a call")
    return base + PAGE


_SPECIAL = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 3e38, -3e38, 1e-45, 1.0, -1.0]
_EDGES = [0, 1, -1, 2, -(1 << 63), (1 << 63) - 1, 1 << 31, -(1 << 31), 127, -128, 255, 32767]


def pattern(dtype: int, numbers: list) -> bytes:
    name, size = DTYPES[dtype]
    if dtype in (FLOAT, DOUBLE):
        return struct.pack(
            f"<{len(numbers)}{'f' if size == 4 else 'd'}", *map(_float(size), numbers)
        )
    if dtype == HALF:
        return b"".join(_half(x) for x in numbers)
    if dtype == BFLOAT16:
        return b"".join(struct.pack("<f", _float(4)(x))[2:] for x in numbers)
    if name in ("complex64", "complex128"):
        return pattern(FLOAT if size == 8 else DOUBLE, [x for n in numbers for x in (n, n)])
    if name == "complex32":
        return pattern(HALF, [x for n in numbers for x in (n, n)])
    whole = [int(x) if x == x and abs(x) < 1e19 else 1 << 62 for x in numbers]
    if dtype == BOOL:
        return bytes(x != 0 for x in whole)
    return b"".join((x & ((1 << 8 * size) - 1)).to_bytes(size, "little") for x in whole)


def _float(size: int):
    def limited(x: float) -> float:
        x = float(x)
        return x if size == 8 or x != x or abs(x) == float("inf") else max(-3.4e38, min(3.4e38, x))

    return limited


def _half(x: float) -> bytes:
    try:
        return struct.pack("<e", float(x))
    except OverflowError:
        return struct.pack("<e", float("inf") if x > 0 else float("-inf"))


@cache
def _pool(dtype: int, fill: str) -> bytes:
    chance = random.Random(f"{dtype} {fill}")
    is_float = dtype in (FLOAT, DOUBLE, HALF, BFLOAT16) or "complex" in DTYPES[dtype][0]
    if fill == "zero":
        numbers = [0]
    elif fill == "one":
        numbers = [1]
    elif fill.startswith("const:"):
        numbers = [(float if is_float else int)(fill[6:])]
    elif fill.startswith("index:"):
        numbers = [chance.randrange(max(int(fill[6:]), 1)) for _ in range(509)]
    elif fill.startswith("list:"):
        listed = map(float, fill[5:].split(","))
        numbers = [x if is_float else int(x) for x in listed]
    elif fill == "wild":
        numbers = [chance.choice(_SPECIAL if is_float else _EDGES) for _ in range(251)]
    elif fill == "unit":
        numbers = [chance.random() for _ in range(509)]
    elif is_float:
        numbers = [chance.gauss(0, 1) for _ in range(509)]
    else:
        numbers = [chance.randrange(2 if dtype == BOOL else 6) for _ in range(509)]
    return pattern(dtype, numbers)


def contents(tensor: T, elements: int) -> bytes:
    size = DTYPES.get(tensor.dtype, ("", 1))[1]
    wanted = elements * size
    if tensor.fill == "poison":
        return (POISON * (wanted // 8 + 1))[:wanted]
    pool = _pool(tensor.dtype if tensor.dtype in DTYPES else 4, tensor.fill)
    start = tensor.salt % (len(pool) // size) * size
    rotated = pool[start:] + pool[:start]
    return (rotated * (wanted // len(rotated) + 1))[:wanted]


class TooLarge(Exception):
    """A tensor that needs more memory than a call may have: there is no such call."""


class Region:
    """The memory of one tensor."""

    def __init__(self, tensor: T, arena: Arena) -> None:
        low, high = tensor.extent()
        size = DTYPES.get(tensor.dtype, ("", 1))[1]
        used = max(high, 0) * size
        if low < 0 or used >= 1 << 62:  # no address space has it
            used = high = 0
        if used > MOST_BYTES:
            raise TooLarge
        pages = max(1, -(-used // PAGE))
        self.bytes = pages * PAGE
        self.base = arena.take(pages)
        self.address = self.base if tensor.begin else self.base + self.bytes - used
        start = self.address - self.base
        whole = bytearray((POISON * (self.bytes // 8))[: self.bytes])
        whole[start : start + used] = contents(tensor, max(high, 0))
        self.before = bytes(whole)
        ctypes.memmove(self.base, self.before, self.bytes)
        self.start, self.size, self.tensor = start, size, tensor

    def now(self) -> bytes:
        return ctypes.string_at(self.base, self.bytes)

    def _elements(self, after: bytes) -> bytearray:
        """after, with the elements of the tensor as they were."""
        tensor, size = self.tensor, self.size
        restored = bytearray(after)
        places = [self.start + tensor.offset * size]
        for length, step in zip(tensor.shape, tensor.steps(), strict=True):
            places = [p + k * step * size for p in places for k in range(length if step else 1)]
        for p in places:
            restored[p : p + size] = self.before[p : p + size]
        return restored

    def stray(self, after: bytes) -> bool:
        """Whether bytes beside the elements changed."""
        if after == self.before:
            return False
        tensor = self.tensor
        if tensor.count <= 0:
            return True
        if tensor.strides is None:
            a = self.start + tensor.offset * self.size
            b = a + tensor.count * self.size
            return after[:a] != self.before[:a] or after[b:] != self.before[b:]
        return self._elements(after) != self.before

    def is_untouched(self, after: bytes) -> bool:
        """A result was expected, and none of its bytes changed."""
        return self.tensor.fill == "poison" and self.tensor.count > 0 and after == self.before


class Arena:
    """Regions of one call after the other."""

    def __init__(self) -> None:
        self.slots = [_map(1) for _ in range(_SLOTS)]
        self.next = 0
        self.maps: list[tuple[int, int]] = []

    def reset(self) -> None:
        self.next = 0
        for base, pages in self.maps:
            _libc.munmap(ctypes.c_void_p(base - PAGE), ctypes.c_size_t((pages + 2) * PAGE))
        self.maps.clear()

    def take(self, pages: int) -> int:
        """Most tensors have one page, which is mapped once and used by each call."""
        if pages == 1 and self.next < len(self.slots):
            self.next += 1
            return self.slots[self.next - 1]
        base = _map(pages)
        self.maps.append((base, pages))
        return base
