# SPDX-License-Identifier: Apache-2.0
"""A training step of a small diffusion UNet, with and without openaclnn.torch.replace.

    python benchmarks/training.py --out benchmarks/results/training/unet.json

Forward, backward and AdamW, contiguous and channels_last, fp32 and bf16 autocast. Two models with
the same weights take turns in one process, step by step, the first of a pair by turns; a ratio is
the median of the rounds' ratios. With one thread the clock is that of the process, which stands
while others have the core. Peak memory is that of a process of its own, above what it holds
before its steps: the mark of the kernel (VmHWM), with an allocator that gives pages back at once.
The share of GroupNorm and SiLU in a step without `replace` comes from the profiler, and shows how
fast a step could be if they took no time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from bench import cpu_name
from machine import COMMIT, command
from torch import nn
from unet import Data, UNet

import openaclnn
import openaclnn.torch as ot
from openaclnn.torch import registration

LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
DTYPES = ("fp32", "bf16")
KINDS = ("torch", "replaced")
WARM_UP = 2  # steps without a time
FUSED = ("group_norm", "silu")  # in the names of ATen's operators


class Training:
    """A model with its optimizer and its data."""

    def __init__(self, kind: str, layout: str, dtype: str, batch: int, size: int) -> None:
        torch.manual_seed(0)
        self.layout, self.dtype = LAYOUTS[layout], dtype
        self.model: nn.Module = UNet().to(memory_format=self.layout)
        if kind == "replaced":
            ot.replace(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.data, self.count = Data(batch, size), 0

    def _cast(self) -> AbstractContextManager[Any]:
        return torch.autocast("cpu", torch.bfloat16, enabled=self.dtype == "bf16")

    def batch(self) -> Any:
        self.count += 1
        return self.data(self.count - 1, self.layout)

    def step(self, batch: Any) -> float:
        noisy, moment, noise = batch
        with self._cast():
            loss = (self.model(noisy, moment).float() - noise).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())


def interleaved(layout: str, dtype: str, args: argparse.Namespace) -> dict[str, Any]:
    """Returns losses and seconds of every step, by kind."""
    trainings = {k: Training(k, layout, dtype, args.batch, args.size) for k in KINDS}
    losses: dict[str, list[float]] = {k: [] for k in KINDS}
    seconds: dict[str, list[float]] = {k: [] for k in KINDS}
    clock = time.process_time if args.threads == 1 else time.perf_counter
    for i in range(args.steps):
        for kind in KINDS if i % 2 == 0 else reversed(KINDS):
            batch = trainings[kind].batch()
            begin = clock()
            losses[kind].append(trainings[kind].step(batch))
            seconds[kind].append(clock() - begin)
    return {"losses": losses, "seconds": {k: s[WARM_UP:] for k, s in seconds.items()}}


def share(layout: str, dtype: str, args: argparse.Namespace) -> float:
    """Returns the part of torch's step that GroupNorm and SiLU take, both ways."""
    training = Training("torch", layout, dtype, args.batch, args.size)
    training.step(training.batch())
    batch = training.batch()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        training.step(batch)
    events = profile.key_averages()
    own = {e.key: e.self_cpu_time_total for e in events}
    return sum(t for key, t in own.items() if any(f in key for f in FUSED)) / sum(own.values())


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) << 10


def peak(kind: str, layout: str, dtype: str, args: argparse.Namespace) -> int:
    """Returns the bytes that the third step takes above what model and optimizer hold."""
    training = Training(kind, layout, dtype, args.batch, args.size)
    for _ in range(WARM_UP):
        training.step(training.batch())
    training.optimizer.zero_grad()
    batch = training.batch()
    Path("/proc/self/clear_refs").write_text("5")  # the mark falls to what is held now
    before = _status("VmRSS")
    training.step(batch)
    return _status("VmHWM") - before


def peak_of_a_process(kind: str, layout: str, dtype: str, args: argparse.Namespace) -> int:
    command = [sys.executable, __file__, "--peak", kind, layout, dtype]
    command += ["--batch", str(args.batch), "--size", str(args.size)]
    command += ["--threads", str(args.threads)]
    allocator = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    environment = os.environ | allocator
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return int(done.stdout)


def cells(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for dtype in DTYPES:
        for layout in LAYOUTS:
            found = interleaved(layout, dtype, args)
            pairs = zip(*(found["seconds"][k] for k in KINDS), strict=True)
            quartiles = statistics.quantiles([a / b for a, b in pairs], n=4)
            cell = {"layout": layout, "dtype": dtype, "losses": found["losses"]}
            cell["seconds"] = {k: statistics.median(s) for k, s in found["seconds"].items()}
            cell["faster"], cell["quartiles"] = quartiles[1], quartiles
            cell["share"] = share(layout, dtype, args)
            peaks = [
                {k: peak_of_a_process(k, layout, dtype, args) for k in KINDS} for _ in range(3)
            ]
            cell["peak"] = {k: statistics.median(p[k] for p in peaks) for k in KINDS}
            less = 1 - cell["peak"]["replaced"] / cell["peak"]["torch"]
            print(
                f"{dtype} {layout:13}  {cell['seconds']['torch'] * 1e3:6.0f} ms -> "
                f"{cell['seconds']['replaced'] * 1e3:6.0f} ms, {cell['faster']:.2f}x; "
                f"{cell['peak']['torch'] / 2**20:.0f} MiB, {less:.0%} less; "
                f"GroupNorm and SiLU were {cell['share']:.0%}",
                flush=True,
            )
            yield cell


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=62)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--peak", nargs=3, metavar=("KIND", "LAYOUT", "DTYPE"))
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    openaclnn.set_num_threads(args.threads)
    if args.peak:
        print(peak(*args.peak, args))
        return
    weights = 4 * sum(p.numel() for p in UNet().parameters())
    about = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu_name(),
        "command": command(),
        "commit": COMMIT,
        "config": {k: v for k, v in openaclnn.config().items() if k != "home"},
        "torch": torch.__version__,
        "operators": registration.kind,
        "weights": weights,  # bytes; AdamW holds twice as many
        "steps": args.steps,
        "batch": args.batch,
        "size": args.size,
        "threads": args.threads,
        "load_average_before": os.getloadavg()[0],
    }
    found = {"about": about, "cells": list(cells(args))}
    about["load_average_after"] = os.getloadavg()[0]
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
