# SPDX-License-Identifier: Apache-2.0
"""The distances of an output, condensed for a report: a histogram and the greatest error by input.

The inputs of a curve are gathered in bins of equal width in their bits: two bins to a power of two
for FLOAT and BFLOAT16, sixteen for FLOAT16, half a one for DOUBLE. So a curve covers every
magnitude a dtype has, as a logarithmic axis does, zero and both signs included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..reference.arrays import Array
from ..reference.compare import histogram
from ..reference.evaluation import dtype_name, numpy_dtype
from ..reference.judge import Output, wide
from ..reference.standards import Standard
from ..reference.verdicts import Verdict

SHIFT = {"FLOAT": 22, "BFLOAT16": 6, "FLOAT16": 6, "DOUBLE": 53}  # bits of a value that a bin drops
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
LINEAR, TOP = 2048, 4095  # levels of 0 to 1; the level of infinity
PER_OCTAVE = 32  # levels beyond 1
RESULT = "result"  # the axis of results that have no single input


@dataclass(frozen=True)
class Curve:
    """The greatest distance in each bin that has values."""

    dtype: str  # of the input
    bins: str  # as `written` has them
    nan: float | None  # the distance of NaN, where there was one


@dataclass(frozen=True)
class Profile:
    """One output of a case."""

    name: str
    unit: str  # ulp, or "of bound" where results are sums
    limit: float | None  # what the standard allows in this unit, if it says so
    histogram: Mapping[str, int]
    mismatches: Mapping[str, int]
    curves: Mapping[str, Curve]  # by input


def profile(output: Output, found: Verdict, standard: Standard) -> Profile:
    summed = output.terms is not None
    unit = "of bound" if summed else "ulp"
    figure = {("ours", "ulp"): "ulp", ("ours", "of bound"): "share", ("float", "ulp"): "ulp"}
    limit = found.limits.get(figure.get((standard.name, unit), ""))
    distance = np.asarray(output.of_promise if summed else output.ulp)
    curves = {}
    if summed:
        curves[RESULT] = curve(output.nearest, distance)
    else:
        for p, x in zip(output.op.input_tensors, output.inputs, strict=True):
            curves[p.python_name] = curve(np.broadcast_to(x, distance.shape), distance)
    return Profile(
        output.name,
        unit,
        limit,
        histogram(output.ulp),
        {kind: n for kind, where in output.special.items() if (n := int(np.count_nonzero(where)))},
        curves,
    )


def curve(x: Array, distance: Array) -> Curve:
    """The greatest distance by the bins of x."""
    dtype = dtype_name(x.dtype)
    flat = np.ascontiguousarray(x).reshape(-1)
    with np.errstate(over="ignore"):  # beyond float64 is the level of infinity
        far = distance.reshape(-1).astype(np.float64)
    nan = np.isnan(wide(flat))
    bins = bins_of(flat[~nan], dtype)
    half = bin_count(dtype)
    greatest = np.full(2 * half, -1.0)
    np.maximum.at(greatest, bins + half, far[~nan])
    (there,) = np.nonzero(greatest >= 0)
    worst = float(far[nan].max()) if nan.any() else None
    return Curve(dtype, written(there - half, greatest[there]), worst)


def bin_count(dtype: str) -> int:
    """Bins of one sign."""
    return 1 << (8 * numpy_dtype(dtype).itemsize - 1 - SHIFT[dtype])


def bins_of(x: Array, dtype: str) -> Array:
    """0 and up for +0 and up, -1 and down for -0 and down."""
    width = 8 * x.dtype.itemsize
    bits = x.view(f"u{x.dtype.itemsize}").astype(np.uint64)
    magnitude = (bits & np.uint64((1 << (width - 1)) - 1)) >> np.uint64(SHIFT[dtype])
    signed = magnitude.astype(np.int64)
    return np.where(bits >> np.uint64(width - 1) == 1, -1 - signed, signed)


def written(bins: Array, greatest: Array) -> str:
    """The first bin in decimal and a colon; then, for each bin, the steps since the one before it
    (one digit to base 64, or "_" and two) and the level in two digits."""
    if not bins.size:
        return ""
    text = [f"{bins[0]}:"]
    before = int(bins[0]) - 1
    for where, distance in zip(bins.tolist(), greatest.tolist(), strict=True):
        steps = where - before - 1
        text.append(DIGITS[steps] if steps < 63 else f"_{_two(steps)}")
        text.append(_two(level(distance)))
        before = where
    return "".join(text)


def level(distance: float) -> int:
    """0 to 4095: even steps up to 1, logarithmic beyond, infinity at the end."""
    if distance <= 1:
        return math.ceil(distance * LINEAR)
    if math.isinf(distance):
        return TOP
    return min(LINEAR + math.ceil(PER_OCTAVE * math.log2(distance)), TOP - 1)


def _two(value: int) -> str:
    return DIGITS[value >> 6] + DIGITS[value & 63]
