# SPDX-License-Identifier: Apache-2.0
"""Results of functions that ATen computes, judged against golden value and benchmark.

Floating-point results keep to the standard: `either` where none is named, and allclose in DOUBLE,
which has no wider golden value. Integers and flags are those of the golden value or of openaclnn
in the dtypes given: rounding to an integer, or the order of equal elements, may differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ..aten import Row
from ..reference.arrays import Array
from ..reference.judge import Output, wide
from ..reference.standards import Standard, chosen
from ..reference.verdicts import Verdict, verdict
from ..rows.schema import Op, Parameter
from ..rows.shapes import ANY_SHAPE
from .arguments import FLOATS
from .values import Golden

DEFAULT = "either"
FEW = 1e-3  # of the elements


class GoldenOutput(Output):
    """A floating-point result; openaclnn promises no distance."""

    @property
    def _accuracy(self) -> tuple[str, float]:
        return self.dtype, float("inf")

    @property
    def of_promise(self) -> Array:
        return self.ulp


class ExactOutput(GoldenOutput):
    """Integers or flags; the distance is the difference."""

    @property
    def dtype(self) -> str:
        return self.got.dtype.name.upper()

    @cached_property
    def ulp(self) -> Array:
        return np.abs(self.got.astype(np.float64) - self.expected.astype(np.float64))

    @property
    def nearest(self) -> Array:
        return self.expected

    @property
    def special(self) -> dict[str, Array]:
        return {}

    @property
    def other_nans(self) -> int:
        return 0


def described_op(row: Row) -> Op:
    """The row as reports name it: its outputs and attributes."""
    parameters = tuple(
        Parameter(p.name, "tensor" if p.written else "text", "output" if p.written else "attribute",
                  True, "", None, False, None, ANY_SHAPE)
        for p in row.given
        if p.written or not p.kind.startswith("tensor")
    )  # fmt: skip
    return Op(
        name=row.name, python=row.name, parameters=parameters, family="", kernel="", products=(),
        dtypes=(), extra_dtypes=(), sizes={}, multiples={}, limits="", inputs="promote",
        output="castable", rules=(), formula="", where=(), doc="",
    )  # fmt: skip


def attributes_of(row: Row, given: Mapping[str, Any]) -> dict[str, Any]:
    return {p.python_name: given[p.name] for p in described_op(row).attributes}


def standard_of(**options: Any) -> Standard:
    """As `chosen` has it; `either` where none is named."""
    standard = chosen(DEFAULT, **options)
    if standard.name == "ours" and standard.ulp is None:
        raise ValueError(
            "standard ours needs ulp for a function that ATen computes: openaclnn promises no "
            f"distance there; {DEFAULT} is the default"
        )
    if standard.name == "float":
        raise ValueError(
            "standard float is for openaclnn's own operators (`openaclnn ops`), whose errors in "
            f"FLOAT are known; {DEFAULT} is the default for functions that ATen computes"
        )
    return standard


def judged(
    op: Op, got: Sequence[Array | None], golden: Golden, standard: Standard, other: Any
) -> list[tuple[Output, Verdict]]:
    """`other`: a benchmark in place of openaclnn's, by output."""
    found: list[tuple[Output, Verdict]] = []
    rest = zip(op.outputs, got, golden.golden, golden.benchmark, other, strict=True)
    for p, mine, due, ours, theirs in rest:
        if mine is None or due is None or ours is None:
            continue
        name = p.result_name
        if mine.dtype.name in FLOATS:
            output: Output = GoldenOutput(op, name, (), mine, due, None)
            of = standard
            if mine.dtype == np.float64 and standard.name == DEFAULT:
                of = Standard("allclose")
            judged_as = verdict(output, of, ours if theirs is None else theirs)
            if of.name == DEFAULT and not judged_as.passed:
                judged_as = _cancelled(output) or judged_as
            found.append((output, judged_as))
        else:
            output = ExactOutput(op, name, (), mine, due, None)
            found.append((output, _exact(output, ours)))
    return found


def _cancelled(output: Output) -> Verdict | None:
    """`single` for all but a few elements near 0, whose absolute errors are no greater than those
    of others: the terms of a sum may cancel, and its rounding errors stay."""
    found = verdict(output, Standard("single"))
    if not found.figures.get("MERE", np.inf) < found.limits.get("MERE", 0.0):
        return None
    few = np.count_nonzero(found.wrong) <= FEW * found.wrong.size
    with np.errstate(invalid="ignore"):
        error = np.abs(wide(output.got) - output.expected)
    others = error[~found.wrong & np.isfinite(error)]
    if not few or not (error[found.wrong] <= others.max(initial=0)).all():
        return None
    text = "single benchmark, but for elements near 0 with the absolute error of others"
    return replace(found, passed=True, reason=text, wrong=np.zeros_like(found.wrong))


def _exact(output: Output, benchmark: Array) -> Verdict:
    wrong = (output.got != output.expected) & (output.got != benchmark)
    count = int(np.count_nonzero(wrong))
    reason = f"{count:,} of {wrong.size:,} elements differ" if count else "equal"
    if not wrong.size:
        reason = "there are no elements"
    figures = {"differing": float(count)}
    return Verdict(not count, reason, np.asarray(wrong), figures, {"differing": 0.0})
