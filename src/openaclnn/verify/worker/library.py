# SPDX-License-Identifier: Apache-2.0
"""The library that is looked at, by its symbols."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from typing import Any


class Refused(Exception):
    """A status that is not 0."""

    def __init__(self, step: str, status: int) -> None:
        super().__init__(step)
        self.step, self.status = step, status


class _DlInfo(ctypes.Structure):
    """What dladdr finds out about an address."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


class Library:
    """The symbols of the library; those that it lacks come from the fallbacks."""

    def __init__(self, path: str, fallbacks: list[str]) -> None:
        self._path, self._fallbacks = path, fallbacks
        self._others: list[ctypes.CDLL] = []
        try:
            self._own = ctypes.CDLL(path)
        except OSError as error:
            if "undefined symbol" not in str(error):
                raise
            self._others = [ctypes.CDLL(file, ctypes.RTLD_GLOBAL) for file in fallbacks]
            self._own = ctypes.CDLL(path)
        self.message = self("aclGetRecentErrMsg", ctypes.c_char_p)
        self._stream = ctypes.c_void_p()
        self("aclInit")(None)  # may have been called by the library itself
        self.check("aclrtSetDevice", self("aclrtSetDevice")(0))
        self.check("aclrtCreateStream", self("aclrtCreateStream")(ctypes.byref(self._stream)))

    def __call__(self, name: str, result: Any = ctypes.c_int) -> Any:
        if not self.has(name) and not self._others:
            self._others = [ctypes.CDLL(file) for file in self._fallbacks]
        for library in (self._own, *self._others):
            if hasattr(library, name):
                function = library[name]
                function.restype = result
                return function
        raise Refused(f"there is no {name}", -1)

    def has(self, name: str) -> bool:
        return hasattr(self._own, name)

    def operators(self, names: list[str]) -> dict[str, bool]:
        """Those that the file defines itself, not what it is linked against; where it defines
        none, as a library that only stands for others, those of its dependencies."""
        found = {name: self.has(f"{name}GetWorkspaceSize") for name in names}
        own = {n: has and self._defines(f"{n}GetWorkspaceSize") for n, has in found.items()}
        return own if any(own.values()) else found

    def halves(self, names: Iterable[str]) -> list[str]:
        """Those of its operators of which the file defines phase 1 alone."""
        return [n for n in names if self._defines(f"{n}GetWorkspaceSize")
                and not (self.has(n) and self._defines(n))]  # fmt: skip

    def _defines(self, name: str) -> bool:
        where = _DlInfo()
        address = ctypes.cast(self._own[name], ctypes.c_void_p)
        if not ctypes.CDLL(None).dladdr(address, ctypes.byref(where)) or not where.file:
            return True
        return os.path.realpath(os.fsdecode(where.file)) == os.path.realpath(self._path)

    @property
    def stream(self) -> ctypes.c_void_p:
        return self._stream

    def check(self, step: str, status: int) -> None:
        if status != 0:
            raise Refused(step, status)
