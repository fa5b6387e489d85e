# SPDX-License-Identifier: Apache-2.0
"""What the group norm kernels should compute: entries like those of formulas.py.

Results that are sums are judged by the sum of their absolute terms (`terms`): no order of summation
can be exact to the last place of a sum that cancels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .arrays import Array, Outputs
from .domains import Domain, normal
from .formulas import Attributes, Reference, Shapes
from .groups import EPS, by_channel, by_group, grouped, logistic
from .mistakes_group_norm import BACKWARD, FORWARD

# The largest error that is promised, as a share of the sum of the absolute terms.
BOUND = {"FLOAT": 4e-7, "DOUBLE": 1e-15}

# Below this t a logistic function in DOUBLE is subnormal (numerics.md); in FLOAT y is 0 there.
LEAST_T = -708


_positive = Domain(lambda rng, n: rng.uniform(0.5, 2, n))


def _normalised(x: Array, gamma: Array, beta: Array, a: Any) -> tuple[Array, Array, Array, Array]:
    parts = grouped(x, a["num_groups"])
    about = parts.mean(axis=2)
    centred = parts - about[:, :, None]
    # What rounding the mean lost: far from 0 that is many units of a deviation.
    rest = np.where(np.isfinite(about), centred.mean(axis=2), 0)
    centred = centred - rest[:, :, None]
    mean = about + rest
    rstd = 1 / np.sqrt((centred * centred).mean(axis=2) + a["eps"])
    h = (centred * rstd[:, :, None]).reshape(x.shape)
    return mean, rstd, h * by_channel(gamma, x), by_channel(beta, x)


def group_norm_swish(x: Array, gamma: Array, beta: Array, **a: Any) -> Outputs:
    mean, rstd, scaled, shift = _normalised(x, gamma, beta, a)
    v = scaled + shift
    with np.errstate(invalid="ignore", over="ignore"):
        y = v * logistic(a["swish_scale"] * v) if a["activate_swish"] else v
    return y, mean, rstd


# |dy/dv| is at most 1.1, or |s v| where that is more. Far below t = 0 it vanishes, and what the
# terms of v allow vanishes with it: 0 is no result where fp32 holds y. The mean and rstd are sums
# of like signs.
def group_norm_swish_terms(x: Array, gamma: Array, beta: Array, **a: Any) -> Outputs:
    _, rstd, scaled, shift = _normalised(x, gamma, beta, a)
    size = np.abs(grouped(x, a["num_groups"])).mean(axis=2)
    v, terms = scaled + shift, np.abs(scaled) + np.abs(shift)
    if a["activate_swish"]:
        t = a["swish_scale"] * v
        slope = np.abs(logistic(t) * (1 + t * logistic(-t)))
        terms = np.where(t < -44.3, 64 * slope * terms, terms)
        terms = np.where(t < LEAST_T, np.abs(v) * logistic(t) / BOUND["DOUBLE"], terms)
    return terms, size, rstd


def _gradient(
    sign: Any, dy: Array, mean: Array, rstd: Array, x: Array, gamma: Array, beta: Array, a: Any
) -> Outputs:
    """The derivative, or with sign = abs the sums of the absolute values of its terms. One of these
    terms is the change of u when the terms of t change by their own size."""
    groups = a["num_groups"]
    r = by_group(rstd, groups, x)
    h = (x - by_group(mean, groups, x)) * r
    t = a["swish_scale"] * (h * by_channel(gamma, x) + by_channel(beta, x))
    s, rest = logistic(t), logistic(-t)
    weight = by_channel(sign(gamma), x)
    u = sign(dy) * s * (1 + sign(t) * rest)
    if sign is abs:  # u depends on t, a sum of two terms
        slope = np.abs(dy) * s * rest * np.abs(2 + t * (rest - s))
        parts = np.abs(h * by_channel(gamma, x)) + np.abs(by_channel(beta, x))
        u = u + slope * abs(a["swish_scale"]) * parts
        u = np.where(t < LEAST_T, u / BOUND["DOUBLE"], u)
    h = sign(h)

    def mean_of(terms: Array) -> Array:
        return by_group(grouped(terms, groups).mean(axis=2), groups, x)

    c1, c2 = mean_of(weight * u), mean_of(weight * u * h)
    minus = 1 if sign is abs else -1
    dx = sign(r) * (weight * u + minus * c1 + minus * h * c2)
    others = (0, *range(2, x.ndim))
    return dx, (u * h).sum(axis=others), u.sum(axis=others)


def _plain(x: Array) -> Array:
    return x


def group_norm_swish_grad(
    dy: Array, mean: Array, rstd: Array, x: Array, gamma: Array, beta: Array, **a: Any
) -> Outputs:
    return _gradient(_plain, dy, mean, rstd, x, gamma, beta, a)


def group_norm_swish_grad_terms(
    dy: Array, mean: Array, rstd: Array, x: Array, gamma: Array, beta: Array, **a: Any
) -> Outputs:
    return _gradient(abs, dy, mean, rstd, x, gamma, beta, a)


# ---- inputs that belong together ----


def _statistics(x: Array, a: Attributes) -> tuple[Array, Array]:
    """Mean and rstd, (N, groups)."""
    parts = grouped(x, a["num_groups"]).astype(np.float64)
    return parts.mean(axis=2), 1 / np.sqrt(parts.var(axis=2) + EPS)


def _implied(inputs: Mapping[str, Array], a: Attributes) -> dict[str, Array]:
    mean, rstd = _statistics(inputs["x"], a)
    return {"mean": mean, "rstd": rstd}


def _far(rng: np.random.Generator, a: Attributes, shapes: Shapes) -> list[Array]:
    """A mean of 1,000 to 10,000 standard deviations: sums of x cancel, those of x - mean do not."""
    sizes = dict(zip(("x", "gamma", "beta"), shapes, strict=True))
    x = rng.normal(10.0 ** rng.uniform(3, 4), 1, sizes["x"])
    return [x, rng.normal(1, 0.3, sizes["gamma"]), rng.normal(0, 0.5, sizes["beta"])]


def _far_grad(rng: np.random.Generator, a: Attributes, shapes: Shapes) -> list[Array]:
    x, gamma, beta = _far(rng, a, shapes[3:])
    return [rng.normal(0, 1, x.shape), *_statistics(x, a), x, gamma, beta]


def _like_sign(rng: np.random.Generator, a: Attributes, shapes: Shapes) -> list[Array]:
    """A gradient above 0: sums grow with every term, and a plain sum loses digits as it grows."""
    x = rng.normal(0, 1, shapes[3])
    gamma, beta = rng.normal(1, 0.3, shapes[4]), rng.normal(0, 0.5, shapes[5])
    return [rng.uniform(0, 1, x.shape), *_statistics(x, a), x, gamma, beta]


def _tail(rng: np.random.Generator, a: Attributes, shape: tuple[int, ...]) -> Array:
    """swish_scale beta where the exponential of Swish leaves the range of fp32, at -88.7, and its
    result does not."""
    scale = a["swish_scale"] or 1.0
    return np.asarray(rng.uniform(-91, -70, shape) / scale)


def _tails(rng: np.random.Generator, a: Attributes, shapes: Shapes) -> list[Array]:
    """gamma = 0, so that Swish has beta alone, far out on the side where it vanishes."""
    return [rng.normal(0.5, 2, shapes[0]), np.zeros(shapes[1]), _tail(rng, a, shapes[2])]


def _tails_grad(rng: np.random.Generator, a: Attributes, shapes: Shapes) -> list[Array]:
    x, gamma, beta = _tails(rng, a, shapes[3:])
    return [rng.uniform(0.5, 1, x.shape), *_statistics(x, a), x, gamma, beta]


_SETS = ((4, 1.0), (1, 1.0), (12, 1.0), (3, 1.702), (2, -1.0), (6, 0.0), (2, 60.0))
_GROUPS = tuple({"num_groups": n, "data_format": None, "swish_scale": s} for n, s in _SETS)

REFERENCES: dict[str, Reference] = {
    "group_norm_swish": Reference(
        formula=group_norm_swish,
        terms=group_norm_swish_terms,
        mistakes=FORWARD,
        bound=BOUND,
        together={"far": _far, "tails": _tails},
        neutral={"beta": 0.0},
        example=(2, 12, 5, 7),
        large=(2, 128, 64, 64),
        domain=(normal(0.5, 2), normal(1, 0.3), normal(0, 0.5)),
        attributes=(
            *({**g, "eps": EPS, "activate_swish": True} for g in _GROUPS),
            {**_GROUPS[1], "eps": 0.5, "activate_swish": False},
        ),
        ulp={},
    ),
    "group_norm_swish_grad": Reference(
        formula=group_norm_swish_grad,
        terms=group_norm_swish_grad_terms,
        mistakes=BACKWARD,
        bound=BOUND,
        together={"far": _far_grad, "like sign": _like_sign, "tails": _tails_grad},
        implied=_implied,
        neutral={"beta": 0.0, "mean": 0.0},
        example=(2, 12, 5, 7),
        large=(2, 128, 64, 64),
        domain=(
            *(normal(0, 1), normal(0, 1), _positive),
            *(normal(0.5, 2), normal(1, 0.3), normal(0, 0.5)),
        ),
        attributes=tuple(
            {**g, "dgamma_is_require": True, "dbeta_is_require": True} for g in _GROUPS
        ),
        ulp={},
    ),
}
