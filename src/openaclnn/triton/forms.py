# SPDX-License-Identifier: Apache-2.0
"""Which formula computes a kernel with these attributes, and the numbers it takes.

The attributes decide, as in core/kernels/elementwise: a formula in fp32 where it keeps its promise
for every input, else one of exact.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..rows.schema import Op
from . import exact, formulas, formulas_logit
from .form import (
    Form,
    f32,
    grad_by_eps,
    log_odds,
    lost,
    parts,
    product,
    short,
    shrink_bound,
    within,
)

ATTRIBUTES = 8  # the most numbers that a formula takes
_LOG2E = float.fromhex("0x1.71547652b82fep0")


def _leaky_relu(a: Sequence[float], half: str) -> Form:
    return Form(formulas.leaky_relu, (a[0],))


def _leaky_relu_backward(a: Sequence[float], half: str) -> Form:
    return Form(formulas.leaky_relu_backward, (a[0],))


def _hardshrink(a: Sequence[float], half: str) -> Form:
    return Form(formulas.hardshrink, (shrink_bound(a[0]),))


def _hardshrink_backward(a: Sequence[float], half: str) -> Form:
    return Form(formulas.hardshrink_backward, (shrink_bound(a[0]),))


def _elu_exact(a: Sequence[float]) -> Form:
    alpha, scale, rate = a
    return Form(exact.elu, (scale, product(scale, alpha), rate), in_double=True)


def _elu(a: Sequence[float], half: str) -> Form:
    alpha, scale, rate = a
    factor = product(scale, alpha)
    usual = rate > 0 and within(rate, 2.0**-60, 2.0**60) and within(factor, 2.0**-60, 2.0**60)
    if half and usual:
        numbers = f32(scale), f32(factor), f32(factor * rate), f32(rate * _LOG2E)
        even = numbers[2] == numbers[0]
        return Form(formulas.elu_half_even if even else formulas.elu_half, numbers)
    if not half and usual and rate == 1 and factor > 0:
        return Form(formulas.elu, (f32(scale), *parts(factor)))
    return _elu_exact(a)


def _elu_backward_exact(a: Sequence[float]) -> Form:
    alpha, scale, rate, is_result = a
    shift = product(scale, alpha)
    if is_result:
        low = lost(scale, alpha, shift) or -0.0  # adding it keeps the sign of a zero
        return Form(exact.elu_backward_result, (scale, rate, shift, low), in_double=True)
    return Form(exact.elu_backward, (scale, product(shift, rate), rate), in_double=True)


def _elu_backward(a: Sequence[float], half: str) -> Form:
    alpha, scale, rate, is_result = a
    numbers: tuple[float, ...]
    if is_result:
        shift = product(scale, alpha)
        slow = not (rate == 0 or within(rate, 2.0**-20, 1))
        if half and not slow and within(shift, 2.0**-20, 2.0**100):
            numbers = f32(scale), f32(rate), *parts(shift)
            return Form(formulas.elu_backward_result_half, numbers)
        return _elu_backward_exact(a)
    factor = product(scale, alpha, rate)
    most = {"": 2.0**38, "bf16": 2.0**6, "fp16": 2.0**24}[half]
    if rate > 0 and within(rate, 2.0**-60, 2.0**60) and within(factor, 2.0**-20, most):
        if half == "bf16":
            shift = 7.0 if factor <= 4 else 9.0
            numbers = f32(scale), f32(factor * 4.0**-shift), f32(rate * _LOG2E / 2), shift
            return Form(formulas.elu_backward_bf16, numbers)
        if half == "fp16":
            high = short(rate * _LOG2E)
            low = (rate * _LOG2E - high) / _LOG2E
            numbers = f32(scale), f32(factor), high, f32(low), f32(-100 / high)
            return Form(formulas.elu_backward_fp16, numbers)
        bounds = f32(-152 / rate), f32(-221.5 / rate)
        numbers = f32(scale), *parts(factor * 2.0**32), f32(rate), *bounds
        return Form(formulas.elu_backward, numbers)
    return _elu_backward_exact(a)


def _next(x: float) -> float:
    """The fp32 number above x, which is one."""
    return float(np.nextafter(np.float32(x), np.float32(np.inf)))


def float_from(x: float) -> float:
    """The least float that is not below x."""
    near = f32(x)
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


def _logit_exact(a: Sequence[float]) -> Form:
    (eps,) = a
    if not eps < 0.5:
        return Form(formulas_logit.logit_constant, (log_odds(eps),), in_double=True)
    return Form(exact.logit, (eps,), in_double=True)


def _logit(a: Sequence[float], half: str) -> Form:
    (eps,) = a
    scale = (1.0 if half == "fp16" else 256.0,) if half else ()
    if eps < 0:
        return (
            Form(formulas_logit.logit_open_half, scale)
            if half
            else Form(formulas_logit.logit_open, scale)
        )
    least = f32(log_odds(eps))
    if not eps < 0.5:
        return Form(formulas_logit.logit_constant, (least,))
    formula = formulas_logit.logit_half if half else formulas_logit.logit
    low = max(-float_above(-eps), 0.0)
    high = min(float_above(up_to_complement(eps)), 1.0)
    return Form(formula, (*scale, low, high, least, 0.0 - least))


def _logit_grad_exact(a: Sequence[float]) -> Form:
    (eps,) = a
    constant = grad_by_eps(eps)
    if constant is not None:
        return Form(formulas_logit.logit_grad_by_eps, constant, in_double=True)
    numbers = max(eps, 0.0), 0.0 if eps >= 0 else math.nan
    return Form(exact.logit_grad, numbers, in_double=True)


def _logit_grad(a: Sequence[float], half: str) -> Form:
    (eps,) = a
    constant = grad_by_eps(eps)
    if constant is not None:
        return Form(formulas_logit.logit_grad_by_eps, constant)
    bound = max(eps, 0.0)
    outside = 0.0 if eps >= 0 else math.nan
    low, high = float_from(bound), float_up_to(up_to_complement(bound))
    if half:
        return Form(formulas_logit.logit_grad_half, (low, outside, high))
    least = 1 - high  # exact where high >= 1/2, and so is the next line
    if high < 0.5 or (least >= low and least - 2.0**-24 < low):
        return Form(formulas_logit.logit_grad, (low, outside))
    return _logit_grad_exact(a)


FORMS: dict[str, Callable[[Sequence[float], str], Form]] = {
    "leaky_relu": _leaky_relu,
    "leaky_relu_backward": _leaky_relu_backward,
    "hardshrink": _hardshrink,
    "hardshrink_backward": _hardshrink_backward,
    "elu": _elu,
    "elu_backward": _elu_backward,
    "logit": _logit,
    "logit_grad": _logit_grad,
}


# For DOUBLE, where it is another one.
EXACT: dict[str, Callable[[Sequence[float]], Form]] = {
    "elu": _elu_exact,
    "elu_backward": _elu_backward_exact,
    "logit": _logit_exact,
    "logit_grad": _logit_grad_exact,
}


def form_of(op: Op, attributes: Sequence[float], double: bool, half: str) -> Form:
    """`half`: the dtype of the call, where inputs and output have 16 bits. Scalars are rounded to
    fp32, unless the call computes in double."""
    if double:
        exactly = EXACT.get(op.kernel)
        return exactly(attributes) if exactly else FORMS[op.kernel](attributes, "")
    pairs = zip(op.attributes, attributes, strict=True)
    return FORMS[op.kernel]([f32(x) if p.kind == "scalar" else x for p, x in pairs], half)
