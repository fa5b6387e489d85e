# SPDX-License-Identifier: Apache-2.0
"""Kinds of arguments and results: from Python to C with a check, and back."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

MAX_DIMENSIONS = 128  # ACL_MAX_DIM_CNT and ACL_MAX_TENSOR_NAME_LEN


class ModelDims(ctypes.Structure):
    """aclmdlIODims."""

    _fields_ = (
        ("name", ctypes.c_char * MAX_DIMENSIONS),
        ("dimCount", ctypes.c_size_t),
        ("dims", ctypes.c_int64 * MAX_DIMENSIONS),
    )


class Pointer(ctypes.Structure):
    """aclrtPtrAttributes."""

    _fields_ = (
        ("id", ctypes.c_uint32),
        ("type", ctypes.c_int32),
        ("pageSize", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32 * 4),
    )


class Kind(NamedTuple):
    """How a value is passed, `to_c`, and read, `to_python`. A list is passed by its address."""

    ctype: Any
    to_c: Callable[[Any], Any] | None = None
    to_python: Callable[[Any], Any] = lambda value: value
    is_list: bool = False


def integer(value: Any, bits: int, *, signed: bool) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"must be an int, but got {type(value).__name__}") from None
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if not low <= number <= high:
        raise ValueError(f"must be in [{low}, {high}], but got {number}")
    return number


def whole(ctype: Any, *, signed: bool) -> Kind:
    bits = 8 * ctypes.sizeof(ctype)
    return Kind(ctype, lambda value: integer(value, bits, signed=signed))


def real(value: Any) -> float:
    if isinstance(value, str | bytes):
        raise TypeError(f"must be a float, but got {type(value).__name__}")
    try:
        return float(value)
    except TypeError:
        raise TypeError(f"must be a float, but got {type(value).__name__}") from None
    except OverflowError:
        raise ValueError("must be in the range of a float") from None


def encoded(value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"must be a str, but got {type(value).__name__}")
    if "\0" in value:
        raise ValueError("must not have a zero character")
    try:
        return value.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise ValueError("must be text that UTF-8 can hold") from None


def decoded(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def items(value: Any) -> list[Any]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"must be a list, but got {type(value).__name__}")
    return list(value.tolist() if hasattr(value, "tolist") else value)  # plain numbers of NumPy


def array(item: Kind) -> Kind:
    assert item.to_c is not None
    convert = item.to_c

    def to_c(value: Any) -> Any:
        found = [convert(entry) for entry in items(value)]
        return (item.ctype * len(found))(*found)

    return Kind(ctypes.c_void_p, to_c, is_list=True)


def pairs(value: Any) -> Any:
    """Rows [low, high]."""
    rows = [[LONG.to_c(entry) for entry in items(row)] for row in items(value)]  # type: ignore[misc]
    if any(len(row) != 2 for row in rows):
        raise ValueError("must have pairs [low, high]")
    flat = [entry for row in rows for entry in row]
    return (ctypes.c_int64 * 2 * len(rows)).from_buffer((ctypes.c_int64 * len(flat))(*flat))


def dimensions(found: ModelDims) -> dict[str, Any]:
    name = found.name.decode(errors="replace")
    return {"name": name, "dimCount": found.dimCount, "dims": found.dims[: found.dimCount]}


INT = whole(ctypes.c_int32, signed=True)
LONG = whole(ctypes.c_int64, signed=True)
# An address or a handle; 0 is NULL.
POINTER = Kind(ctypes.c_void_p, lambda value: integer(value, 64, signed=False), lambda v: v or 0)
TEXT = Kind(ctypes.c_char_p, encoded, decoded)
BYTE = whole(ctypes.c_uint8, signed=False)
FLOAT = Kind(ctypes.c_float, real)

KINDS = {
    "byte": BYTE,
    "ushort": whole(ctypes.c_uint16, signed=False),
    "int": INT,
    "uint": whole(ctypes.c_uint32, signed=False),
    "long": LONG,
    "ulong": whole(ctypes.c_uint64, signed=False),
    "size": whole(ctypes.c_size_t, signed=False),
    "float": FLOAT,
    "ptr": POINTER,
    "text": TEXT,
    "bytes": array(BYTE),
    "longs": array(LONG),
    "floats": array(FLOAT),
    "ptrs": array(POINTER),
    "ints": array(INT),
    "texts": array(TEXT),
    "pairs": Kind(ctypes.c_void_p, pairs, is_list=True),
    "pair": Kind(ctypes.c_int64 * 2, to_python=list),
    "dims": Kind(ModelDims, to_python=dimensions),
    "location": Kind(Pointer, to_python=lambda found: found.type),
    "ret": Kind(ctypes.c_int32),
    "none": Kind(None),
}
