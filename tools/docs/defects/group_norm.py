# SPDX-License-Identifier: Apache-2.0
"""Defects of group norm and silu, and their gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

import openaclnn
from openaclnn.reference.evaluation import REFERENCES, absolute_terms, evaluate, ulp_error

from .defect import SEED, Demonstration, Line, bf16, error_text, number, to_torch

aten = torch.ops.aten
GRADIENT = next(op for op in openaclnn.OPS if op.python == "group_norm_swish_grad")


def silu(v: float) -> float:
    return v / (1 + math.exp(-v))


def silu_gradient(v: float) -> float:
    s = 1 / (1 + math.exp(-v))
    return s * (1 + v * (1 - s))


# ---- group norm: torch's and ours with one signature; swishScale 0 halves dy and does no more ----


def torch_gradients(dy: Any, x: Any, mean: Any, rstd: Any, gamma: Any, groups: int) -> list[Any]:
    n, c = x.shape[:2]
    t = [y if isinstance(y, torch.Tensor) else to_torch(y) for y in (dy, x, mean, rstd, gamma)]
    size = t[1].numel() // (n * c)
    return list(aten.native_group_norm_backward(*t, n, c, size, groups, [True, True, True]))


def our_gradients(dy: Any, x: Any, mean: Any, rstd: Any, gamma: Any, groups: int) -> list[Any]:
    beta = gamma * 0
    found = openaclnn.group_norm_swish_grad(dy * 2, mean, rstd, x, gamma, beta, groups, None, 0.0)
    return list(found)


def statistics(x: Any, groups: int) -> tuple[Any, Any]:
    """Mean and rstd in float64, (N, groups)."""
    implied = REFERENCES[GRADIENT.kernel].implied
    assert implied is not None
    found = implied({"x": np.asarray(x, np.float64)}, {"num_groups": groups})
    return found["mean"], found["rstd"]


def true_dgamma(dy: Any, x: Any, mean: Any, rstd: Any) -> tuple[Any, Any]:
    """dgamma, and the sum of the absolute terms, which scales the error that is promised."""
    ones = np.ones(x.shape[1])
    wide = [np.asarray(v, np.float64) for v in (2 * dy, mean, rstd, x, ones, 0 * ones)]
    attributes = {"num_groups": mean.shape[1], "data_format": None, "swish_scale": 0.0}
    terms = absolute_terms(GRADIENT, wide, attributes)
    assert terms is not None
    return evaluate(GRADIENT, wide, attributes)[1], terms[1]


def far_off(a: Any, true: Any) -> float:
    """The largest error over the largest true value."""
    wide = np.asarray(a.float() if isinstance(a, torch.Tensor) else a, np.float64)
    return float(abs(wide - true).max() / abs(true).max())


def far_off_each(a: Any, true: Any) -> float:
    """The largest relative error."""
    return float((abs(np.asarray(a, np.float64) - true)[true != 0] / abs(true[true != 0])).max())


PROMISED = 4e-7  # of the sum of the absolute terms


def lost_digits() -> Demonstration:
    rng, lines = np.random.default_rng(SEED), []
    dy = rng.standard_normal((2, 8, 4096)).astype(np.float32)
    gamma = np.ones(8, np.float32)
    for ratio in (0, 1e3, 1e4):
        x = (rng.standard_normal(dy.shape) + ratio).astype(np.float32)
        mean, rstd = (s.astype(np.float32) for s in statistics(x, 2))
        true, size = true_dgamma(dy, x, mean, rstd)
        theirs, ours = (f(dy, x, mean, rstd, gamma, 2)[1] for f in (torch_gradients, our_gradients))
        errors = far_off(theirs, true), far_off(ours, true)
        kept = (abs(np.float64(ours) - true) <= PROMISED * size).all()
        wrong = bool((abs(theirs.numpy() - true) > PROMISED * size).any())
        texts = map(error_text, errors)
        lines.append(Line(f"error of dgamma, mean/std = {ratio:g}", *texts, "0", wrong, bool(kept)))
    text = "The table shows the largest error in fp32 over the largest true value; the bound we "
    text += "promise is 4e-7 of the sum of absolute terms."
    return Demonstration(lines, text)


def plain_sum() -> Demonstration:
    rng = np.random.default_rng(SEED)
    dy = rng.random((1, 4, 1 << 20), np.float32)
    x = rng.standard_normal(dy.shape).astype(np.float32)
    gamma, mean, rstd = np.ones(4, np.float32), np.zeros((1, 2), np.float32), None
    rstd = mean + 1
    true = dy.astype(np.float64).sum((0, 2))
    theirs, ours = (f(dy, x, mean, rstd, gamma, 2)[2] for f in (torch_gradients, our_gradients))
    cascade = far_off(dy.sum(2)[0], true)
    errors = far_off(theirs, true), far_off(ours, true)
    wrong, right = errors[0] > 4 * cascade, errors[1] <= PROMISED
    lines = [Line("error of dbeta, HW = 2^20", *map(error_text, errors), "0", wrong, right)]
    text = f"NumPy's cascade sum has an error of {cascade:.1e}; torch's is "
    return Demonstration(lines, text + f"{errors[0] / cascade:.0f} times as large.")


def half_statistics() -> Demonstration:
    rng, lines = np.random.default_rng(SEED), []
    x = bf16(rng.standard_normal((2, 8, 4096)) + 3)
    dy, gamma = bf16(rng.standard_normal(x.shape) + x.astype(np.float32)), np.ones(8, np.float32)
    mean, rstd = statistics(x, 2)
    true, size = true_dgamma(dy, x, mean, rstd)
    ours = our_gradients(dy, x, *(s.astype(np.float32) for s in (mean, rstd)), gamma, 2)[1]
    kept = (abs(np.float64(ours) - true) <= PROMISED * size).all()
    tx, half = to_torch(x), to_torch(gamma).bfloat16()
    for name, weight in (("all bf16", half), ("gamma fp32", to_torch(gamma))):
        _, m, r = aten.native_group_norm(tx, weight, weight * 0, 2, 8, 4096, 2, 1e-5)
        theirs = aten.native_group_norm_backward(
            to_torch(dy), tx, m, r, weight, 2, 8, 4096, 2, [True, True, True]
        )[1]
        kind = str(m.dtype).removeprefix("torch.")
        texts = error_text(far_off(theirs, true)), error_text(far_off(ours, true)), "0"
        wrong = far_off(theirs, true) > 2.0**-9  # more than rounding dgamma itself to bf16
        lines.append(
            Line(f"error of dgamma, {name}: torch keeps {kind}", *texts, wrong, bool(kept))
        )
    text = "Here it is bfloat16. openaclnn accepts FLOAT statistics and gamma beside a 16-bit x."
    return Demonstration(lines, text)


def early_zero() -> Demonstration:
    lines = []
    for v in (-88.0, -89.0, -100.0):
        x = torch.tensor([v])
        at = np.array([[[v]]], np.float32)
        beta, one, zero = at.reshape(1), np.ones((1, 1), np.float32), np.zeros((1, 1), np.float32)
        y = openaclnn.group_norm_swish(at, zero[0], beta, 1, None, 1e-5, True, 1.0)[0]
        dbeta = openaclnn.group_norm_swish_grad(
            np.ones_like(at), zero, one, at, zero[0], beta, 1, None, 1.0
        )[2]
        gradient = aten.silu_backward(torch.ones(1), x)
        for name, theirs, ours, true in (
            ("silu", torch.nn.functional.silu(x), y, silu(v)),
            ("silu gradient", gradient, dbeta, silu_gradient(v)),
        ):
            found = float(theirs.reshape(-1)[0]), float(np.reshape(ours, -1)[0])
            errors = [abs(f - true) / abs(true) for f in found]
            texts = map(number, (*found, true))
            tiny = abs(true) < 2.0**-126  # a subnormal has fewer digits
            right = errors[1] <= (2.0**-149 / abs(true) if tiny else 4e-7)
            lines.append(Line(f"{name}({v:g})", *texts, errors[0] > 0.5, right))
    text = "torch's silu and its gradient are -0 where fp32 can still represent the true value. "
    text += "Ours is group_norm_swish with gamma = 0 and beta = v, and dbeta of its gradient."
    return Demonstration(lines, text)


def thread_count() -> Demonstration:
    rng, lines = np.random.default_rng(SEED), []
    before = torch.get_num_threads(), openaclnn.config()["threads"]
    for height in (16, 32, 64):
        shape = (1, 8, height, 64)
        dy, x = (rng.standard_normal(shape).astype(np.float32) for _ in range(2))
        mean, rstd = (s.astype(np.float32) for s in statistics(x, 2))
        last = [to_torch(a).contiguous(memory_format=torch.channels_last) for a in (dy, x)]
        views = [
            np.ascontiguousarray(a.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2) for a in (dy, x)
        ]
        gamma, found = np.ones(8, np.float32), []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            openaclnn.set_num_threads(threads)
            theirs = torch_gradients(*last, mean, rstd, gamma, 2)
            found.append(([y.numpy() for y in theirs], our_gradients(*views, mean, rstd, gamma, 2)))
        (torch_1, ours_1), (torch_2, ours_2) = found
        counts = [
            sum(int((np.asarray(a).view(np.uint32) != np.asarray(b).view(np.uint32)).sum())
                for a, b in zip(one, two, strict=True))
            for one, two in ((torch_1, torch_2), (ours_1, ours_2))
        ]  # fmt: skip
        lines.append(
            Line(
                f"other bits, HW = {height * 64}",
                *map(str, counts),
                "0",
                counts[0] > 0,
                not counts[1],
            )
        )
    torch.set_num_threads(before[0])
    openaclnn.set_num_threads(before[1])
    text = (
        "The table counts the values of dx, dgamma and dbeta that differ between 1 and 2 threads."
    )
    return Demonstration(lines, text)


def one_dnn() -> Demonstration:
    v = np.linspace(-80, 20, 100_000, dtype=np.float32)
    wide = v.astype(np.float64)
    true = wide / (1 + np.exp(-wide))
    column = to_torch(v).reshape(-1, 1)
    ours = our_silu(v)
    lines = []
    if torch.backends.mkldnn.is_available():
        weight, none = torch.ones(1, 1), torch.zeros(1)
        swish = torch.ops.mkldnn._linear_pointwise(column, weight, none, "swish", [], "")
        errors = [ulp_error(y.reshape(-1), true, "FLOAT") for y in (swish.numpy(), ours)]
        where = [f"{e.max():.1f} ulp at {v[e.argmax()]:.6g}" for e in errors]
        wrong, right = bool(errors[0].max() > 1), far_off_each(ours, true) <= PROMISED
        lines.append(Line("silu from -80 to 20, worst error", *where, "0", wrong, right))
    text = "Here the weight of the layer is 1 and its bias is 0."
    note = "oneDNN's own tests allow elu and swish 335 ulp. Its group-norm gradient, a reference "
    note += "loop, is not shown because torch does not call it. That -0 becomes +0 is not counted "
    note += "either, because the sum of the linear layer loses the sign before swish sees it."
    return Demonstration(lines, text, note)


def our_silu(v: Any) -> Any:
    """Channels with gamma = 0 and beta = v, in groups of 1."""
    x = np.zeros((1, v.size, 1), np.float32)
    zeros = np.zeros(v.size, np.float32)
    return openaclnn.group_norm_swish(x, zeros, v, v.size, None, 1e-5, True, 1.0)[0].reshape(-1)
