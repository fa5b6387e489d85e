# SPDX-License-Identifier: Apache-2.0
"""The known defects of torch, and which wrong results each predicts.

numerics_peers.md shows them, with results that tools/docs/defects computes, under the same
numbers and titles. Two explain no finding: mean and rstd kept in half (4) take two calls, and
oneDNN (10) computes no operator of a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..reference.arrays import Array
from ..reference.evaluation import REFERENCES, numpy_dtype
from ..reference.judge import wide
from .cases import Case
from .defect import Defect, Wrong

EPSILON = 2.0**-24  # half a unit in the last place of 1 in fp32
LAST_EXPONENT = 88.7228  # exp overflows fp32 beyond it


def nan_by_position(w: Wrong) -> Any:
    """The tail of a vector loop takes the branch that a comparison with NaN leads to; the body, a
    blend, the other one."""
    a = w.operands if w.is_of("elu_backward", "hardshrink_backward", "logit_grad") else {}
    if w.is_of("elu_backward"):
        branch = w.narrow(a["grad_output"] * w.attribute("scale"))
        return np.isnan(a["self_or_result"]) & w.made(branch)
    if w.is_of("hardshrink_backward"):
        unordered = np.isnan(a["x"]) | np.isnan(w.attribute("lambd"))
        return unordered & w.made(np.zeros_like(a["x"]))
    if w.is_of("logit_grad"):
        unordered = np.isnan(a["x"]) | np.isnan(w.attribute("eps"))
        zero = w.made(np.zeros_like(a["x"]))
        return unordered & (zero | w.made(_logit_grad(w, a["x"], a["dy"])))
    return False


def _argument(w: Wrong) -> tuple[Array, Array, Array, Array]:
    """t of each element, |rstd gamma|, |x-hat|, and torch's form of it, (|x| + |mean|) |rstd|."""
    _, mean, rstd, x, gamma, beta = map(wide, w.output.inputs)
    groups = w.case.attributes["num_groups"]

    def of_group(s: Array) -> Array:
        return np.repeat(s.reshape(x.shape[0], groups), x.shape[1] // groups, 1).reshape(
            *x.shape[:2], *(1,) * (x.ndim - 2)
        )

    def of_channel(s: Array) -> Array:
        return s.reshape(-1, *(1,) * (x.ndim - 2))

    r, m = of_group(rstd), of_group(mean)
    h = (x - m) * r
    t = w.attribute("swish_scale") * (h * of_channel(gamma) + of_channel(beta))
    return t, np.abs(r * of_channel(gamma)), np.abs(h), (np.abs(x) + np.abs(m)) * np.abs(r)


def _terms(w: Wrong) -> Array:
    """The sums of absolute terms in torch's form of the gradient."""
    t, factor, h, apart = _argument(w)
    dy = wide(w.output.inputs[0])
    s = 1 / (1 + np.exp(-t))
    u = np.abs(dy * s * (1 + t * (1 - s)))
    others = (0, *range(2, t.ndim))
    if w.output.name == "dbeta":
        return np.asarray(u.sum(axis=others))
    if w.output.name == "dgamma":
        return np.asarray((u * apart).sum(axis=others))
    parts = (t.shape[0], w.case.attributes["num_groups"], -1)

    def mean(terms: Array) -> Array:
        means = terms.reshape(parts).mean(axis=2, keepdims=True)
        return np.broadcast_to(means, terms.reshape(parts).shape).reshape(terms.shape)

    u = factor * u
    return np.asarray(u + mean(u) + h * mean(u * apart) + apart * mean(u * h))


def _share(w: Wrong) -> tuple[Array, Array]:
    """The error as a share of torch's absolute terms, and how many times those are ours."""
    terms = _terms(w)
    error = np.abs(wide(w.output.got) - w.output.expected)
    return error / terms, terms / np.asarray(w.output.terms)


def lost_digits(w: Wrong) -> Any:
    if not w.is_of("group_norm_swish_grad") or w.output.name == "dbeta":
        return False
    share, times = _share(w)
    return (share <= 16 * EPSILON) & (times >= 8)


def plain_sum(w: Wrong) -> Any:
    """n roundings of a growing sum wander off by the square root of n."""
    if not w.is_of("group_norm_swish_grad") or w.output.name == "dx":
        return False
    positions = int(np.prod(w.case.shapes[0][2:]))
    share, times = _share(w)
    return (positions >= 4096) & (share <= np.sqrt(positions) * EPSILON) & (times < 8)


