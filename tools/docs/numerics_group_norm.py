# SPDX-License-Identifier: Apache-2.0
"""Writes numerics_group_norm.md: how exact GroupNormSwish and its gradient are when the mean
is far above the deviation, and torch beside them.

    python tools/docs/numerics_group_norm.py > docs/reference/numerics_group_norm.md

Every error is the largest |result - exact| / Σ|terms|, by the reference with which the tests judge.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

import openaclnn
from openaclnn.plotting.curves import default_attributes
from openaclnn.reference.evaluation import absolute_terms, evaluate
from openaclnn.rows.schema import Op

Array = np.ndarray[Any, Any]
BOUND = 4e-7
RATIOS = (0, 10, 1e3, 1e4)
SHAPES = (((2, 32, 64, 64), 8), ((1, 8, 256, 256), 2), ((1, 2, 1024, 1024), 1))
SEED = 7
FORWARD, GRADIENT = (op for op in openaclnn.OPS if op.family == "group_norm")


def errors(
    op: Op, inputs: list[Array], attributes: dict[str, Any], found: Sequence[Array]
) -> list[float]:
    """The largest scaled error of each result. 0 / 0, where nothing had to be computed, is 0."""
    exact, terms = evaluate(op, inputs, attributes), absolute_terms(op, inputs, attributes)
    assert terms is not None
    return [
        float(np.max(np.divide(e, s, out=np.zeros_like(e), where=s > 0)))
        for e, s in (
            (np.abs(y.astype(np.float64).reshape(due.shape) - due), scale)
            for y, due, scale in zip(found, exact, terms, strict=True)
        )
    ]


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
    names = ("x", "gamma", "beta")
    results = openaclnn.group_norm_swish(*(t[name] for name in names), groups)
    normal = torch.nn.functional.group_norm(
        torch.from_numpy(t["x"]), groups, *(torch.from_numpy(t[name]) for name in names[1:]), 1e-5
    )
    given = [t[name] for name in names]
    attributes = default_attributes(FORWARD) | {"num_groups": groups, "eps": 1e-5}
    y = [errors(FORWARD, given, attributes, results)[0]]
    of_torch = [torch.nn.functional.silu(normal).numpy(), *results[1:]]
    y_torch = [errors(FORWARD, given, attributes, of_torch)[0]]
    given = [t[p.python_name] for p in GRADIENT.input_tensors]
    attributes = default_attributes(GRADIENT) | {"num_groups": groups}
    mine = y + errors(GRADIENT, given, attributes, ours(t, groups))
    other = y_torch + errors(GRADIENT, given, attributes, theirs(t, groups))
    cells = [f"{value:.1e}" for pair in zip(mine, other, strict=True) for value in pair]
    name = "x".join(map(str, shape))
    return f"| {name} G{groups} | {ratio:g} | {' | '.join(cells)} |", max(mine)


HEAD = (
    "<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
    "# Group norm: errors when the mean is far above the deviation\n\n"
    "The output of `python tools/docs/numerics_group_norm.py` is this page. It shows the largest "
    f"|result - exact| / Σ|terms| in FLOAT; the bound promised is {BOUND:g}. The exact value is "
    "the formula in float64 on the same inputs. Every result is a sum; "
    "[numerics.md](numerics.md#group-norm) says what its terms are. Both libraries "
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
