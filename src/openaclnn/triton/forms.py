# SPDX-License-Identifier: Apache-2.0
"""Which formula computes a kernel with these attributes, and the numbers it takes.

The attributes decide, as in core/kernels/elementwise: a form in float where it keeps its promise
for every input, else one in double.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import formulas

ATTRIBUTES = 8  # the most numbers that a formula takes
_LOG2E = float.fromhex("0x1.71547652b82fep0")


@dataclass(frozen=True)
class Form:
    formula: Any
    numbers: tuple[float, ...]
    in_double: bool = False  # whether it takes the numbers as doubles


def _f32(x: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(x))


def _within(x: float, least: float, most: float) -> bool:
    return least <= abs(x) <= most


def _parts(x: float) -> tuple[float, float]:
    """x as high + low in fp32."""
    high = _f32(x)
    return high, _f32(x - high)


def _positive_parts(x: float) -> tuple[float, float]:
    """The same with both positive, so that products keep the sign of a zero."""
    high = np.float32(x)
    if float(high) > x:
        high = np.nextafter(high, np.float32(0))
    return float(high), _f32(x - float(high))


def _product(*factors: float) -> float:
    """Of Python floats; an overflow is infinite."""
    with np.errstate(all="ignore"):
        return float(math.prod(np.float64(x) for x in factors))


def _leaky_relu(a: Sequence[float], half: bool) -> Form:
    return Form(formulas.leaky_relu, (_f32(a[0]),))


def _leaky_relu_backward(a: Sequence[float], half: bool) -> Form:
    return Form(formulas.leaky_relu_backward, (_f32(a[0]),))


def shrink_bound(lambd: float) -> float:
    """Below 0 counts as 0; NaN lets everything pass."""
    return 0.0 if lambd < 0 else lambd


def _hardshrink(a: Sequence[float], half: bool) -> Form:
    return Form(formulas.hardshrink, (shrink_bound(_f32(a[0])),))


def _hardshrink_backward(a: Sequence[float], half: bool) -> Form:
    return Form(formulas.hardshrink_backward, (shrink_bound(_f32(a[0])),))


def _elu(a: Sequence[float], half: bool) -> Form:
    alpha, scale, rate = a
    factor = _product(scale, alpha)
    usual = rate > 0 and _within(rate, 2.0**-60, 2.0**60) and _within(factor, 2.0**-60, 2.0**60)
    if half and usual:
        slope = _f32(factor * rate)
        steep = abs(factor) > 2.0**5
        linear = _f32(-(2.0**-60) / rate) if steep or slope == _f32(scale) else 0.0
        # Only a steep slope differs from `scale` where the form uses it.
        numbers = _f32(scale), _f32(factor), slope if steep else _f32(scale), _f32(-25 / rate)
        return Form(formulas.elu_half, (*numbers, linear, *_positive_parts(rate * _LOG2E)))
    if not half and usual and rate == 1 and factor > 0:
        return Form(formulas.elu, (_f32(scale), *_parts(factor)))
    return Form(formulas.elu_wide, (scale, factor, _product(rate, _LOG2E)), in_double=True)


def _elu_backward(a: Sequence[float], half: bool) -> Form:
    alpha, scale, rate, is_result = a
    if is_result:
        shift = _product(scale, alpha)
        slow = not (rate == 0 or _within(rate, 2.0**-20, 1))
        if half and not slow and _within(shift, 2.0**-20, 2.0**100):
            numbers = _f32(scale), _f32(rate), *_parts(shift)
            return Form(formulas.elu_backward_result_half, numbers)
        return Form(formulas.elu_backward_result_wide, (scale, rate, shift), in_double=True)
    factor = _product(scale, alpha, rate)
    most = 2.0**24 if half else 2.0**38
    if rate > 0 and _within(rate, 2.0**-60, 2.0**60) and _within(factor, 2.0**-20, most):
        bounds = _f32(-152 / rate), _f32((-199 if half else -221.5) / rate)
        if half:
            numbers = _f32(scale), _f32(factor), *_positive_parts(rate * _LOG2E), *bounds
            return Form(formulas.elu_backward_half, numbers)
        numbers = _f32(scale), *_parts(factor * 2.0**32), _f32(rate), *bounds
        return Form(formulas.elu_backward, numbers)
    return Form(formulas.elu_backward_wide, (scale, factor, _product(rate, _LOG2E)), in_double=True)


def _next(x: float) -> float:
    """The fp32 number above x, which is one."""
    return float(np.nextafter(np.float32(x), np.float32(np.inf)))


def float_from(x: float) -> float:
    """The least float that is not below x."""
    near = _f32(x)
    return _next(near) if near < x else near


def float_up_to(x: float) -> float:
    return -float_from(-x)


def float_above(x: float) -> float:
    """The least float above x."""
    near = float_from(x)
    return near if near > x else _next(near)


def up_to_complement(eps: float) -> float:
    """The greatest double that is not above 1 - eps."""
    near = 1 - eps
    return math.nextafter(near, -math.inf) if 1 - near < eps else near


def log_odds(z: float) -> float:
    if not 0 <= z <= 1:
        return math.nan
    if z in (0, 1):
        return math.inf if z else -math.inf
    if abs(z - 0.5) < 0.25:
        return 2 * math.atanh(2 * z - 1)
    return math.log(z) - math.log1p(-z)


def _logit(a: Sequence[float], half: bool) -> Form:
    (eps,) = a
    if eps < 0:
        return Form(formulas.logit_open_half if half else formulas.logit_open, ())
    least = _f32(log_odds(eps))
    if math.isnan(least):
        return Form(formulas.nan, ())
    formula = formulas.logit_half if half else formulas.logit
    if eps > 0.5:
        return Form(formula, (0.5, 0.5, least, least))  # the lower bound wins
    low = max(-float_above(-eps), 0.0)
    high = min(float_above(up_to_complement(eps)), 1.0)
    return Form(formula, (low, high, least, 0.0 - least))


def grad_by_eps(eps: float) -> tuple[float, float] | None:
    """The results for positive and negative dy where eps alone decides."""
    if eps == math.inf:
        return 0.0, 0.0
    if math.isnan(eps) or eps > 1:
        return math.nan, math.nan
    return (math.inf, -math.inf) if eps == 1 else None


def _logit_grad(a: Sequence[float], half: bool) -> Form:
    (eps,) = a
    constant = grad_by_eps(eps)
    if constant is not None:
        return Form(formulas.logit_grad_by_eps, constant)
    bound = max(eps, 0.0)
    outside = 0.0 if eps >= 0 else math.nan
    low, high = float_from(bound), float_up_to(up_to_complement(bound))
    if half:
        return Form(formulas.logit_grad_half, (low, outside, high))
    least = 1 - high  # exact where high >= 1/2, and so is the next line
    if high < 0.5 or (least >= low and least - 2.0**-24 < low):
        return Form(formulas.logit_grad, (low, outside))
    return Form(formulas.logit_grad_wide, (low, outside, high), in_double=True)


FLOAT: dict[str, Callable[[Sequence[float], bool], Form]] = {
    "leaky_relu": _leaky_relu,
    "leaky_relu_backward": _leaky_relu_backward,
    "hardshrink": _hardshrink,
    "hardshrink_backward": _hardshrink_backward,
    "elu": _elu,
    "elu_backward": _elu_backward,
    "logit": _logit,
    "logit_grad": _logit_grad,
}


def form_of(
    kernel: str, attributes: Sequence[float], scalars: Sequence[bool], double: bool, half: bool
) -> Form:
    """`scalars`: which attributes are rounded to fp32, unless the call computes in double."""
    if double:
        from .forms_double import DOUBLE

        return DOUBLE[kernel](attributes)
    rounded = [_f32(x) if s else x for x, s in zip(attributes, scalars, strict=True)]
    return FLOAT[kernel](rounded, half)
