# SPDX-License-Identifier: Apache-2.0
"""How torch does what the group norm rows do: its operators one after another, as eager code and
autograd call them, or a graph that its compiler fused."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..reference.formulas_group_norm import EPS
from .peer import Attributes, Peer, Tensors

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


def compiled_forward(torch: ModuleType, t: Tensors, a: Attributes) -> Results:
    x, gamma, beta = (t[name] for name in ("x", "gamma", "beta"))

    def fused(x: Any, gamma: Any, beta: Any) -> Any:
        y = torch.nn.functional.group_norm(x, a["num_groups"], gamma, beta, a["eps"])
        return torch.nn.functional.silu(y)

    compiled = torch.compile(fused, dynamic=False)
    return lambda: (compiled(x, gamma, beta),)


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


def compiled_backward(torch: ModuleType, t: Tensors, a: Attributes) -> Results:
    """The graph of the backward from x, mean and rstd, as the compiler fuses it."""
    names = ("dy", "mean", "rstd", "x", "gamma", "beta")
    samples, channels, positions, groups = _sizes(t, a)

    def fused(dy: Any, mean: Any, rstd: Any, x: Any, gamma: Any, beta: Any) -> Any:
        by_group = (samples, groups, 1, 1)
        by_channel = (1, groups, channels // groups, 1)
        grouped = (samples, groups, channels // groups, positions)
        r, weight = rstd.reshape(by_group).float(), gamma.reshape(by_channel).float()
        h = (x.reshape(grouped).float() - mean.reshape(by_group)) * r
        v = h * weight + beta.reshape(by_channel)
        s = torch.sigmoid(v)
        u = dy.reshape(grouped) * s * (1 + v * (1 - s))
        c1 = (weight * u).mean((2, 3), keepdim=True)
        c2 = (weight * u * h).mean((2, 3), keepdim=True)
        dx = (r * (weight * u - c1 - h * c2)).to(x.dtype).reshape(x.shape)
        dgamma, dbeta = (u * h).sum((0, 3)), u.sum((0, 3))
        return dx, dgamma.reshape(-1).to(gamma.dtype), dbeta.reshape(-1).to(gamma.dtype)

    compiled = torch.compile(fused, dynamic=False)
    return lambda: compiled(*(t[name] for name in names))


PEERS: dict[str, Peer] = {
    "group_norm_swish": Peer(
        torch=eager_forward, others={"compiled": compiled_forward}, lacks=_lacks
    ),
    "group_norm_swish_grad": Peer(
        torch=eager_backward,
        others={"recomputed": eager_backward_recomputed, "compiled": compiled_backward},
        lacks=_lacks,
    ),
}
