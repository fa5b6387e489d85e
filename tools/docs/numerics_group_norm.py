# SPDX-License-Identifier: Apache-2.0
"""Writes docs/numerics_group_norm.md: how exact GroupNormSwish and its gradient are when the mean
is far above the deviation, and torch beside them.

    python tools/docs/numerics_group_norm.py > docs/numerics_group_norm.md

Every error is condition-scaled: the largest |result - exact| / Σ|terms|, where exact is the formula
in float64 on the same fp32 inputs, and the terms are those whose sum is the result (for dx:
rstd |γ u| + rstd mean|γ u| + rstd |x̂| mean|γ u x̂|, with |u| = |dy| σ (1 + |s v| (1 - σ))).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch

import openaclnn

Array = np.ndarray[Any, Any]
BOUND = 4e-7
RATIOS = (0, 10, 1e3, 1e4)
SHAPES = (((2, 32, 64, 64), 8), ((1, 8, 256, 256), 2), ((1, 2, 1024, 1024), 1))
SEED = 7


def scaled(actual: Array, exact: Array, terms: Array) -> float:
    """The largest scaled error. 0 / 0, where nothing had to be computed, is no error."""
    error = np.abs(actual.astype(np.float64).reshape(exact.shape) - exact)
    return float(np.max(np.divide(error, terms, out=np.zeros_like(error), where=terms > 0)))


def gradients(t: dict[str, Array], groups: int, absolute: bool) -> tuple[Array, ...]:
    """dx, dgamma and dbeta in float64, or the sums of the absolute values of their terms."""
    sign = np.abs if absolute else np.asarray
    samples, channels = t["x"].shape[:2]
    shape = (samples, groups, channels // groups, -1)
    wide = {name: value.astype(np.float64) for name, value in t.items()}
    x, dy = wide["x"].reshape(shape), wide["dy"].reshape(shape)
    gamma, beta = (wide[name].reshape(1, groups, -1, 1) for name in ("gamma", "beta"))
    mean, rstd = (wide[name].reshape(samples, groups, 1, 1) for name in ("mean", "rstd"))
    h = (x - mean) * rstd
    v = h * gamma + beta
    s = 1 / (1 + np.exp(-v))
    u = sign(dy) * s * (1 + sign(v) * (1 - s))
    gamma, h = sign(gamma), sign(h)
    c1 = (gamma * u).mean((2, 3), keepdims=True)
    c2 = (gamma * u * h).mean((2, 3), keepdims=True)
    dx = rstd * (gamma * u + c1 + h * c2 if absolute else gamma * u - c1 - h * c2)
    return dx, (u * h).sum((0, 3)).reshape(-1), u.sum((0, 3)).reshape(-1)


def forward(t: dict[str, Array], groups: int, eps: float) -> tuple[Array, Array]:
    """y in float64, and |x̂ γ| + |β|."""
    samples, channels = t["x"].shape[:2]
    x = t["x"].astype(np.float64).reshape(samples, groups, -1)
    centred = x - x.mean(2, keepdims=True)
    h = centred / np.sqrt((centred**2).mean(2, keepdims=True) + eps)
    h = h.reshape(samples, channels, -1)
    gamma, beta = (t[name].astype(np.float64)[None, :, None] for name in ("gamma", "beta"))
    v = h * gamma + beta
    return v / (1 + np.exp(-v)), np.abs(h * gamma) + np.abs(beta)


def ours(t: dict[str, Array], groups: int) -> tuple[Array, ...]:
    names = ("dy", "mean", "rstd", "x", "gamma", "beta")
    return openaclnn.group_norm_swish_grad(*(t[name] for name in names), groups)


def theirs(t: dict[str, Array], groups: int) -> tuple[Array, ...]:
    given = {name: torch.from_numpy(value) for name, value in t.items()}
    samples, channels, *positions = given["x"].shape
    sizes = (samples, channels, int(np.prod(positions)), groups)
    x, mean, rstd, gamma = (given[name] for name in ("x", "mean", "rstd", "gamma"))
    by_channel = (1, -1, *(1,) * len(positions))
    by_group = [g.repeat_interleave(channels // groups, 1) for g in (mean, rstd)]
    by_group = [g.reshape(samples, channels, *(1,) * len(positions)) for g in by_group]
    y = (x - by_group[0]) * by_group[1] * gamma.reshape(by_channel)
    y = y + given["beta"].reshape(by_channel)  # what native_group_norm gives, or better
    du = torch.ops.aten.silu_backward(given["dy"], y)
    backward = torch.ops.aten.native_group_norm_backward
    found = backward(du, x, mean.flatten(), rstd.flatten(), gamma, *sizes, [True] * 3)
    return tuple(f.numpy() for f in found)


def inputs(shape: tuple[int, ...], groups: int, ratio: float) -> dict[str, Array]:
    rng = np.random.default_rng(SEED)
    x = (rng.normal(0, 1, shape) + ratio).astype(np.float32)
    parts = x.astype(np.float64).reshape(shape[0], groups, -1)
    return {
        "x": x,
        "dy": rng.normal(0, 1, shape).astype(np.float32),
        "gamma": rng.normal(1, 0.2, shape[1]).astype(np.float32),
        "beta": rng.normal(0, 0.5, shape[1]).astype(np.float32),
        "mean": parts.mean(2).astype(np.float32),
        "rstd": (1 / np.sqrt(parts.var(2) + 1e-5)).astype(np.float32),
    }


def row(shape: tuple[int, ...], groups: int, ratio: float) -> tuple[str, float]:
    t = inputs(shape, groups, ratio)
    exact, terms = gradients(t, groups, False), gradients(t, groups, True)
    errors = [
        [scaled(a, e, s) for a, e, s in zip(found, exact, terms, strict=True)]
        for found in (ours(t, groups), theirs(t, groups))
    ]
    y, *_ = openaclnn.group_norm_swish(t["x"], t["gamma"], t["beta"], groups)
    given = [torch.from_numpy(t[name]) for name in ("x", "gamma", "beta")]
    normal = torch.nn.functional.group_norm(given[0], groups, *given[1:], 1e-5)
    peer = torch.nn.functional.silu(normal).numpy()
    exact_y, terms_y = forward(t, groups, 1e-5)
    for found, result in zip(errors, (y, peer), strict=True):
        found.insert(0, scaled(result, exact_y, terms_y))
    cells = [f"{value:.1e}" for pair in zip(*errors, strict=True) for value in pair]
    name = "x".join(map(str, shape))
    return f"| {name} G{groups} | {ratio:g} | {' | '.join(cells)} |", max(errors[0])


HEAD = (
    "<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
    "# Group norm: errors when the mean is far above the deviation\n\n"
    "The output of `python tools/docs/numerics_group_norm.py` is this page. It shows the largest "
    f"|result - exact| / Σ|terms| in FLOAT; the bound promised is {BOUND:g}. The exact value is "
    "the formula in float64 on the same inputs. Every result is a sum, and Σ|terms| is the sum of "
    "the absolute values of its terms; for dx that is rstd |γ u| + rstd mean|γ u| + "
    "rstd |x̂| mean|γ u x̂|. [numerics.md](numerics.md#group-norm) defines u and x̂. Both libraries "
    "get the same mean and rstd for the gradients; y is computed from x, γ and β alone. "
    f"torch {torch.__version__.split('+')[0]}, CPU.\n\n"
    "| shape | mean / std | y | torch | dx | torch | dgamma | torch | dbeta | torch |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
)

FOOT = (
    "\nThe library sums u (x - mean) or u x̂; it never sums u x and subtracts mean Σ u afterwards, "
    "so nothing cancels. The forward call carries the mean in two fp32 numbers. Within pieces of "
    "512 positions terms are added in 32 fp32 lanes; the pieces are added in fp64.\n"
)


def main() -> int:
    print(HEAD, end="")
    worst = 0.0
    for shape, groups in SHAPES:
        for ratio in RATIOS:
            line, error = row(shape, groups, ratio)
            worst = max(worst, error)
            print(line, flush=True)
    print(f"\nLargest of ours: {worst:.1e}.")
    print(FOOT, end="")
    if worst > BOUND:
        print(f"the promise of {BOUND:g} is broken: {worst:.2e}", file=sys.stderr)
    return 1 if worst > BOUND else 0


if __name__ == "__main__":
    sys.exit(main())
