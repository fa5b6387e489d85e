# SPDX-License-Identifier: Apache-2.0
"""The arguments of a C function that ATen computes, from Python."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..aten import Parameter, Row
from ..aten.products import DTYPES
from ..reference.arrays import Array
from ..reference.dtypes import plain, typed

NAMES = {"float32": "FLOAT", "float64": "DOUBLE"}  # aclDataType, where it is not NumPy's name
FLOATS = ("float16", "bfloat16", "float32", "float64")
NUMBERS = ("int", "int32", "byte", "double", "float", "bool", "scalar")
LISTS = {"ints": int, "bools": bool, "floats": float, "scalars": object}


def code_of(dtype: npt.DTypeLike) -> int | None:
    """aclDataType of a NumPy dtype; None where it has none."""
    name = np.dtype(dtype).name
    return DTYPES.get(NAMES.get(name, name.upper()))


def python_name(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def inputs_of(row: Row) -> list[Parameter]:
    return [p for p in row.given if not p.written]


def bound(
    row: Row, arguments: Sequence[Any], named: Mapping[str, Any], dtype: str | None
) -> dict[str, Any]:
    """Inputs and attributes by C name. A missing one that may be NULL is None; so is a missing
    dtype, which is that of the first output."""
    taken = inputs_of(row)
    takes = f"compare: {row.name} takes {', '.join(p.name for p in taken)}"
    if len(arguments) > len(taken):
        raise TypeError(f"{takes}, but got {len(arguments)} arguments")
    given = {p.name: value for p, value in zip(taken, arguments, strict=False)}
    spellings = {spelling: p.name for p in taken for spelling in (python_name(p.name), p.name)}
    for key, value in named.items():
        if key not in spellings:
            raise TypeError(f"{takes}, but got {key!r}")
        if spellings[key] in given:
            raise TypeError(f"{takes}, but got {key!r} twice")
        given[spellings[key]] = value
    for p in taken:  # a number here is the attribute that follows a forgotten input
        value = given.get(p.name)
        if p.kind == "tensor" and isinstance(value, int | float | np.generic):
            raise TypeError(
                f"{takes}; {p.name} must be an array or a tensor, but is the number {value}: is "
                f"{p.name} missing?"
            )
    missing = [p.name for p in taken if p.name not in given and not _optional(p)]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise TypeError(f"{takes}, but {' and '.join(missing)} {verb} missing")
    return {p.name: _value(p, given.get(p.name), takes, dtype) for p in taken}


def _optional(p: Parameter) -> bool:
    return p.nullable or p.unless is not None or p.condition is not None or p.kind == "dtype"


def array(given: Any, who: str, dtype: str | None) -> Array:
    """An array of any dtype that aclnn has; raw bits are read as `dtype`."""
    found = plain(given)
    if found.dtype.kind == "V" and found.dtype.name != "bfloat16":
        found = typed(found, who, dtype)
    if code_of(found.dtype) is None or found.dtype.kind == "c":
        raise ValueError(f"{who} must have a real dtype of aclnn, but has {found.dtype}")
    return found


def _value(p: Parameter, given: Any, takes: str, dtype: str | None) -> Any:
    if given is None:
        return None
    if p.kind == "tensor":
        return array(given, p.name, dtype)
    if p.kind == "tensors":
        if not isinstance(given, list | tuple):
            raise TypeError(f"{takes}; {p.name} must be a list of arrays, but got {given!r}")
        named = [(f"{p.name}[{i}]", x) for i, x in enumerate(given)]
        return [None if x is None else array(x, who, dtype) for who, x in named]
    if hasattr(given, "shape") and not isinstance(given, np.generic):
        raise TypeError(
            f"{takes}; {p.name} must not be an array, but has the shape {list(given.shape)}: is an "
            "argument missing before it?"
        )
    if p.kind == "dtype":
        return _dtype(p, given)
    if p.kind == "text":
        return _text(p, given)
    if p.kind in LISTS:
        if not isinstance(given, list | tuple):
            raise TypeError(f"{takes}; {p.name} must be a list, but got {given!r}")
        return [_number(p, x) for x in given]
    return _number(p, given)


def _text(p: Parameter, given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError(f"compare: {p.name} must be a string, but got {given!r}")
    return given


def _number(p: Parameter, given: Any) -> bool | int | float:
    value = given.item() if isinstance(given, np.generic) else given
    if not isinstance(value, bool | int | float):
        raise TypeError(f"compare: {p.name} must be a number, but got {given!r}")
    if p.kind in ("double", "float", "floats"):
        return float(value)
    if p.kind in ("bool", "bools"):
        return bool(value)
    if p.kind in ("int", "int32", "byte", "ints"):
        if isinstance(value, float):
            raise TypeError(f"compare: {p.name} must be an integer, but got {given!r}")
        bits = {"int32": 32, "byte": 8}.get(p.kind, 64)
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise ValueError(f"compare: {p.name} must fit {bits} bits, but is {given!r}")
        return int(value)
    return value


def _dtype(p: Parameter, given: Any) -> int:
    """An aclDataType, from its number or from a dtype of NumPy or torch."""
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    name = str(given).rpartition(".")[2] if "torch." in str(given) else None
    if name is None:
        try:
            name = np.dtype(given).name
        except TypeError:
            name = str(given)
    code = DTYPES.get(NAMES.get(name, name.upper().removeprefix("ACL_")))
    if code is None:
        raise ValueError(f"compare: {p.name} must be a dtype, but got {given!r}")
    return code
