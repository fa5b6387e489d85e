# SPDX-License-Identifier: Apache-2.0
"""Which formula computes a kernel in fp64, and the numbers it takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from . import formulas, formulas_double, formulas_logit
from .form import Form, grad_by_eps, log_odds, product, shrink_bound, within

_LEAST, _MOST = 2.0**-1074, float(np.finfo(np.float64).max)


def _mantissa(x: float) -> tuple[float, int]:
    """From 1/2 to 1, and the exponent; 0, infinity and NaN themselves."""
    return math.frexp(x) if math.isfinite(x) else (x, 0)


def _lost(x: float, y: float, rounded: float) -> float:
    """What x y loses by rounding, for factors whose halves do not leave the range (Dekker)."""

    def halves(v: float) -> tuple[float, float]:
        scaled = v * (2.0**27 + 1)
        high = scaled - (scaled - v)
        return high, v - high

    if not math.isfinite(rounded):
        return rounded - rounded
    (a, b), (c, d) = halves(x), halves(y)
    return ((a * c - rounded) + a * d + b * c) + b * d


def _pair(x: float, y: float) -> tuple[float, float]:
    high = product(x, y)
    return high, _lost(x, y, high)


def _elu(a: Sequence[float]) -> Form:
    alpha, scale, rate = a
    factor = product(scale, alpha)
    if rate == 1 and 2.0**-60 <= factor <= 2.0**60:
        (m, e), (n, f) = _mantissa(scale), _mantissa(alpha)
        high, low = _pair(m, n)
        parts = math.ldexp(high, e + f), math.ldexp(low, e + f)
        return Form(formulas_double.elu, (scale, *parts), True)
    (s, s_exponent), (al, a_exponent), (r, r_exponent) = map(_mantissa, (scale, alpha, rate))
    usual = within(alpha, _LEAST, _MOST) and within(scale, _LEAST, _MOST) and within(rate, 0, _MOST)
    if not usual:
        sign = math.copysign(1, rate) if math.isfinite(rate) and rate != 0 else rate
        return Form(formulas_double.elu_rare, (scale, -factor, product(s, al), sign), True)
    exponent = s_exponent + a_exponent
    small = min(max(exponent + r_exponent, -2400), 3000)  # beyond them results are 0 or infinite
    numbers = scale, rate, *_pair(s, al), r, float(exponent), float(small)
    formula = formulas_double.elu_falling if rate >= 0 else formulas_double.elu_growing
    return Form(formula, numbers, True)


def _elu_backward(a: Sequence[float]) -> Form:
    alpha, scale, rate, is_result = a
    numbers: tuple[float, ...]
    (s, s_exponent), (al, a_exponent), (r, r_exponent) = map(_mantissa, (scale, alpha, rate))
    high, low = _pair(al, s)
    exponent = a_exponent + s_exponent
    if is_result:
        shift = float(exponent) if high != 0 else 0.0  # beside 0, no v is negligible
        numbers = scale, r, float(r_exponent), high, low, shift
        return Form(formulas_double.elu_backward_result, numbers, True)
    whole, lost = _pair(high, r)
    numbers = scale, rate, float(exponent + r_exponent), whole, lost + product(low, r)
    return Form(formulas_double.elu_backward, numbers, True)


def _logit(a: Sequence[float]) -> Form:
    (eps,) = a
    return Form(formulas_double.logit, (eps, log_odds(eps) if eps >= 0 else 0.0), True)


def _logit_grad(a: Sequence[float]) -> Form:
    (eps,) = a
    constant = grad_by_eps(eps)
    if constant is not None:
        return Form(formulas_logit.logit_grad_by_eps, constant, True)
    numbers = max(eps, 0.0), 0.0 if eps >= 0 else math.nan
    return Form(formulas_double.logit_grad, numbers, True)


DOUBLE: dict[str, Callable[[Sequence[float]], Form]] = {
    "leaky_relu": lambda a: Form(formulas.leaky_relu, (a[0],), True),
    "leaky_relu_backward": lambda a: Form(formulas.leaky_relu_backward, (a[0],), True),
    "hardshrink": lambda a: Form(formulas.hardshrink, (shrink_bound(a[0]),), True),
    "hardshrink_backward": lambda a: Form(
        formulas.hardshrink_backward, (shrink_bound(a[0]),), True
    ),
    "elu": _elu,
    "elu_backward": _elu_backward,
    "logit": _logit,
    "logit_grad": _logit_grad,
}
