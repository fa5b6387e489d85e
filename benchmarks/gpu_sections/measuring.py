# SPDX-License-Identifier: Apache-2.0
"""Speed: the copy that limits all, and the element-wise rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch

import openaclnn
from openaclnn.reference.evaluation import REFERENCES

from .calling import ROWS, operator
from .timing import cast, copy_speed, host, measured, sets_for

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
