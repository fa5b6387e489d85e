# SPDX-License-Identifier: Apache-2.0
"""What group norm kernels compute that are wrong in one way, by what follows "as if": plain
formulas, in the names of the rows, to tell mistakes apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from .arrays import Array, Outputs, of_digits
from .groups import EPS, by_channel, by_group, grouped, logistic

Formula = Callable[..., Outputs]
Taken = Callable[[Array, Array, int], Array]  # gamma or beta beside x


def _of_channel(v: Array, x: Array, groups: int) -> Array:
    return by_channel(v, x)


def _of_position(v: Array, x: Array, groups: int) -> Array:
    return np.resize(v, x.shape)


def _of_group(v: Array, x: Array, groups: int) -> Array:
    return by_channel(np.repeat(v[:groups], v.size // groups), x)


def _of_channel_in_group(v: Array, x: Array, groups: int) -> Array:
    return by_channel(np.resize(v[: v.size // groups], v.shape), x)


def _of_first_channel(v: Array, x: Array, groups: int) -> Array:
    size = v.size // groups
    return by_channel(np.repeat(v[::size], size), x)


def _taken(of_first: tuple[str, ...], mean: Array, rstd: Array) -> tuple[Array, Array]:
    """Mean and rstd, those of the first sample for all where they are named."""
    first_mean, first_rstd = (np.broadcast_to(s[:1], s.shape) for s in (mean, rstd))
    return first_mean if "mean" in of_first else mean, first_rstd if "rstd" in of_first else rstd


def _forward(
    x: Array,
    gamma: Array,
    beta: Array,
    *,
    rstd_of: Callable[[Array, float, int], Array] = lambda var, eps, n: 1 / np.sqrt(var + eps),
    gamma_of: Taken = _of_channel,
    beta_of: Taken = _of_channel,
    mean_groups: int | None = None,
    beta_last: bool = False,
    affine_last: bool = False,
    digits: int | None = None,
    digits_of_h: int | None = None,
    of_first: tuple[str, ...] = (),
    of_batch: bool = False,
    swish: Callable[[Array, float], Array] = lambda v, scale: v * logistic(scale * v),
    **a: Any,
) -> Outputs:
    """`mean_groups`: of the mean alone; 0 for no mean. `beta_last`, `affine_last`: after Swish.
    `digits`: of the statistics, `digits_of_h`: of h. `of_first`: statistics of the first sample,
    taken for all. `of_batch`: of all samples."""
    groups = a["num_groups"]
    parts = grouped(x, groups)
    axes = (0, 2) if of_batch else 2
    mean, var = (np.broadcast_to(f(axis=axes), parts.shape[:2]) for f in (parts.mean, parts.var))
    rstd = rstd_of(var, a["eps"], parts.shape[2])
    if digits is not None:
        mean, rstd = of_digits(mean, digits), of_digits(rstd, digits)
    centre, root = _taken(of_first, mean, rstd)
    if mean_groups is not None:
        centre = np.zeros_like(mean)
        if mean_groups:
            means = grouped(x, mean_groups).mean(axis=2)
            mean = centre = np.repeat(means, groups // mean_groups, axis=1)
    h = (x - by_group(centre, groups, x)) * by_group(root, groups, x)
    h = h if digits_of_h is None else of_digits(h, digits_of_h)
    shift = beta_of(beta, x, groups)
    weight = gamma_of(gamma, x, groups)
    v = h * (1 if affine_last else weight) + (0 if beta_last or affine_last else shift)
    y = swish(v, a["swish_scale"]) if a["activate_swish"] else v
    y = y * weight if affine_last else y
    return (y + shift if beta_last or affine_last else y), mean, rstd


def _with_other_groups(x: Array, gamma: Array, beta: Array, **a: Any) -> Outputs:
    y, mean, rstd = _forward(x, gamma, beta, **{**a, "num_groups": gamma.size // a["num_groups"]})
    shape = (x.shape[0], a["num_groups"])
    return y, np.resize(mean, shape), np.resize(rstd, shape)


def _interleaved(x: Array, gamma: Array, beta: Array, **a: Any) -> Outputs:
    order = np.arange(gamma.size).reshape(-1, a["num_groups"]).T.reshape(-1)
    y, mean, rstd = _forward(x[:, order], gamma[order], beta[order], **a)
    return y[:, np.argsort(order)], mean, rstd


def _backward(
    dy: Array,
    mean: Array,
    rstd: Array,
    x: Array,
    gamma: Array,
    beta: Array,
    *,
    lacks: str = "",
    samples: slice = slice(None),
    of_samples: Callable[..., Array] = np.sum,
    gamma_of: Taken = _of_channel,
    beta_of: Taken = _of_channel,
    rstd_of: Callable[[Array], Array] = lambda rstd: rstd,
    averages: str = "",
    signs: tuple[int, int] = (-1, -1),
    of_x: bool = False,
    digits_of_h: int | None = None,
    of_first: tuple[str, ...] = (),
    **a: Any,
) -> Outputs:
    """`lacks`: a term or a factor. `averages`: over what else than a group. `signs`: of the two
    averages. `of_x`: mean and rstd are computed again. `digits_of_h`: to which
    it is rounded. `of_first`: as in _forward."""
    groups = a["num_groups"]
    if of_x:
        parts = grouped(x, groups)
        mean, rstd = parts.mean(axis=2), 1 / np.sqrt(parts.var(axis=2) + EPS)
    mean, rstd = _taken(of_first, mean, rstd)
    r = by_group(rstd_of(rstd), groups, x)
    h = (x - by_group(mean, groups, x)) * r
    h = h if digits_of_h is None else of_digits(h, digits_of_h)
    weight = gamma_of(gamma, x, groups)
    v = h * weight + beta_of(beta, x, groups)
    t = a["swish_scale"] * v
    slope = 1.0 if lacks == "slope" else logistic(t)
    if lacks not in ("slope", "slope of the logistic"):
        inner = v if lacks == "swish_scale" else t
        slope = slope * (1 + inner * logistic(-t))
    u = dy * slope
    g = u if lacks == "gamma" else u * weight

    def average(terms: Array) -> Array:
        if averages == "channel":
            return by_group(grouped(terms, gamma.size).mean(axis=2), gamma.size, x)
        mean = by_group(grouped(terms, groups).mean(axis=2), groups, x)
        return mean * (gamma.size // groups if averages == "positions" else 1)

    inside = u if lacks == "gamma in averages" else g
    first = 0 if lacks == "average(g)" else average(inside)
    second = 0 if lacks == "h * average(g * h)" else average(inside * h)
    centred = x - by_group(mean, groups, x)
    slant = centred if lacks == "rstd in h" else h
    dx = (g + signs[0] * first + signs[1] * slant * second) * (1 if lacks == "rstd" else r)
    others = (0, *range(2, x.ndim))
    factors = {"h": x, "all of h": np.ones_like(x), "rstd in dgamma": centred}
    dgamma, dbeta = u * factors.get(lacks, h), g if lacks == "no gamma in dbeta" else u
    return dx, of_samples(dgamma[samples], axis=others), of_samples(dbeta[samples], axis=others)


def _of_first(formula: Formula) -> dict[str, Formula]:
    return {
        f"{text} of the first sample were taken for all": partial(formula, of_first=names)
        for text, names in {
            "mean": ("mean",),
            "rstd": ("rstd",),
            "mean and rstd": ("mean", "rstd"),
        }.items()
    }


def _misplaced(formula: Formula) -> dict[str, Formula]:
    """With gamma, beta or both taken elsewhere."""
    places = {
        "at i % C": _of_position,
        "at the group": _of_group,
        "at the channel in its group": _of_channel_in_group,
        "at the first channel of the group": _of_first_channel,
    }
    found: dict[str, Formula] = {}
    for text, place in places.items():
        for names in (("gamma",), ("beta",), ("gamma", "beta")):
            taken = {f"{name}_of": place for name in names}
            found[f"{' and '.join(names)} were taken {text}"] = partial(formula, **taken)
    return found


FORWARD: Mapping[str, Formula] = {
    "eps were added to the root": partial(
        _forward, rstd_of=lambda var, eps, n: 1 / (np.sqrt(var) + eps)
    ),
    "the variance were divided by n - 1": partial(
        _forward, rstd_of=lambda var, eps, n: 1 / np.sqrt(var * (n / max(1, n - 1)) + eps)
    ),
    "rstd were the standard deviation": partial(
        _forward, rstd_of=lambda var, eps, n: np.sqrt(var + eps)
    ),
    "rstd were variance + eps": partial(_forward, rstd_of=lambda var, eps, n: var + eps),
    "rstd were the variance": partial(_forward, rstd_of=lambda var, eps, n: var),
    "rstd were 1 / (variance + eps)": partial(
        _forward, rstd_of=lambda var, eps, n: 1 / (var + eps)
    ),
    "the mean were not subtracted": partial(_forward, mean_groups=0),
    "the mean were that of the sample": partial(_forward, mean_groups=1),
    "beta were added after Swish": partial(_forward, beta_last=True),
    "gamma and beta were applied after Swish": partial(_forward, affine_last=True),
    "mean and rstd were rounded to FLOAT first": partial(_forward, digits=24),
    "mean and rstd were rounded to FLOAT16 first": partial(_forward, digits=11),
    "mean and rstd were rounded to BFLOAT16 first": partial(_forward, digits=8),
    "h were rounded to FLOAT16 first": partial(_forward, digits_of_h=11),
    "h were rounded to BFLOAT16 first": partial(_forward, digits_of_h=8),
    **_of_first(_forward),
    "mean and rstd were over all samples": partial(_forward, of_batch=True),
    "beta were subtracted": partial(
        _forward, beta_of=lambda v, x, groups: -_of_channel(v, x, groups)
    ),
    "num_groups were C / num_groups": _with_other_groups,
    "channel c were in group c % num_groups": _interleaved,
    "Swish were the logistic function alone": partial(
        _forward, swish=lambda v, scale: logistic(scale * v)
    ),
    "swish_scale were a factor outside of the logistic function": partial(
        _forward, swish=lambda v, scale: scale * v * logistic(v)
    ),
    "Swish were v * clip(v / 6 + 0.5, 0, 1)": partial(
        _forward, swish=lambda v, scale: v * np.clip(v / 6 + 0.5, 0, 1)
    ),
    **_misplaced(_forward),
}
# dx = rstd * (g - average(g) - h * average(g * h)), g = gamma * u, dgamma = sum(u * h)
BACKWARD: Mapping[str, Formula] = {
    "swish'(v) were 1": partial(_backward, lacks="slope"),
    "swish'(v) were the logistic function": partial(_backward, lacks="slope of the logistic"),
    "swish'(v) lacked the factor swish_scale of v": partial(_backward, lacks="swish_scale"),
    "gamma were left out of dx": partial(_backward, lacks="gamma"),
    "average(g) were left out of dx": partial(_backward, lacks="average(g)"),
    "h * average(g * h) were left out of dx": partial(_backward, lacks="h * average(g * h)"),
    "average(g) were added, not subtracted": partial(_backward, signs=(1, -1)),
    "h * average(g * h) were added, not subtracted": partial(_backward, signs=(-1, 1)),
    "mean and rstd were those of x": partial(_backward, of_x=True),
    "rstd were left out of dx": partial(_backward, lacks="rstd"),
    "h were rounded to FLOAT16 first": partial(_backward, digits_of_h=11),
    "h were rounded to BFLOAT16 first": partial(_backward, digits_of_h=8),
    "rstd were the variance": partial(_backward, rstd_of=lambda rstd: 1 / np.sqrt(rstd + EPS)),
    "rstd were the standard deviation": partial(_backward, rstd_of=lambda rstd: 1 / rstd),
    "gamma were left out of both averages": partial(_backward, lacks="gamma in averages"),
    "beta were subtracted": partial(
        _backward, beta_of=lambda v, x, groups: -_of_channel(v, x, groups)
    ),
    **_of_first(_backward),
    "averages were over a channel": partial(_backward, averages="channel"),
    "averages were divided by the positions alone": partial(_backward, averages="positions"),
    "dgamma were sum(u * x)": partial(_backward, lacks="h"),
    "dgamma were sum(u)": partial(_backward, lacks="all of h"),
    "dgamma were sum(u * (x - mean))": partial(_backward, lacks="rstd in dgamma"),
    "dbeta were sum(u * gamma)": partial(_backward, lacks="no gamma in dbeta"),
    "(x - mean) * average(g * h) were subtracted": partial(_backward, lacks="rstd in h"),
    "sums were divided by the number of samples": partial(
        _backward, of_samples=lambda terms, axis: terms.sum(axis=axis) / len(terms)
    ),
    "sums were averages": partial(_backward, of_samples=np.mean),
    "sums were over the first sample": partial(_backward, samples=slice(1)),
    "sums were over the last sample": partial(_backward, samples=slice(-1, None)),
    **_misplaced(_backward),
}
