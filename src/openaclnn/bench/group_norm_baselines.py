# SPDX-License-Identifier: Apache-2.0
"""The group norm rows in torch: its operators one after another, as eager code and autograd call
them."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..reference.groups import EPS
from .baseline import Attributes, Baseline, Tensors

Results = Callable[[], tuple[Any, ...]]


def _sizes(t: Tensors, a: Attributes) -> tuple[int, int, int, int]:
    """Samples, channels, positions and groups, in the order of ATen's parameters."""
    samples, channels, *positions = t["x"].shape
    return samples, channels, math.prod(positions), a["num_groups"]


def _lacks(a: Attributes) -> str:
    plain = a["swish_scale"] == 1 and a.get("activate_swish", True)
    return "" if plain else "computes silu: swish_scale must be 1 and activate_swish true"


def eager_forward(torch: ModuleType, t: Tensors, a: Attributes) -> Results:
    x, gamma, beta = (t[name] for name in ("x", "gamma", "beta"))
    norm, silu = torch.ops.aten.native_group_norm, torch.ops.aten.silu
    sizes, eps = _sizes(t, a), a["eps"]

    def call() -> tuple[Any, ...]:
        y, mean, rstd = norm(x, gamma, beta, *sizes, eps)
        return silu(y), mean, rstd

    return call


def _backward(torch: ModuleType, t: Tensors, a: Attributes) -> Callable[..., tuple[Any, ...]]:
    silu_backward = torch.ops.aten.silu_backward
    norm_backward = torch.ops.aten.native_group_norm_backward
    dy, x, gamma = (t[name] for name in ("dy", "x", "gamma"))
    sizes, wanted = _sizes(t, a), [True] * 3

    def call(y: Any, mean: Any, rstd: Any) -> tuple[Any, ...]:
        du = silu_backward(dy, y)
        found: tuple[Any, ...] = norm_backward(du, x, mean, rstd, gamma, *sizes, wanted)
        return found

    return call


def eager_backward(torch: ModuleType, t: Tensors, a: Attributes) -> Results:
    """With the output of the normalisation kept from the forward."""
    x, gamma, beta, mean, rstd = (t[name] for name in ("x", "gamma", "beta", "mean", "rstd"))
    y, *_ = torch.ops.aten.native_group_norm(x, gamma, beta, *_sizes(t, a), EPS)
    backward = _backward(torch, t, a)
    return lambda: backward(y, mean, rstd)


def eager_backward_recomputed(torch: ModuleType, t: Tensors, a: Attributes) -> Results:
    """With nothing kept but x, as ours needs nothing but x."""
    x, gamma, beta = (t[name] for name in ("x", "gamma", "beta"))
    norm, backward = torch.ops.aten.native_group_norm, _backward(torch, t, a)
    return lambda: backward(*norm(x, gamma, beta, *_sizes(t, a), EPS))


BASELINES: dict[str, Baseline] = {
    "group_norm_swish": Baseline(eager_forward, lacks=_lacks),
    "group_norm_swish_grad": Baseline(
        eager_backward, others={"recomputed": eager_backward_recomputed}, lacks=_lacks
    ),
}
