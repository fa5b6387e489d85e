# SPDX-License-Identifier: Apache-2.0
"""Device memory in which reading or writing beside a tensor shows."""

from __future__ import annotations

import ctypes
import mmap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .library import Library

GUARD = 64  # bytes around every tensor, which nobody may change
PATTERN = 0xA5
PAGE = mmap.PAGESIZE
FENCE = max(1 << 16, PAGE)  # bytes beside the guards that nobody may read either
TO_DEVICE, TO_HOST = 1, 2


def rounded_up(number: int, unit: int) -> int:
    return (number + unit - 1) // unit * unit


_mprotect = ctypes.CDLL(None).mprotect


class Arena:
    """Device memory that one tensor after the other is in, and a fence before or `behind` it: pages
    that nobody may touch, as far as the system lets the host say so about this memory."""

    def __init__(self, library: Library, behind: bool) -> None:
        self.library, self.behind = library, behind
        self.base, self.room, self.fenced = ctypes.c_void_p(), 0, False

    def reserve(self, size: int, fenced: bool) -> None:
        room = rounded_up(size + 2 * GUARD, PAGE)
        if room > self.room:
            if self.base:
                self._protect(False)
                self.library("aclrtFree")(self.base)
                self.base, self.room = ctypes.c_void_p(), 0  # aclrtMalloc may fail
            whole = ctypes.c_size_t(PAGE + FENCE + room)
            made = self.library("aclrtMalloc")(ctypes.byref(self.base), whole, 0)
            self.library.check("aclrtMalloc", made)
            self.room = room
        if fenced != self.fenced:
            self._protect(fenced)

    @property
    def begin(self) -> int:
        return rounded_up(self.base.value or 0, PAGE) + (0 if self.behind else FENCE)

    def _protect(self, fenced: bool) -> None:
        where = self.begin + (self.room if self.behind else -FENCE)
        access = mmap.PROT_READ | mmap.PROT_WRITE if not fenced else 0
        done = _mprotect(ctypes.c_void_p(where), ctypes.c_size_t(FENCE), access)
        self.fenced = fenced and done == 0


class Arenas:
    """Those of the tensors, by their place in a call, and of the workspace, which is -1."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._made: dict[tuple[int, bool], Arena] = {}

    def memory(self, which: int, given: bytes, run: int, fenced: bool) -> Memory:
        """In the first run a fence stands before it, and in later ones behind it."""
        behind = run > 0
        arena = self._made.setdefault((which, behind), Arena(self._library, behind))
        return Memory(self._library, given, arena, fenced)


class Memory:
    """The memory of a tensor in its arena, with a guard on either side. Behind it the guard is less
    than 64 bytes where a fence follows."""

    def __init__(self, library: Library, given: bytes, arena: Arena, fenced: bool) -> None:
        self.library, self.size = library, len(given)
        arena.reserve(self.size, fenced)
        used = rounded_up(self.size, GUARD)
        self.address = arena.begin + (arena.room - used if arena.behind else GUARD)
        after = used - self.size + (0 if arena.behind and arena.fenced else GUARD)
        self._edges = bytes([PATTERN]) * GUARD, bytes([PATTERN]) * after
        self._whole = GUARD + self.size + after
        self._copy(b"".join((self._edges[0], given, self._edges[1])), TO_DEVICE)

    def _copy(self, host: Any, kind: int) -> None:
        size, begin = ctypes.c_size_t(self._whole), ctypes.c_void_p(self.address - GUARD)
        there = (begin, size, host) if kind == TO_DEVICE else (host, size, begin)
        copied = self.library("aclrtMemcpy")(*there, size, kind)
        self.library.check("aclrtMemcpy", copied)

    def read(self) -> tuple[bytes, bool]:
        """What is there now, and whether the guards are as they were."""
        host = ctypes.create_string_buffer(self._whole)
        self._copy(host, TO_HOST)
        raw, end = host.raw, GUARD + self.size
        return raw[GUARD:end], (raw[:GUARD], raw[end:]) == self._edges
