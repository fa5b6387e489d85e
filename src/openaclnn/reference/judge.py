# SPDX-License-Identifier: Apache-2.0
"""The judge compares results with what they should be, by the requested standard.

`compare`, `verify` and the tests use it. Distances are those of evaluation.py; here they become a
verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..rows.dtypes import DTYPES
from ..rows.schema import Op
from .arrays import Array
from .evaluation import (
    CANONICAL_NAN,
    Attributes,
    absolute_terms,
    accuracy,
    compute_dtype,
    counted,
    dtype_name,
    evaluate,
    rounded,
    scaled_errors,
    ulp_error,
)

KEPT = 1 << 22  # inputs of sums of up to so many elements are kept with a part
NARROWER = {"DOUBLE": ("FLOAT", "FLOAT16", "BFLOAT16"), "FLOAT": ("FLOAT16", "BFLOAT16")}


def wide(x: Array) -> Array:
    """The same values in float64, without warnings of signalling NaNs or long doubles beyond it."""
    with np.errstate(invalid="ignore", over="ignore"):
        return x.astype(np.float64)


@dataclass(frozen=True)
class Part:
    """Row-major positions in an array of this shape."""

    at: Array
    shape: tuple[int, ...]

    def of(self, whole: Part | None) -> Part:
        """The part of a part."""
        return self if whole is None else Part(whole.at[self.at], whole.shape)


@dataclass(frozen=True)
class Output:
    """One result of a call, and the formula in float64 (long double for DOUBLE)."""

    op: Op
    name: str
    inputs: tuple[Array, ...]
    got: Array
    expected: Array
    terms: Array | None  # the sums of absolute terms, for results that are such sums
    attributes: Attributes = field(default_factory=dict)
    part: Part | None = None  # of a sum, which keeps the inputs of the whole

    @property
    def dtype(self) -> str:
        return dtype_name(self.got.dtype)

    def take(self, at: Array) -> Output:
        """Of the elements at these row-major positions, in one dim. Sums keep small inputs."""
        shape = self.got.shape

        def taken(x: Array) -> Array:
            return (np.broadcast_to(x, shape) if x.shape != shape else x).reshape(-1)[at]

        if self.terms is None:
            inputs = tuple(taken(x) for x in self.inputs)
        else:
            inputs = self.inputs if sum(x.size for x in self.inputs) <= KEPT else ()
        return replace(
            self,
            inputs=inputs,
            got=taken(self.got),
            expected=taken(self.expected),
            terms=None if self.terms is None else taken(self.terms),
            part=None if self.terms is None else Part(at, shape).of(self.part),
        )

    def against(self, benchmark: Array) -> Output:
        """The same result, where another implementation says what is expected."""
        return replace(self, expected=wide(benchmark))

    @cached_property
    def _accuracy(self) -> tuple[str, float]:
        if self.terms is not None:
            return self.dtype, float("inf")
        return accuracy(self.op, compute_dtype(self.inputs), self.dtype)

    @property
    def unit(self) -> str:
        """The dtype in whose last place distances are measured."""
        return self._accuracy[0]

    @property
    def promised(self) -> float | None:
        """The greatest distance that the library allows itself, in ULP of the unit; None for
        sums, which keep to a share of their absolute terms."""
        return self._accuracy[1] if self.terms is None else None

    @cached_property
    def ulp(self) -> Array:
        """The distance of each element; infinite where special values differ."""
        return np.asarray(ulp_error(self.got, self.expected, self.unit))

    @cached_property
    def counted(self) -> Array:
        """The distance that counts for the promise."""
        return counted(self.op, self.ulp, self.expected, self.unit)

    @cached_property
    def of_promise(self) -> Array:
        """The distance of each element as a share of what the library promises; 1 is kept."""
        if self.terms is not None:
            return scaled_errors(self.op, self.got, self.expected, self.terms)
        limit = self._accuracy[1]
        if limit == 0:
            return np.where(self.ulp == 0, 0.0, np.inf)
        with np.errstate(over="ignore"):
            return np.asarray(self.counted / limit)

    @cached_property
    def nearest(self) -> Array:
        """The exact values, rounded to the dtype of the result."""
        return rounded(self.expected, self.dtype)

    @cached_property
    def of_narrow(self) -> dict[str, tuple[Array, Array]]:
        """By narrower dtypes: whether they hold the result, and its distance in their ULP."""
        got = wide(self.got)
        return {
            name: (wide(rounded(got, name)) == got, ulp_error(got, self.expected, name))
            for name in NARROWER.get(self.dtype, ())
        }

    @cached_property
    def other_zeros(self) -> Array:
        """Where the result is a zero of the wrong sign."""
        got, near = wide(self.got), wide(self.nearest)
        return np.asarray((got == 0) & (near == 0) & (np.signbit(got) != np.signbit(near)))

    @cached_property
    def special(self) -> dict[str, Array]:
        """Where special values differ, by kind of difference."""
        got, due = wide(self.got), self.expected
        near = wide(self.nearest)
        both_numbers = ~np.isnan(got) & ~np.isnan(due)
        infinite = np.isinf(got) != np.isinf(near)
        far = both_numbers & infinite & (self.ulp > 1)  # an overflow within 1 ulp is rounding
        signs = np.signbit(got) != np.signbit(due)
        zero = (got == 0) & (near == 0)
        return {
            "NaN instead of a number": np.isnan(got) & ~np.isnan(due),
            "a number instead of NaN": ~np.isnan(got) & np.isnan(due),
            "infinite instead of finite": far & np.isinf(got),
            "finite instead of infinite": far & np.isinf(near),
            "zero of the other sign": both_numbers & signs & zero,
            "number of the other sign": both_numbers & signs & ~zero & (due != 0) & (got != 0),
        }

    def off_by(self, distance: Array) -> str:
        """Of the farthest element: in ulp, up to a quarter of the value."""
        at = int(np.argmax(distance))
        worst = float(distance.flat[at])
        if worst < 2.0 ** (DTYPES[self.unit].digits - 2):
            return f"off by {worst:.4g}"
        kind = next((kind for kind, where in self.special.items() if where.flat[at]), "")
        article = "a " if kind.startswith(("zero", "number")) else ""
        return article + kind or "another value altogether"

    @property
    def other_nans(self) -> int:
        """How many NaNs have other bits than ours; no standard forbids them."""
        bits = self.got.view(f"u{self.got.dtype.itemsize}")
        return int(np.count_nonzero(np.isnan(self.got) & (bits != CANONICAL_NAN[self.dtype])))

    @property
    def classes_differ(self) -> Array:
        """Where a NaN or an infinity stands on one side only, after rounding."""
        got, near = wide(self.got), wide(self.nearest)
        same = (got == near) | (np.isnan(got) & np.isnan(near))
        return np.asarray(~(np.isfinite(got) & np.isfinite(near)) & ~same)


def outputs(
    op: Op,
    inputs: Sequence[Array],
    attributes: Attributes,
    got: Sequence[Any],
    some: bool = False,
) -> list[Output]:
    """The result for each output of the row, None for one that was not computed: any if `some`."""
    expected = evaluate(op, inputs, attributes)
    terms = absolute_terms(op, inputs, attributes) or (None,) * len(expected)
    found = []
    for p, x, due, scale in zip(op.outputs, got, expected, terms, strict=True):
        if x is None:
            if p.condition is None and not some:
                raise TypeError(f"{p.result_name} must be an array or a tensor, but got None")
            continue
        if x.shape != due.shape:
            raise ValueError(
                f"{p.result_name} must have the shape {list(due.shape)}, but got {list(x.shape)}"
            )
        found.append(Output(op, p.result_name, tuple(inputs), x, due, scale, attributes))
    return found