def rounded_attributes(w: Wrong) -> Any:
    """lambd, eps and 1 - eps in the dtype of the tensor."""
    if w.is_of("hardshrink", "hardshrink_backward"):
        lambd = w.narrow(w.attribute("lambd"))
        if lambd == w.attribute("lambd"):
            return False
        x = w.operands["x"]
        kept = w.operands.get("grad_output", x)
        return w.made(np.where(np.abs(x) <= lambd, 0.0, kept))
    if not w.is_of("logit", "logit_grad") or not w.attribute("eps") >= 0:
        return False
    eps = w.attribute("eps")
    low = w.narrow(eps)
    high = w.narrow(1 - low)
    if low == eps and high == 1 - eps:
        return False
    x = w.operands["input" if w.is_of("logit") else "x"]
    if w.is_of("logit"):
        beyond = (x < low) | (x > high) | (x < eps) | (x > 1 - eps)
        z = np.where(x < low, low, np.where(x > high, high, x))
        exact = REFERENCES["logit"].formula(z, eps=-1.0)
        return beyond & (w.made(w.narrow(exact)) | _near(w, exact) | _near(w, _logit(w, z)))
    outside = (x < low) | (x > high)
    differs = outside != ((x < eps) | (x > 1 - eps))
    return differs & w.made(np.where(outside, 0.0, _logit_grad(w, x, w.operands["dy"])))


def _near(w: Wrong, predicted: Array) -> Array:
    """Within one unit in the last place: torch's logarithm is another one."""
    unit = np.spacing(np.abs(w.narrow(predicted)).astype(numpy_dtype(w.output.dtype)))
    return np.asarray(np.abs(wide(w.output.got) - predicted) <= wide(unit))


def misrounded(w: Wrong) -> Any:
    """Every step in the dtype of the tensor, also where it has 16 bits."""
    if w.is_of("logit_grad"):
        return w.made(_logit_grad(w, w.operands["x"], w.operands["dy"]))
    if w.is_of("logit"):
        z = w.operands["input"]
        eps = w.attribute("eps")
        inside = (z >= eps) & (z <= 1 - eps) if eps >= 0 else np.isfinite(z)
        return inside & _near(w, _logit(w, z))
    return False


def _logit_grad(w: Wrong, x: Array, dy: Array) -> Array:
    return w.narrow(dy / w.narrow(x * w.narrow(1 - x)))


def _logit(w: Wrong, z: Array) -> Array:
    return np.asarray(np.log(w.narrow(z / w.narrow(1 - z))))


def early_zero(w: Wrong) -> Any:
    """1 / (1 + exp(-t)) is 0 where exp(-t) overflows fp32."""
    lost = (w.output.got == 0) & (np.abs(w.output.expected) >= 2.0**-126)
    if w.is_of("group_norm_swish") and w.output.name == "y":
        x, gamma, beta = (wide(x) for x in w.output.inputs)
        a = {**w.case.attributes, "activate_swish": False}
        v, *_ = REFERENCES["group_norm_swish"].formula(x, gamma, beta, **a)
        return lost & (w.attribute("swish_scale") * v < -LAST_EXPONENT)
    if w.is_of("group_norm_swish_grad") and w.output.name in ("dgamma", "dbeta"):
        t, *_ = _argument(w)
        return lost & (t.max(axis=(0, *range(2, t.ndim))) < -LAST_EXPONENT)
    return False


def overflow(w: Wrong) -> Any:
    """g times the attributes, before the exponential makes it small."""
    if not w.is_of("elu_backward") or w.case.attributes["is_result"]:
        return False
    g, x = w.operands["grad_output"], w.operands["self_or_result"]
    limit = np.ldexp(2 - 2.0**-23, 127)
    factor = w.attribute("alpha") * w.attribute("scale") * w.attribute("input_scale")
    over = (np.abs(g * factor) > limit) & np.isfinite(g) & (x <= 0)
    return over & ~np.isfinite(wide(w.output.got)) & np.isfinite(wide(w.output.nearest))


def channels_last(case: Case) -> bool:
    return (
        case.op.kernel == "group_norm_swish_grad"
        and case.layout == "channels_last"
        and int(np.prod(case.shapes[0][2:])) >= 2048
    )


TORCH = (
    Defect(
        1,
        "NaN by position",
        "the body and the tail of a vector loop take different branches for NaN",
        nan_by_position,
    ),
    Defect(
        2,
        "lost digits of dgamma",
        "the gradient of group norm sums x instead of (x - mean) rstd, and the sums cancel",
        lost_digits,
    ),
    Defect(3, "a plain sum", "channels are summed in fp32 without cascades", plain_sum),
    Defect(
        4,
        "statistics kept in half",
        "the forward of group norm keeps mean and rstd in the dtype of gamma, and the gradient "
        "reads them",
    ),
    Defect(
        5,
        "rounded attributes",
        "the attributes eps, 1 - eps and lambd are rounded to the dtype of the tensor",
        rounded_attributes,
    ),
    Defect(
        6,
        "misrounded results",
        "every step of logit and its gradient is rounded to the dtype of the tensor",
        misrounded,
    ),
    Defect(7, "zero too early", "1 / (1 + exp(-t)) is 0 where exp(-t) overflows fp32", early_zero),
    Defect(
        8,
        "overflow in between",
        "the gradient of Elu multiplies g and alpha before the exponential makes them small",
        overflow,
    ),
    Defect(
        9,
        "bits by thread count",
        "the gradient of a channels-last group norm sums by thread from 2,048 positions on",
        unsteady=channels_last,
    ),
    Defect(
        10,
        "oneDNN",
        "the swish that torch runs as the post-operation of a linear layer is off by several ulp "
        "where it is small",
    ),
)
