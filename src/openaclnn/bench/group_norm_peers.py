# SPDX-License-Identifier: Apache-2.0
"""How torch does what the group norm rows do: its operators one after another, as eager code and
autograd call them, or a graph that its compiler fused. Each peer makes a call without arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

Call = Callable[[], tuple[Any, ...]]


@dataclass(frozen=True)
class Problem:
    """What a cell asks for: torch tensors by Python name, and the sizes."""

    tensors: Mapping[str, Any]
    groups: int
    eps: float

    @property
    def sizes(self) -> tuple[int, int, int]:
        samples, channels, *positions = self.tensors["x"].shape
        count = 1
        for n in positions:
            count *= n
        return samples, channels, count


def eager_forward(torch: ModuleType, p: Problem) -> Call:
    x, gamma, beta = (p.tensors[name] for name in ("x", "gamma", "beta"))
    norm, silu = torch.ops.aten.native_group_norm, torch.ops.aten.silu

    def call() -> tuple[Any, ...]:
        y, mean, rstd = norm(x, gamma, beta, *p.sizes, p.groups, p.eps)
        return silu(y), mean, rstd

    return call


def compiled_forward(torch: ModuleType, p: Problem) -> Call:
    x, gamma, beta = (p.tensors[name] for name in ("x", "gamma", "beta"))

    def fused(x: Any, gamma: Any, beta: Any) -> Any:
        y = torch.nn.functional.group_norm(x, p.groups, gamma, beta, p.eps)
        return torch.nn.functional.silu(y)

    compiled = torch.compile(fused, dynamic=False)
    return lambda: (compiled(x, gamma, beta),)


def _backward(torch: ModuleType, p: Problem) -> Callable[..., tuple[Any, ...]]:
    silu_backward = torch.ops.aten.silu_backward
    norm_backward = torch.ops.aten.native_group_norm_backward
    dy, x, gamma = (p.tensors[name] for name in ("dy", "x", "gamma"))

    def call(y: Any, mean: Any, rstd: Any) -> tuple[Any, ...]:
        du = silu_backward(dy, y)
        wanted = [True] * 3
        found: tuple[Any, ...] = norm_backward(du, x, mean, rstd, gamma, *p.sizes, p.groups, wanted)
        return found

    return call


def eager_backward(torch: ModuleType, p: Problem) -> Call:
    """With the output of the normalisation kept from the forward."""
    x, gamma, beta, mean, rstd = (
        p.tensors[name] for name in ("x", "gamma", "beta", "mean", "rstd")
    )
    y, *_ = torch.ops.aten.native_group_norm(x, gamma, beta, *p.sizes, p.groups, p.eps)
    backward = _backward(torch, p)
    return lambda: backward(y, mean, rstd)


def eager_backward_recomputed(torch: ModuleType, p: Problem) -> Call:
    """With nothing kept but x, as ours needs nothing but x."""
    x, gamma, beta = (p.tensors[name] for name in ("x", "gamma", "beta"))
    norm, backward = torch.ops.aten.native_group_norm, _backward(torch, p)
    return lambda: backward(*norm(x, gamma, beta, *p.sizes, p.groups, p.eps))


def compiled_backward(torch: ModuleType, p: Problem) -> Call:
    """The graph of the backward from x, mean and rstd, as the compiler fuses it."""
    names = ("dy", "mean", "rstd", "x", "gamma", "beta")
    samples, channels, positions = p.sizes

    def fused(dy: Any, mean: Any, rstd: Any, x: Any, gamma: Any, beta: Any) -> Any:
        by_group = (samples, p.groups, 1, 1)
        by_channel = (1, p.groups, channels // p.groups, 1)
        grouped = (samples, p.groups, channels // p.groups, positions)
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
    return lambda: compiled(*(p.tensors[name] for name in names))


PEERS: dict[str, dict[str, Callable[[ModuleType, Problem], Call]]] = {
    "group_norm_swish": {"torch": eager_forward, "compiled": compiled_forward},
    "group_norm_swish_grad": {
        "torch": eager_backward,
        "recomputed": eager_backward_recomputed,
        "compiled": compiled_backward,
    },
}
