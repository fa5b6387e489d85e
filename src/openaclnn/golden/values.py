# SPDX-License-Identifier: Apache-2.0
"""Golden values: the same function on inputs in DOUBLE; and what openaclnn computes as given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..aten import Row
from ..aten.products import DTYPES
from ..reference.arrays import Array
from .arguments import FLOATS
from .calling import Call, Refusal, computed

OTHER_PATTERN = 0x5A
FLOAT_CODES = {DTYPES[name] for name in ("FLOAT", "FLOAT16", "BFLOAT16")}
DATA_DEPENDENT = {"nonzero", "nonzero_v2", "masked_select", "unique", "unique2",
                  "unique_consecutive"}  # fmt: skip  # composites


@dataclass(frozen=True)
class Golden:
    """Of each output, None where it is not computed."""

    golden: tuple[Array | None, ...]
    benchmark: tuple[Array | None, ...]  # openaclnn, in the dtypes given


class NoGolden(ValueError):
    """The function or the call has no float64 form: one sentence."""


def why_not(row: Row) -> str:
    """Why a function has no golden value; empty where it may have one."""
    names = {p.name for p in row.parameters}
    written = [p for p in row.given if p.written]
    if "seed" in names:
        return "its results are random numbers"
    if row.inplace or "Inplace" in row.name or row.given[0].written:
        plain = row.name.replace("Inplace", "")
        hint = f"; compare with {plain}" if row.inplace else ""
        return f"it works in place, and its input is gone{hint}"
    if any(p.name in row.arguments for p in written):
        return "it changes an input"
    if any(p.kind != "tensor" for p in written) or not written:
        return "its results are a list of tensors"
    if row.op in DATA_DEPENDENT:
        return "the shape of its result depends on the data"
    return ""


def widened(call: Call) -> Call:
    """In DOUBLE whatever is a floating-point tensor or names such a dtype. Scalars are those of
    FLOAT unless an input is DOUBLE."""
    kinds = {p.name: p.kind for p in call.row.given}
    given = {name: _wide(kinds[name], value) for name, value in call.given.items()}
    if not any(getattr(x, "dtype", None) == np.float64 for x in call.given.values()):
        given |= {k: _single(x) for k, x in given.items() if kinds[k] in ("scalar", "scalars")}
    outputs = {name: _wide("tensor", x) for name, x in call.outputs.items()}
    return replace(call, given=given, outputs=outputs)


def _single(value: Any) -> Any:
    if isinstance(value, list):
        return [_single(x) for x in value]
    return float(np.float32(value)) if isinstance(value, float) else value


def _wide(kind: str, value: Any) -> Any:
    if kind == "dtype":
        return DTYPES["DOUBLE"] if value in FLOAT_CODES else value
    if kind == "tensors" and value is not None:
        return [_wide("tensor", x) for x in value]
    if kind == "tensor" and value is not None and value.dtype.name in FLOATS:
        with np.errstate(invalid="ignore"):  # a signalling NaN
            return value.astype(np.float64)
    return value


def golden(call: Call) -> Golden:
    """NoGolden says why there is none; ValueError what is wrong with the call."""
    name = call.row.name
    if why := why_not(call.row):
        raise NoGolden(f"{name} has no golden value: {why}")
    try:
        benchmark = computed(call)
    except Refusal as error:
        text = str(error)
        raise ValueError(text if text.startswith(name) else f"{name}: {text}") from None
    wide = widened(call)
    try:
        found, again = computed(wide), computed(wide, OTHER_PATTERN)
    except Refusal as error:
        raise NoGolden(f"{name} has no float64 form: {error}") from None
    for output, one, other in zip(call.outputs, found, again, strict=True):
        if one is not None and other is not None and one.tobytes() != other.tobytes():
            raise NoGolden(
                f"{name} has no golden value: {output} depends on what it held before, or is not "
                "written; pass None for an output that is not computed"
            )
    return Golden(tuple(found), tuple(benchmark))
