# SPDX-License-Identifier: Apache-2.0
"""What element-wise kernels compute that are wrong in one way, by what follows "as if"; those of
group norms are in mistakes_group_norm.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from .exponential import Array, exponential

Mistakes = Mapping[str, Callable[..., Array]]

LEAKY_RELU: Mistakes = {
    "it were max(x, negative_slope * x)": lambda x, *, negative_slope: np.maximum(
        x, negative_slope * x
    ),
    "the branches were swapped": lambda x, *, negative_slope: np.where(
        x > 0, negative_slope * x, x
    ),
    "x were |x|": lambda x, *, negative_slope: np.abs(x),
    "negative_slope were added": lambda x, *, negative_slope: np.where(
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
    "x were multiplied, not grad_output": lambda g, x, *, negative_slope, **_: np.where(
        x > 0, x, negative_slope * x
    ),
}


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
    "exp(x) - 1 were exp(x)": partial(_elu, of=_exp),
    "scale were left out above 0": partial(_elu, above=lambda x, a, s, r: x),
    "scale were left out below 0": partial(_elu, below=lambda x, e, a, s, r: a * e),
    "alpha were multiplied above 0, too": partial(_elu, above=lambda x, a, s, r: a * s * x),
    "input_scale were multiplied above 0, too": partial(_elu, above=lambda x, a, s, r: s * r * x),
    "input_scale were a factor outside of the exponential": lambda x, **a: _elu(
        x, **{**a, "input_scale": 1.0}, below=lambda x, e, al, s, r: a["input_scale"] * s * al * e
    ),
    "x were divided by alpha in the exponential": lambda x, **a: _elu(
        x, **{**a, "input_scale": a["input_scale"] / np.float64(a["alpha"])}
    ),
    "it were scale * (max(x, 0) + min(alpha * (exp(x) - 1), 0))": partial(
        _elu,
        above=lambda x, a, s, r: s * (x + np.minimum(a * _expm1(x, r), 0)),
        below=lambda x, e, a, s, r: s * np.minimum(a * e, 0),
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
    from_self: Callable[..., Any] = lambda x, a, s, r: a * s * r * _exp(x, r),
    by: Callable[[Array, Array], Array] = lambda g, x: x,
) -> Array:
    slope = (from_result if is_result else from_self)(x, alpha, scale, input_scale)
    return np.asarray(np.where(by(g, x) > 0, above(g, alpha, scale, input_scale), g * slope))


ELU_BACKWARD: Mistakes = {
    "scale were left out above 0": partial(_elu_backward, above=lambda g, a, s, r: g),
    "scale were left out below 0": partial(
        _elu_backward,
        from_result=lambda x, a, s, r: r * (x + a),
        from_self=lambda x, a, s, r: a * r * _exp(x, r),
    ),
    "input_scale were left out as a factor": partial(
        _elu_backward,
        from_result=lambda x, a, s, r: x + a * s,
        from_self=lambda x, a, s, r: a * s * _exp(x, r),
    ),
    "input_scale were left out of the exponential": partial(
        _elu_backward, from_self=lambda x, a, s, r: a * s * r * _exp(x, 1.0)
    ),
    "input_scale were multiplied above 0, too": partial(
        _elu_backward, above=lambda g, a, s, r: g * s * r
    ),
    "exp(x) were exp(x) - 1": partial(
        _elu_backward, from_self=lambda x, a, s, r: a * s * r * _expm1(x, r)
    ),
    "alpha * scale were alpha with is_result": partial(
        _elu_backward, from_result=lambda x, a, s, r: r * (x + a)
    ),
    "scale were multiplied twice with is_result": partial(
        _elu_backward, from_result=lambda x, a, s, r: r * s * (x + a * s)
    ),
    "alpha * scale were not added with is_result": partial(
        _elu_backward, from_result=lambda x, a, s, r: r * x
    ),
    "the sign of grad_output decided": partial(_elu_backward, by=lambda g, x: g),
}

HARDSHRINK: Mistakes = {
    "it were softshrink": lambda x, *, lambd: np.where(
        np.abs(x) <= max(lambd, 0), 0, x - np.copysign(max(lambd, 0), x)
    ),
    "x were compared, not |x|": lambda x, *, lambd: np.where(x <= max(lambd, 0), 0, x),
    "-x were compared, not |x|": lambda x, *, lambd: np.where(x >= -max(lambd, 0), 0, x),
    "the branches were swapped": lambda x, *, lambd: np.where(np.abs(x) <= max(lambd, 0), x, 0),
    "it were clipped to [-lambd, lambd]": lambda x, *, lambd: np.clip(x, -abs(lambd), abs(lambd)),
    "|x| were the result": lambda x, *, lambd: np.where(np.abs(x) <= max(lambd, 0), 0, np.abs(x)),
}

HARDSHRINK_BACKWARD: Mistakes = {
    "x were compared, not |x|": lambda g, x, *, lambd: np.where(x <= max(lambd, 0), 0, g),
    "-x were compared, not |x|": lambda g, x, *, lambd: np.where(x >= -max(lambd, 0), 0, g),
    "|grad_output| were compared, not |x|": lambda g, x, *, lambd: np.where(
        np.abs(g) <= max(lambd, 0), 0, g
    ),
    "the branches were swapped": lambda g, x, *, lambd: np.where(np.abs(x) <= max(lambd, 0), g, 0),
    "x were the result, not grad_output": lambda g, x, *, lambd: np.where(
        np.abs(x) <= max(lambd, 0), 0, x
    ),
    "grad_output were multiplied by x": lambda g, x, *, lambd: np.where(
        np.abs(x) <= max(lambd, 0), 0, g * x
    ),
}


def _odds(low: Array, high: Array) -> Array:
    return np.log(low) - np.log(high)


LOGIT: Mistakes = {
    "eps were added to x and to 1 - x": lambda x, *, eps: _odds(x + eps, 1 - x + eps),
    "eps were added to x": lambda x, *, eps: _odds(x + eps, 1 - x),
    "eps were added to 1 - x": lambda x, *, eps: _odds(x, 1 - x + eps),
    "x were only clamped to eps from below": lambda x, *, eps: _odds(
        np.maximum(x, eps), 1 - np.maximum(x, eps)
    ),
    "x were only clamped to 1 - eps from above": lambda x, *, eps: _odds(
        np.minimum(x, 1 - eps), 1 - np.minimum(x, 1 - eps)
    ),
    "it were log(x)": lambda x, *, eps: np.log(np.clip(x, eps, 1 - eps) if eps >= 0 else x),
    "it were x / (1 - x)": lambda x, *, eps: (
        (z := np.clip(x, eps, 1 - eps) if eps >= 0 else x) / (1 - z)
    ),
}


def _outside(x: Array, eps: float) -> Array:
    return (x < eps) | (x > 1 - eps) if eps >= 0 else (x < 0) | (x > 1)


def _cancelling(x: Array) -> Array:
    """x - x * x in the dtype that a kernel computes in."""
    z: Any = x.astype(np.float32 if x.dtype == np.float64 else np.float64)
    return np.asarray((z - z * z).astype(x.dtype))


LOGIT_GRAD: Mistakes = {
    "x * (1 - x) were x - x * x, where almost equal numbers are subtracted": lambda x, dy, *, eps: (
        np.where(_outside(x, eps), np.nan if eps < 0 else 0, dy / _cancelling(x))
    ),
    "dy were multiplied by x * (1 - x)": lambda x, dy, *, eps: np.where(
        _outside(x, eps), np.nan if eps < 0 else 0, dy * x * (1 - x)
    ),
    "x were clamped, where the result is 0": lambda x, dy, *, eps: (
        dy / ((z := np.clip(x, eps, 1 - eps) if eps >= 0 else x) * (1 - z))
    ),
    "it were 0 only below eps": lambda x, dy, *, eps: np.where(x < eps, 0, dy / (x * (1 - x))),
    "it were 0 only above 1 - eps": lambda x, dy, *, eps: np.where(
        x > 1 - eps, 0, dy / (x * (1 - x))
    ),
    "it were 0 nowhere": lambda x, dy, *, eps: dy / (x * (1 - x)),
    "it were NaN outside of [eps, 1 - eps]": lambda x, dy, *, eps: np.where(
        _outside(x, eps), np.nan, dy / (x * (1 - x))
    ),
    "it were 0 outside of [0, 1]": lambda x, dy, *, eps: np.where(
        _outside(x, eps), 0, dy / (x * (1 - x))
    ),
    "it were dy / x": lambda x, dy, *, eps: np.where(_outside(x, eps), 0, dy / x),
    "it were dy / (1 - x)": lambda x, dy, *, eps: np.where(_outside(x, eps), 0, dy / (1 - x)),
}
