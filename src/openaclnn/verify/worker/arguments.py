# SPDX-License-Identifier: Apache-2.0
"""The arguments of a call as C takes them: numbers, texts and handles."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .library import Library, Refused
    from .memory import Memory
else:  # no package: its folder is the first of sys.path
    from library import Refused

FORMAT_ND = 2
C_TYPES: dict[str, Any] = {
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "int64": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "int8": ctypes.c_int8,
    "bool": ctypes.c_bool,
    "text": ctypes.c_char_p,
    **dict.fromkeys(
        ("tensor", "tensors", "scalar", "scalars", "ints", "floats", "bools"), ctypes.c_void_p
    ),
}
ARRAYS: dict[str, tuple[str, Any]] = {
    "ints": ("IntArray", ctypes.c_int64),
    "floats": ("FloatArray", ctypes.c_float),
    "bools": ("BoolArray", ctypes.c_bool),
}
# aclDataType of a scalar by the type of its number.
SCALARS: dict[type, tuple[Any, int]] = {
    bool: (ctypes.c_bool, 12),
    int: (ctypes.c_int64, 9),
    float: (ctypes.c_double, 11),
}


def int64s(values: list[int]) -> Any:
    return (ctypes.c_int64 * len(values))(*values)


class Arguments:
    """Makes the arguments of one call, and destroys the handles."""

    def __init__(self, library: Library, memories: list[Memory], same_handle: bool) -> None:
        """`same_handle`: an output in the memory of an input is that very tensor."""
        self._library, self._memories, self._same_handle = library, memories, same_handle
        self._handles: list[tuple[str, int]] = []
        self._tensors: dict[int, int] = {}  # the first handle of each memory

    def value(self, p: dict[str, Any]) -> Any:
        kind = p["kind"]
        if kind == "tensor":
            return None if p["null"] else self._tensor(p)
        value = p["value"]
        if value is None:
            return None
        if kind == "text":
            return value.encode()
        if kind == "scalar":
            return self._scalar(value)
        if kind in ARRAYS:
            name, c_type = ARRAYS[kind]
            return self._list(name, c_type, value)
        if kind == "tensors":  # the list owns its tensors
            made = [None if one["null"] else self._new_tensor(one) for one in value]
            return self._list("TensorList", ctypes.c_void_p, made)
        if kind == "scalars":
            return self._list("ScalarList", ctypes.c_void_p, list(map(self._new_scalar, value)))
        return value

    def destroy(self) -> None:
        for name, handle in self._handles:
            self._library(f"aclDestroy{name}")(ctypes.c_void_p(handle))

    def _made(self, name: str, *words: Any) -> int:
        handle: int | None = self._library(f"aclCreate{name}", ctypes.c_void_p)(*words)
        if not handle:
            raise Refused(f"aclCreate{name}", -1)
        return handle

    def _list(self, name: str, c_type: Any, values: list[Any]) -> int:
        items = (c_type * len(values))(*values)
        handle = self._made(name, items, ctypes.c_uint64(len(values)))
        self._handles.append((name, handle))
        return handle

    def _new_scalar(self, value: bool | int | float) -> int:
        c_type, code = SCALARS[type(value)]
        number = c_type(value)
        return self._made("Scalar", ctypes.byref(number), code)

    def _scalar(self, value: bool | int | float) -> int:
        handle = self._new_scalar(value)
        self._handles.append(("Scalar", handle))
        return handle

    def _tensor(self, p: dict[str, Any]) -> int:
        if p["alias"] and self._same_handle:
            return self._tensors[p["memory"]]
        handle = self._new_tensor(p)
        self._tensors.setdefault(p["memory"], handle)
        self._handles.append(("Tensor", handle))
        return handle

    def _new_tensor(self, p: dict[str, Any]) -> int:
        shape, strides, storage = map(int64s, (p["shape"], p["strides"], [p["storage"]]))
        return self._made(
            "Tensor", shape, ctypes.c_uint64(len(p["shape"])), p["dtype"], strides,
            ctypes.c_int64(p["offset"]), FORMAT_ND, storage, ctypes.c_uint64(1),
            ctypes.c_void_p(self._memories[p["memory"]].address),
        )  # fmt: skip
