# SPDX-License-Identifier: Apache-2.0
"""The ways in that people use: autograd, modules, replace, torch.compile, graphs, plans; a UNet."""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from models import Sample
from torch import nn
from torch.nn import functional
from unet import Data, UNet

import openaclnn
import openaclnn.torch as ot

from .timing import sync

Way = tuple[str, str]  # dtype and layout


def close(a: torch.Tensor, b: torch.Tensor) -> float:
    """The greatest difference, as a share of the greatest value."""
    wide = b.double()
    return float((a.double() - wide).abs().max() / wide.abs().max())


def layer(x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
    return functional.silu(functional.group_norm(x, 8, gamma, beta))


def ways(run: Any) -> None:
    """Each way once, against the same in fp64."""
    device = run.device
    if run.dry:  # torch.ops on CPU tensors: checks this script
        run.say("dry run: the operators of the CPU")
    torch.manual_seed(0)
    x = torch.randn(2, 32, 16, 16, device=device)
    gamma, beta = torch.randn(32, device=device), torch.randn(32, device=device)
    dy = torch.randn_like(x)
    leaves = [t.double().requires_grad_() for t in (x, gamma, beta)]
    expected = layer(*leaves)
    gradients = torch.autograd.grad(expected, leaves, dy.double())

    def compare(way: str, y: torch.Tensor, found: Any = ()) -> None:
        errors = [close(y, expected)] + [
            close(a, b) for a, b in zip(found, gradients, strict=False)
        ]
        run.record(way=way, errors=errors, passed=max(errors) < 1e-5)
        run.say(f"{way}: {max(errors):.1e}")

    for format_ in (torch.contiguous_format, torch.channels_last):
        with run.attempt(way="autograd", layout=str(format_)):
            mine = [t.detach().clone().requires_grad_() for t in (x, gamma, beta)]
            mine[0] = x.to(memory_format=format_).detach().requires_grad_()
            y = ot.functions.group_norm_swish(mine[0], 8, mine[1], mine[2])
            compare(f"autograd {format_}", y, torch.autograd.grad(y, mine, dy))
    with run.attempt(way="torch.compile"):
        torch._dynamo.reset()
        mine = [t.detach().clone().requires_grad_() for t in (x, gamma, beta)]
        function = torch.compile(
            lambda a, b, c: ot.functions.group_norm_swish(a, 8, b, c), fullgraph=True
        )
        y = function(*mine)
        compare("torch.compile", y, torch.autograd.grad(y, mine, dy))
    with run.attempt(way="module and replace"):
        model = nn.Sequential(nn.GroupNorm(8, 32), nn.SiLU(), nn.ELU(), nn.LeakyReLU()).to(device)
        reference = model(x)
        report = ot.replace(model)
        run.record(way="replace", error=close(model(x), reference), report=str(report))
        run.say(f"replace: {close(model(x), reference):.1e}, {report.replaced}")
    with run.attempt(way="plan"):
        y = torch.full_like(x, float("nan"))
        mean, rstd = (torch.empty(2, 8, device=device) for _ in range(2))
        plan = openaclnn.plan(
            "group_norm_swish", x, gamma, beta, 8, None, 1e-5, True, 1.0, y, mean, rstd
        )
        plan.run()
        sync(device)
        compare("plan", y)
    if device == "cuda":
        graphs(run, x, gamma, beta, dy, compare)
        streams(run, x, gamma, beta, expected)


def graphs(run: Any, x: Any, gamma: Any, beta: Any, dy: Any, compare: Any) -> None:
    with run.attempt(way="CUDA graph"):
        mine = [t.detach().clone().requires_grad_() for t in (x, gamma, beta)]

        def step() -> Any:
            y = ot.functions.group_norm_swish(mine[0], 8, mine[1], mine[2])
            return y, torch.autograd.grad(y, mine, dy)

        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            y, found = step()
        for t in (y, *found):
            t.detach().fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        compare("CUDA graph", y, found)
    with run.attempt(way="elementwise CUDA graph"):
        y = torch.empty_like(x)
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.ops.openaclnn.elu(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            y = torch.ops.openaclnn.elu(x)
        y.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        run.record(way="elementwise CUDA graph", error=close(y, functional.elu(x.double())))


def streams(run: Any, x: Any, gamma: Any, beta: Any, expected: Any) -> None:
    with run.attempt(way="streams"):
        others = [torch.cuda.Stream() for _ in range(4)]
        torch.cuda.synchronize()
        results = []
        for i in range(40):
            with torch.cuda.stream(others[i % 4]):
                results.append(ot.functions.group_norm_swish(x, 8, gamma, beta))
        torch.cuda.synchronize()
        error = max(close(y, expected) for y in results)
        run.record(way="streams", error=error, passed=error < 1e-5)
        run.say(f"streams: {error:.1e}")


def unet_2d(dry: bool) -> nn.Module:
    """The UNet2DModel of diffusers with its default channels."""
    from diffusers import UNet2DModel

    return Sample(UNet2DModel(**{"block_out_channels": (32,) * 4} if dry else {}))


def unet(run: Any) -> None:
    """Training steps of the UNet of benchmarks/unet.py and of diffusers' UNet2DModel, replaced and
    not, turn by turn."""
    steps_of_models(run, (("bf16", "nchw"), ("bf16", "channels_last"), ("fp32", "nchw")))


def compiled_unet(run: Any) -> None:
    """The same steps, the models of both kinds under torch.compile."""
    steps_of_models(run, (("bf16", "nchw"), ("fp32", "nchw")), compiled=True)


def steps_of_models(run: Any, ways: Sequence[Way], compiled: bool = False) -> None:
    width = 8 if run.dry else 128
    models = {"UNet": lambda: UNet(width)}
    if importlib.util.find_spec("diffusers"):
        models["UNet2DModel"] = lambda: unet_2d(run.dry)
    else:
        run.say("diffusers is not installed: no UNet2DModel")
    for name, build in models.items():
        steps_of(run, name, build, ways, compiled)


def steps_of(
    run: Any, name: str, build: Callable[[], nn.Module], ways: Sequence[Way], compiled: bool
) -> None:
    device = run.device
    batch, size, steps = (1, 16, 1) if run.dry else (16, 64, 20)
    for dtype, layout in ways:
        if run.out_of_time():
            run.say("out of time")
            break
        with run.attempt(model=name, dtype=dtype, layout=layout):
            format_ = torch.channels_last if layout == "channels_last" else torch.contiguous_format
            data = Data(batch, size)
            models: dict[str, tuple[nn.Module, Any]] = {}
            for kind in ("torch", "replaced"):
                torch.manual_seed(0)
                model = build().to(device).to(memory_format=format_)
                if kind == "replaced":
                    ot.replace(model)
                if compiled:
                    model.compile()
                models[kind] = model, torch.optim.AdamW(model.parameters(), lr=1e-3)
            times: dict[str, list[float]] = {kind: [] for kind in models}
            hosts: dict[str, list[float]] = {kind: [] for kind in models}  # until all is enqueued
            losses: dict[str, list[float]] = {kind: [] for kind in models}
            peaks: dict[str, float] = {}
            for i in range(steps + 3):
                noisy, moment, noise = (t.to(device) for t in data(i, format_))
                for kind, (model, optimizer) in models.items():
                    if device == "cuda":
                        torch.cuda.reset_peak_memory_stats()
                    sync(device)
                    begin = time.perf_counter()
                    with torch.autocast(device, torch.bfloat16, enabled=dtype == "bf16"):
                        loss = (model(noisy, moment).float() - noise).square().mean()
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    enqueued = time.perf_counter()
                    sync(device)
                    if i >= min(3, steps):
                        times[kind].append(time.perf_counter() - begin)
                        hosts[kind].append(enqueued - begin)
                    losses[kind].append(float(loss.detach()))
                    if device == "cuda":
                        peaks[kind] = torch.cuda.max_memory_allocated() / 2**20
            medians, host = (
                {kind: statistics.median(t) * 1e3 for kind, t in of.items()}
                for of in (times, hosts)
            )
            last = {kind: values[-1] for kind, values in losses.items()}
            run.record(model=name, dtype=dtype, layout=layout, batch=batch, size=size,
                       ms=medians, host_ms=host, losses=last, peak_MiB=peaks)  # fmt: skip
            run.say(f"{name} {dtype} {layout}: {medians} ms, of the host {host}, losses {last}, "
                    f"peaks {peaks} MiB")  # fmt: skip
            del models
