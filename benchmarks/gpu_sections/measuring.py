# SPDX-License-Identifier: Apache-2.0
"""Speed: the copy that limits all, the element-wise rows, group norm and its gradient."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

import openaclnn
from openaclnn.reference.evaluation import REFERENCES

from .calling import ROWS, operator
from .timing import cast, copy_speed, host, measured, sets_for, sync

SHAPES = ((2, 320, 64, 64), (2, 640, 32, 32), (1, 128, 512, 512), (8, 512, 64, 64),
          (1, 512, 128, 128))  # fmt: skip
GROUPS = 32
LAYOUTS = {"nchw": torch.contiguous_format, "channels_last": torch.channels_last}
OPERANDS = {"leaky_relu": 2, "elu": 2, "elu_backward": 3, "hardshrink": 2, "logit": 2,
            "logit_grad": 3, "leaky_relu_backward": 3, "hardshrink_backward": 3}  # fmt: skip
speeds: dict[int, float] = {}


def copy(run: Any) -> None:
    for mebibytes in (1,) if run.dry else (16, 64, 256, 1024):
        speed = copy_speed(run.device, mebibytes << 20)
        run.record(mebibytes=mebibytes, TB_per_s=speed / 1e12)
        run.say(f"{mebibytes} MiB: {speed / 1e12:.3f} TB/s")


def speed_of_copy(run: Any) -> float:
    """Of 256 MiB: what shares are shares of."""
    if 256 not in speeds:
        speeds[256] = copy_speed(run.device, (1 if run.dry else 256) << 20)
        run.record(copy_TB_per_s=speeds[256] / 1e12)
    return speeds[256]


def theirs(name: str, t: dict[str, torch.Tensor]) -> Callable[[], Any]:
    """The same in torch, eager."""
    aten, x = torch.ops.aten, t["x"]
    if name == "leaky_relu":
        return lambda: aten.leaky_relu(x, 0.01)
    if name == "elu":
        return lambda: aten.elu(x)
    if name == "hardshrink":
        return lambda: aten.hardshrink(x)
    if name == "logit":
        return lambda: aten.logit(x)
    if name == "leaky_relu_backward":
        return lambda: aten.leaky_relu_backward(t["g"], x, 0.01, False)
    if name == "elu_backward":
        return lambda: aten.elu_backward(t["g"], 1.0, 1.0, 1.0, False, x)
    if name == "hardshrink_backward":
        return lambda: aten.hardshrink_backward(t["g"], x, 0.5)
    return lambda: aten.logit_backward(t["g"], x)


def ours(name: str, t: dict[str, torch.Tensor], device: str) -> Callable[[], Any]:
    op = ROWS[name]
    attributes = REFERENCES[op.kernel].attributes[0]
    plain = {"eps": -1.0} if name.startswith("logit") else {}
    values = [
        plain.get(p.python_name, attributes[p.python_name])
        if p.role == "attribute"
        else (t["g"] if p.name in ("gradOutput", "dy") else t["x"])
        for p in op.parameters
        if p.role != "output"
    ]
    function = operator(op, device)
    function = getattr(function, "default", function)
    return lambda: function(*values)


def elementwise(run: Any) -> None:
    """64 Mi, 1 Mi and 64 Ki elements: share of the copy's speed, and times faster than torch."""
    sizes = (1 << 10,) if run.dry else (64 << 20, 1 << 20, 64 << 10)
    speed = speed_of_copy(run)
    for size, name, dtype in itertools.product(sizes, OPERANDS, ("fp32", "bf16", "fp16")):
        labels = {"op": name, "dtype": dtype, "elements": size}
        with run.attempt(**labels):
            itemsize = cast(dtype).itemsize
            traffic = OPERANDS[name] * size * itemsize
            sets = [tensors(size, cast(dtype), run.device)
                    for _ in range(sets_for(traffic, run.dry))]  # fmt: skip
            mine = [ours(name, t, run.device) for t in sets]
            other = [theirs(name, t) for t in sets]
            found = measured(mine, run.device, 0.08, graph=size < 64 << 20)
            peer = measured(other, run.device, 0.08, graph=size < 64 << 20)
            best = found["graph"] or found["us"] or 1.0
            run.record(
                **labels, ours=found, torch=peer, host=host(mine[0], run.device),
                torch_host=host(other[0], run.device),
                share=traffic / (best * 1e-6) / speed,
                ratio=(peer["graph"] or peer["us"] or 0) / best,
            )  # fmt: skip
            del sets, mine, other
        if run.out_of_time():
            run.say("out of time")
            break
    overheads(run)
    run.say("timed")


def overheads(run: Any) -> None:
    """µs of the CPU for each call, on small tensors."""
    with run.attempt(way="overhead"):
        x = torch.randn(1, 32, 2, 2, device=run.device)
        gamma, beta = (torch.randn(32, device=run.device) for _ in range(2))
        norm, elu = (
            operator(ROWS["group_norm_swish"], run.device),
            ours("elu", {"x": x}, run.device),
        )
        y, mean, rstd = norm(x, gamma, beta, 8, None, 1e-5, True, 1.0)
        gradient = operator(ROWS["group_norm_swish_grad"], run.device)
        values = (x, gamma, beta, 8, None, 1e-5, True, 1.0, y, mean, rstd)
        aten = torch.ops.aten
        calls: dict[str, Callable[[], Any]] = {
            "group_norm_swish": lambda: norm(x, gamma, beta, 8, None, 1e-5, True, 1.0),
            "its gradient": lambda: gradient(
                y, mean, rstd, x, gamma, beta, 8, None, 1.0, True, True
            ),
            "its plan": openaclnn.plan("group_norm_swish", *values).run,
            "aten.native_group_norm": lambda: aten.native_group_norm(
                x, gamma, beta, 1, 32, 4, 8, 1e-5
            ),
            "aten.native_group_norm_backward": lambda: aten.native_group_norm_backward(
                y, x, mean, rstd, gamma, 1, 32, 4, 8, [True] * 3
            ),
            "elu": elu,
            "plan of elu": openaclnn.plan("elu", x, 1.0, 1.0, 1.0, y).run,
            "aten.elu": lambda: aten.elu.default(x),
        }
        times = {name: host(function, run.device) for name, function in calls.items()}
        run.record(way="overhead", us=times)
        run.say("; ".join(f"{name} {us:.1f} us" for name, us in times.items()))


def tensors(size: int, dtype: torch.dtype, device: str) -> dict[str, torch.Tensor]:
    return {
        "x": torch.rand(size, device=device).to(dtype),
        "g": torch.randn(size, device=device).to(dtype),
    }


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
