# SPDX-License-Identifier: Apache-2.0
"""`openaclnn.compare`: rows by their formula, functions that ATen computes by golden values."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import wraps
from typing import Any

from ..aten import Row
from ..aten.prototypes import functions
from ..reference.arrays import Array
from ..reference.compare import check_worst, compared
from ..reference.compare import compare as compare_row
from ..reference.comparison import Comparison
from ..reference.dtypes import as_dtype, dtype_of
from ..reference.standards import ASKED, Standard
from .arguments import FLOATS, array, bound, code_of
from .calling import Call
from .judging import attributes_of, described_op, judged, standard_of
from .values import NoGolden, golden, why_not

OPTIONS = {
    name: p.default
    for name, p in inspect.signature(compare_row).parameters.items()
    if p.kind == p.KEYWORD_ONLY
}


@wraps(compare_row)
def compare(mine: Any, name: str, /, *arguments: Any, **named: Any) -> Comparison:
    row = functions().get(name) if isinstance(name, str) else None
    if row is None:
        return compare_row(mine, name, *arguments, **named)
    o = {option: named.pop(option, default) for option, default in OPTIONS.items()}
    options = {option: o[option] for option in ASKED}
    standard = standard_of(**options, benchmark=o["benchmark"] is not None)
    dtype = None if o["dtype"] is None else dtype_of(o["dtype"])
    return compare_function(
        mine, row, arguments, named, standard, o["benchmark"], dtype, o["worst"]
    )


def compare_function(
    mine: Any,
    row: Row,
    arguments: Sequence[Any],
    named: Mapping[str, Any],
    standard: Standard,
    benchmark: Any,
    dtype: str | None,
    worst: int,
) -> Comparison:
    """The results `mine` against the golden value, and against openaclnn in the dtypes given or
    `benchmark`. `named`: arguments that may have the names of options, as `dtype`."""
    check_worst(worst)
    if why := why_not(row):  # before arguments are asked for
        raise NoGolden(f"{row.name} has no golden value: {why}")
    given = bound(row, arguments, named, dtype)
    got = _results(row, mine, "mine", dtype)
    for p in row.given:
        if p.kind == "dtype" and given.get(p.name) is None:
            given[p.name] = _first_dtype(got)
    names = [p.name for p in row.given if p.written]
    found = golden(Call(row, given, dict(zip(names, got, strict=True))))
    others = [None] * len(got)
    if benchmark is not None:
        others = _results(row, benchmark, "benchmark", dtype)  # type: ignore[assignment]
    op = described_op(row)
    verdicts = judged(op, got, found, standard, others)
    attributes = attributes_of(row, given)
    return Comparison(
        op, attributes, standard,
        tuple(compared(output, verdict, worst) for output, verdict in verdicts),
    )  # fmt: skip


def _first_dtype(got: Sequence[Array | None]) -> int | None:
    return next((code_of(x.dtype) for x in got if x is not None), None)


def _results(row: Row, given: Any, who: str, dtype: str | None) -> list[Array | None]:
    """An array for each output."""
    names = [p.name for p in row.given if p.written]
    several = list(given) if isinstance(given, tuple | list) and len(names) > 1 else [given]
    if len(several) != len(names):
        raise TypeError(
            f"{who} must be a tuple ({', '.join(names)}), but has {len(several)} arrays"
        )
    found: list[Array | None] = []
    for name, x in zip(names, several, strict=True):
        title = who if len(names) == 1 else f"{who}, {name},"
        made = None if x is None else array(x, title, dtype)
        if made is not None and dtype is not None and made.dtype.name in FLOATS:
            made = as_dtype(made, dtype, title)
        found.append(made)
    if all(x is None for x in found):
        raise TypeError(f"{who} must be an array or a tensor, but got None")
    return found
