# SPDX-License-Identifier: Apache-2.0
"""A formula with its numbers, and arithmetic on the attributes that become these numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Form:
    formula: Any
    numbers: tuple[float, ...]
    in_double: bool = False  # whether it computes in fp64 even for inputs of fewer digits


def f32(x: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(x))


def within(x: float, least: float, most: float) -> bool:
    return least <= abs(x) <= most


def parts(x: float) -> tuple[float, float]:
    """x as high + low in fp32."""
    high = f32(x)
    return high, f32(x - high)


def lost(x: float, y: float, rounded: float) -> float:
    """What the product x y has lost by rounding."""
    if not math.isfinite(rounded):
        return 0.0
    return float(Fraction(x) * Fraction(y) - Fraction(rounded))


def short(x: float) -> float:
    """x with 13 bits, which a number of fp16 multiplies exactly in fp32."""
    mantissa, exponent = math.frexp(x)
    return math.ldexp(round(mantissa * 2**13), exponent - 13)


def product(*factors: float) -> float:
    """Of Python floats; an overflow is infinite."""
    with np.errstate(all="ignore"):
        return float(math.prod(np.float64(x) for x in factors))


def shrink_bound(lambd: float) -> float:
    """Below 0 counts as 0; NaN lets everything pass."""
    return 0.0 if lambd < 0 else lambd


def log_odds(z: float) -> float:
    """ln(z / (1 - z)), correctly rounded where long double has more digits than double."""
    if not 0 <= z <= 1:
        return math.nan
    if z in (0, 1):
        return math.inf if z else -math.inf
    wide = np.longdouble(z)
    if abs(z - 0.5) < 0.25:
        return float(2 * np.arctanh(2 * wide - 1))
    return float(np.log(wide) - np.log1p(-wide))


def grad_by_eps(eps: float) -> tuple[float, float] | None:
    """The results of logit_grad for positive and negative dy where eps alone decides."""
    if eps == math.inf:
        return 0.0, 0.0
    if math.isnan(eps) or eps > 1:
        return math.nan, math.nan
    return (math.inf, -math.inf) if eps == 1 else None
