# SPDX-License-Identifier: Apache-2.0
"""Speed of group norm and its gradient, beside eager torch and torch.compile."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from .calling import ROWS, operator
from .measuring import speed_of_copy
from .timing import cast, host, measured, sets_for, sync

SHAPES = ((2, 320, 64, 64), (2, 640, 32, 32), (1, 128, 512, 512), (8, 512, 64, 64),
          (1, 512, 128, 128))  # fmt: skip
GROUPS = 32
LAYOUTS = {"nchw": torch.contiguous_format, "channels_last": torch.channels_last}


class Case:
    """Group norm of one shape: calls of ours, of eager torch and of torch.compile, each on several
    sets of tensors."""

    def __init__(self, shape: tuple[int, ...], dtype: str, layout: str, device: str, dry: bool):
        self.device, self.dtype = device, cast(dtype)
        n, c, h, w = shape
        self.sizes = (n, c, h * w, min(GROUPS, c))
        size = n * c * h * w * self.dtype.itemsize
        self.sets = []
        for _ in range(sets_for(3 * size, dry)):
            x, dy = (
                torch.randn(shape, device=device).to(self.dtype).to(memory_format=LAYOUTS[layout])
                for _ in range(2)
            )
            gamma, beta = (torch.randn(c, device=device).to(self.dtype) for _ in range(2))
            self.sets.append({"x": x, "dy": dy, "gamma": gamma, "beta": beta})
        self.size = size

    def forward(self) -> list[Callable[[], Any]]:
        op = operator(ROWS["group_norm_swish"], self.device)
        op = getattr(op, "default", op)
        groups = self.sizes[3]
        return [
            lambda t=t: op(t["x"], t["gamma"], t["beta"], groups, None, 1e-5, True, 1.0)  # type: ignore[misc]
            for t in self.sets
        ]

    def gradient(self) -> list[Callable[[], Any]]:
        op = operator(ROWS["group_norm_swish_grad"], self.device)
        op = getattr(op, "default", op)
        groups, calls = self.sizes[3], []
        for t, forward in zip(self.sets, self.forward(), strict=True):
            _, mean, rstd = forward()
            a = (t["dy"], mean, rstd, t["x"], t["gamma"], t["beta"], groups, None, 1.0, True, True)
            calls.append(lambda a=a: op(*a))
        return calls

    def eager_forward(self) -> list[Callable[[], Any]]:
        norm, silu = torch.ops.aten.native_group_norm, torch.ops.aten.silu
        return [
            lambda t=t: silu(norm(t["x"], t["gamma"], t["beta"], *self.sizes, 1e-5)[0])  # type: ignore[misc]
            for t in self.sets
        ]

    def eager_gradient(self) -> list[Callable[[], Any]]:
        """With the normalised tensor kept from the forward."""
        calls = []
        aten = torch.ops.aten
        for t in self.sets:
            y, mean, rstd = aten.native_group_norm(t["x"], t["gamma"], t["beta"], *self.sizes, 1e-5)

            def call(t: Any = t, y: Any = y, mean: Any = mean, rstd: Any = rstd) -> Any:
                du = aten.silu_backward(t["dy"], y)
                return aten.native_group_norm_backward(
                    du, t["x"], mean, rstd, t["gamma"], *self.sizes, [True] * 3
                )

            calls.append(call)
        return calls

    def compiled(self) -> tuple[list[Callable[[], Any]], list[Callable[[], Any]]]:
        """Forward, and the gradient that torch.compile's autograd makes of it."""
        groups = self.sizes[3]
        torch._dynamo.reset()

        @torch.compile(dynamic=False)
        def layer(x: Any, gamma: Any, beta: Any) -> Any:
            return functional.silu(functional.group_norm(x, groups, gamma, beta, 1e-5))

        forwards, gradients = [], []
        for t in self.sets:
            leaves = [t[k].detach().requires_grad_() for k in ("x", "gamma", "beta")]
            y = layer(*leaves)

            def gradient(y: Any = y, leaves: Any = leaves, dy: Any = t["dy"]) -> Any:
                return torch.autograd.grad(y, leaves, dy, retain_graph=True)

            gradients.append(gradient)

            def forward(t: Any = t) -> Any:
                with torch.no_grad():
                    return layer(t["x"], t["gamma"], t["beta"])

            forwards.append(forward)
        forwards[0]()
        gradients[0]()
        return forwards, gradients


def group_norm(run: Any) -> None:
    """The shapes of the issue: ours, eager torch, and the share of the copy."""
    shapes = ((1, 32, 4, 4),) if run.dry else SHAPES
    speed = speed_of_copy(run)
    for layout, dtype, shape in itertools.product(LAYOUTS, ("bf16", "fp32"), shapes):
        labels = {"shape": shape, "dtype": dtype, "layout": layout}
        with run.attempt(**labels):
            case = Case(shape, dtype, layout, run.device, run.dry)
            peers = {"gradient": case.eager_gradient, "forward": case.eager_forward}
            for kind, calls in (("gradient", case.gradient()), ("forward", case.forward())):
                theirs_ = peers[kind]()
                found = measured(calls, run.device)
                peer = measured(theirs_, run.device)
                share = share_of(speed, case, kind, found)
                run.record(
                    **labels, kind=kind, ours=found, eager=peer, host=host(calls[0], run.device),
                    eager_host=host(theirs_[0], run.device), share=share,
                )  # fmt: skip
                run.say(summary(labels, kind, found, {"eager": peer}, share))
            del case, calls, theirs_, peers
        gc.collect()
        sync(run.device)
        if run.out_of_time():
            run.say("out of time")
            break


def compiled(run: Any) -> None:
    """The same beside torch.compile, contiguous."""
    shapes = ((1, 32, 4, 4),) if run.dry else SHAPES
    speed = speed_of_copy(run)
    for shape, dtype in itertools.product(shapes, ("bf16", "fp32")):
        labels = {"shape": shape, "dtype": dtype, "layout": "nchw"}
        with run.attempt(**labels):
            case = Case(shape, dtype, "nchw", run.device, run.dry)
            forwards, gradients = case.compiled()
            for kind, calls, theirs_ in (
                ("gradient", case.gradient(), gradients), ("forward", case.forward(), forwards),
            ):  # fmt: skip
                found = measured(calls, run.device)
                peer = measured(theirs_, run.device, graph=False)
                share = share_of(speed, case, kind, found)
                run.record(**labels, kind=kind, ours=found, compiled=peer, share=share)
                run.say(summary(labels, kind, found, {"compiled": peer}, share))
            del case, calls, theirs_, forwards, gradients
        gc.collect()
        if run.out_of_time():
            run.say("out of time")
            break


def share_of(speed: float, case: Case, kind: str, found: Any) -> float:
    """Of the copy's speed: the least traffic in the better of the two times."""
    best = min(v for v in (found["graph"], found["us"]) if v)
    least = (2 if kind == "forward" else 3) * case.size
    return least / (best * 1e-6) / speed


def summary(labels: Any, kind: str, found: Any, peers: dict[str, Any], share: float) -> str:
    def both(values: Any) -> str:
        graph = f" ({values['graph']:.1f} in a graph)" if values["graph"] else ""
        return f"{values['us']:.1f}{graph}"

    text = f"{kind} {labels['shape']} {labels['dtype']} {labels['layout']}: ours {both(found)} us"
    for name, peer in peers.items():
        text += f", {name} {both(peer)}: {peer['us'] / found['us']:.2f} times"
    return f"{text}; {share:.0%} of the copy"
