# SPDX-License-Identifier: Apache-2.0
"""What element-wise kernels compute that are wrong in one way, by what follows "as if"; those of
group norms are in mistakes_group_norm.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from .arrays import Array, of_digits
from .exponential import exponential

Mistakes = Mapping[str, Callable[..., Array]]

LEAKY_RELU: Mistakes = {
    "the result were max(x, negative_slope * x)": lambda x, *, negative_slope: np.maximum(
        x, negative_slope * x
    ),
    "the branches were swapped": lambda x, *, negative_slope: np.where(
        x > 0, negative_slope * x, x
    ),
    "x were |x|": lambda x, *, negative_slope: np.abs(x),
    "negative_slope were added, not multiplied": lambda x, *, negative_slope: np.where(
        x > 0, x, x + negative_slope
    ),
}

LEAKY_RELU_BACKWARD: Mistakes = {
    "the branches were swapped": lambda g, x, *, negative_slope, **_: np.where(
        x > 0, negative_slope * g, g
    ),
    "the sign of grad_output decided": lambda g, x, *, negative_slope, **_: np.where(
        g > 0, g, negative_slope * g
    ),
    "negative_slope were not multiplied by grad_output": lambda g, x, *, negative_slope, **_: (
        np.where(x > 0, g, negative_slope)
    ),
    "x were the factor, not grad_output": lambda g, x, *, negative_slope, **_: np.where(
        x > 0, x, negative_slope * x
    ),
}


def _flushed(x: Array) -> Array:
    """In FLOAT without subnormals."""
    return np.asarray(np.where(np.abs(x) < np.finfo(np.float32).tiny, 0, _in_float(x)))


def _in_float(x: Array) -> Array:
    return x.astype(np.float32).astype(x.dtype)


_exp, _expm1 = partial(exponential, np.exp), partial(exponential, np.expm1)


def _elu(
    x: Array,
    *,
    alpha: float,
    scale: float,
    input_scale: float,
    of: Callable[[Array, float], Array] = _expm1,
    above: Callable[..., Any] = lambda x, a, s, r: s * x,
    below: Callable[..., Any] = lambda x, e, a, s, r: s * a * e,
) -> Array:
    e = of(x, input_scale)
    upper, lower = (f(alpha, scale, input_scale) for f in (partial(above, x), partial(below, x, e)))
    return np.asarray(np.where(x > 0, upper, lower))


ELU: Mistakes = {
    "1 were not subtracted from the exponential": partial(_elu, of=_exp),
    "scale were left out for x > 0": partial(_elu, above=lambda x, a, s, r: x),
    "scale were left out for x <= 0": partial(_elu, below=lambda x, e, a, s, r: a * e),
    "alpha were a factor for x > 0, too": partial(_elu, above=lambda x, a, s, r: a * s * x),
    "input_scale were a factor for x > 0, too": partial(_elu, above=lambda x, a, s, r: s * r * x),
    "input_scale were a factor outside of the exponential": lambda x, **a: _elu(
        x, **{**a, "input_scale": 1.0}, below=lambda x, e, al, s, r: a["input_scale"] * s * al * e
    ),
    "x were divided by alpha in the exponential": lambda x, **a: _elu(
        x, **{**a, "input_scale": a["input_scale"] / np.float64(a["alpha"])}
    ),
    "the result were scale * (max(x, 0) + min(alpha * (exp(x) - 1), 0))": partial(
        _elu,
        above=lambda x, a, s, r: s * (x + np.minimum(a * _expm1(x, r), 0)),
        below=lambda x, e, a, s, r: s * np.minimum(a * e, 0),
    ),
    "the exponential were rounded to FLOAT16 first": partial(
        _elu, of=lambda x, r: of_digits(_expm1(x, r), 11)
    ),
    "the exponential were rounded to BFLOAT16 first": partial(
        _elu, of=lambda x, r: of_digits(_expm1(x, r), 8)
    ),
    "the branches were swapped": partial(
        _elu,
        above=lambda x, a, s, r: s * a * _expm1(x, r),
        below=lambda x, e, a, s, r: s * x,
    ),
}


def _elu_backward(
    g: Array,
    x: Array,
    *,
    alpha: float,
    scale: float,
    input_scale: float,
    is_result: bool,
    above: Callable[..., Any] = lambda g, a, s, r: g * s,
    from_result: Callable[..., Any] = lambda x, a, s, r: r * (x + a * s),
    from_self: Callable[..., Any] = lambda x, a, s, r: (a * s * r, _exp(x, r)),
    by: Callable[[Array, Array], Array] = lambda g, x: x,
) -> Array:
    given = alpha, scale, input_scale
    factor, power = (from_result(x, *given), 1.0) if is_result else from_self(x, *given)
    # The power last: times the factor it may be 0, which is NaN times an infinite g.
    return np.asarray(np.where(by(g, x) > 0, above(g, *given), g * factor * power))


ELU_BACKWARD: Mistakes = {
    "scale were left out for self_or_result > 0": partial(
        _elu_backward, above=lambda g, a, s, r: g
    ),
    "scale were left out for self_or_result <= 0": partial(
        _elu_backward,
        from_result=lambda x, a, s, r: r * (x + a),
        from_self=lambda x, a, s, r: (a * r, _exp(x, r)),
    ),
    "input_scale were left out as a factor": partial(
        _elu_backward,
        from_result=lambda x, a, s, r: x + a * s,
        from_self=lambda x, a, s, r: (a * s, _exp(x, r)),
    ),
    "input_scale were left out of the exponential": partial(
        _elu_backward, from_self=lambda x, a, s, r: (a * s * r, _exp(x, 1.0))
    ),
    "input_scale were a factor for self_or_result > 0, too": partial(
        _elu_backward, above=lambda g, a, s, r: g * s * r
    ),
    "1 were subtracted from the exponential": partial(
        _elu_backward, from_self=lambda x, a, s, r: (a * s * r, _expm1(x, r))
    ),
    "the exponential were rounded to FLOAT16 first": partial(
        _elu_backward, from_self=lambda x, a, s, r: (a * s * r, of_digits(_exp(x, r), 11))
    ),
    "the exponential were rounded to BFLOAT16 first": partial(
        _elu_backward, from_self=lambda x, a, s, r: (a * s * r, of_digits(_exp(x, r), 8))
    ),
    "alpha * scale were alpha with is_result": partial(
        _elu_backward, from_result=lambda x, a, s, r: r * (x + a)
    ),
    "scale were a factor of the sum with is_result, too": partial(
        _elu_backward, from_result=lambda x, a, s, r: r * s * (x + a * s)
    ),
    "alpha * scale were not added with is_result": partial(
        _elu_backward, from_result=lambda x, a, s, r: r * x
    ),
    "the sign of grad_output decided": partial(_elu_backward, by=lambda g, x: g),
}


def _slope_in_float(x: Array, *factors: float) -> tuple[float, Array]:
    """With an exponential that leaves the range of FLOAT, alone or times some of the factors."""
    power = np.exp(x * factors[-1])
    for end in (max, min):
        size = math.prod(end(abs(f), 1.0) for f in factors)
        power = _flushed(power * size) / size
    return 1.0, _flushed(power * math.prod(factors))


# What the standard `float` excuses.
ELU_BACKWARD_IN_FLOAT = partial(_elu_backward, from_self=_slope_in_float)


def _shrunk(x: Array, lambd: float, inside: Any, outside: Any) -> Array:
    return np.asarray(np.where(np.abs(x) <= max(lambd, 0), inside, outside))


HARDSHRINK: Mistakes = {
    "the function were softshrink": lambda x, *, lambd: _shrunk(
        x, lambd, 0, x - np.copysign(max(lambd, 0), x)
    ),
    "x were compared, not |x|": lambda x, *, lambd: np.where(x <= max(lambd, 0), 0, x),
    "-x were compared, not |x|": lambda x, *, lambd: np.where(x >= -max(lambd, 0), 0, x),
    "the branches were swapped": lambda x, *, lambd: _shrunk(x, lambd, x, 0),
    "x were clipped to [-lambd, lambd]": lambda x, *, lambd: np.clip(
        x, -max(lambd, 0), max(lambd, 0)
    ),
    "the result were |x|": lambda x, *, lambd: _shrunk(x, lambd, 0, np.abs(x)),
}

HARDSHRINK_BACKWARD: Mistakes = {
    "x were compared, not |x|": lambda g, x, *, lambd: np.where(x <= max(lambd, 0), 0, g),
    "-x were compared, not |x|": lambda g, x, *, lambd: np.where(x >= -max(lambd, 0), 0, g),
    "|grad_output| were compared, not |x|": lambda g, x, *, lambd: _shrunk(g, lambd, 0, g),
    "the branches were swapped": lambda g, x, *, lambd: _shrunk(x, lambd, g, 0),
    "x were the result, not grad_output": lambda g, x, *, lambd: _shrunk(x, lambd, 0, x),
    "grad_output were multiplied by x": lambda g, x, *, lambd: _shrunk(x, lambd, 0, g * x),
}


def _odds(low: Array, high: Array) -> Array:
    return np.asarray(np.log(low) - np.log(high))


def _clamped(x: Array, eps: float) -> Array:
    return _between(x, eps, 1 - eps)


def _between(x: Array, low: float, high: Any) -> Array:
    return x if low < 0 else np.maximum(low, np.minimum(x, high))  # NaN with NaN


def _odds_of(z: Array) -> Array:
    return _odds(z, 1 - z)


LOGIT: Mistakes = {
    "eps were added to input and to 1 - input": lambda x, *, eps: _odds(x + eps, 1 - x + eps),
    "eps were added to input": lambda x, *, eps: _odds(x + eps, 1 - x),
    "eps were added to 1 - input": lambda x, *, eps: _odds(x, 1 - x + eps),
    "input were only clamped to eps from below": lambda x, *, eps: _odds_of(np.maximum(x, eps)),
    "input were only clamped to 1 - eps from above": lambda x, *, eps: _odds_of(
        np.minimum(x, 1 - eps)
    ),
    "1 - eps were rounded to FLOAT": lambda x, *, eps: _odds_of(
        _between(x, eps, np.float32(1 - eps))
    ),
    "the result were log(input)": lambda x, *, eps: np.log(_clamped(x, eps)),
    "the result were input / (1 - input)": lambda x, *, eps: (
        _clamped(x, eps) / (1 - _clamped(x, eps))
    ),
}


def _logit_grad(
    x: Array,
    dy: Array,
    *,
    eps: float,
    of: Callable[[Array, Array], Any] = lambda x, dy: dy / (x * (1 - x)),
    sides: str = "below above",
    outside: float | None = None,
) -> Array:
    """`sides`: of [eps, 1 - eps] on which the result is another one, with eps >= 0. `outside`:
    which."""
    low = max(eps, 0)
    beyond = (x < low) & (eps < 0 or "below" in sides)
    beyond |= (x > 1 - low) & (eps < 0 or "above" in sides)
    usual = np.nan if eps < 0 else 0
    return np.where(beyond, usual if outside is None else outside, of(x, dy))


def _cancelling(x: Array) -> Array:
    """x - x * x in the dtype that a kernel computes in."""
    z: Any = x.astype(np.float32 if x.dtype == np.float64 else np.float64)
    return np.asarray((z - z * z).astype(x.dtype))


LOGIT_GRAD: Mistakes = {
    "x * (1 - x) were x - x * x, where almost equal numbers are subtracted": partial(
        _logit_grad, of=lambda x, dy: dy / _cancelling(x)
    ),
    "dy were multiplied by x * (1 - x)": partial(_logit_grad, of=lambda x, dy: dy * x * (1 - x)),
    "the result were dy / x": partial(_logit_grad, of=lambda x, dy: dy / x),
    "the result were dy / (1 - x)": partial(_logit_grad, of=lambda x, dy: dy / (1 - x)),
    "x were clamped and the result outside not 0": lambda x, dy, *, eps: _logit_grad(
        _clamped(x, eps), dy, eps=eps, sides=""
    ),
    "the result were only 0 below eps": partial(_logit_grad, sides="below"),
    "the result were only 0 above 1 - eps": partial(_logit_grad, sides="above"),
    "the result were 0 nowhere": partial(_logit_grad, sides=""),
    "the result outside were NaN for every eps": partial(_logit_grad, outside=np.nan),
    "the result outside were 0 for every eps": partial(_logit_grad, outside=0.0),
}


def _with_limits_in_float(x: Array, dy: Array, *, eps: float) -> Array:
    low, high = np.float32(eps), np.float32(1) - np.float32(eps)
    if not 0 <= eps < 1:
        return np.full(dy.shape, np.inf)  # nothing is excused
    return np.where((x >= low) & (x <= high), dy / (x * (1 - x)), 0.0)


LOGIT_IN_FLOAT = LOGIT["1 - eps were rounded to FLOAT"]
LOGIT_GRAD_IN_FLOAT = _with_limits_in_float
