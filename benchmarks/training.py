# SPDX-License-Identifier: Apache-2.0
"""A training step of diffusion UNets, with and without openaclnn.torch.replace.

    pip install diffusers && python benchmarks/training.py --out benchmarks/records/training.jsonl

A step is forward, backward and AdamW. Two models with the same weights take turns in one process,
step by step; a ratio is the median of the ratios of pairs. With one thread the clock is that of the
process. Peak memory (VmHWM) is measured in a separate process, above what it holds before its
steps, with an allocator that returns pages at once. The profiler gives the share of GroupNorm and
SiLU in a step without `replace`, which limits the gain.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from bench import COMMIT, command
from models import MODELS
from record import read, write
from torch import nn
from unet import Data

import openaclnn
import openaclnn.torch as ot
from openaclnn.bench.machine import about
from openaclnn.torch import registration

LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
DTYPES = ("fp32", "bf16")
KINDS = ("torch", "replaced")
WAYS = ("eager", "compiled")
WARM_UP = 2  # steps that are not timed
FUSED = ("group_norm", "silu")  # in the names of ATen's operators
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


class Case(NamedTuple):
    """What is measured with and without `replace`."""

    model: str
    way: str
    layout: str
    dtype: str


class Training:
    """A model with its optimizer and its data."""

    def __init__(self, kind: str, case: Case, args: argparse.Namespace) -> None:
        torch.manual_seed(0)
        self.layout, self.dtype = LAYOUTS[case.layout], case.dtype
        self.model: nn.Module = MODELS[case.model]().to(memory_format=self.layout)
        if kind == "replaced":
            ot.replace(self.model)
        if case.way == "compiled":
            self.model.compile(dynamic=False)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.data, self.count = Data(args.batch, args.size), 0

    def batch(self) -> Any:
        self.count += 1
        return self.data(self.count - 1, self.layout)

    def step(self, batch: Any) -> float:
        noisy, moment, noise = batch
        with torch.autocast("cpu", torch.bfloat16, enabled=self.dtype == "bf16"):
            loss = (self.model(noisy, moment).float() - noise).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())


def interleaved(case: Case, args: argparse.Namespace) -> tuple[Any, Any]:
    """Losses and seconds of every step, by kind."""
    trainings = {k: Training(k, case, args) for k in KINDS}
    losses: dict[str, list[float]] = {k: [] for k in KINDS}
    seconds: dict[str, list[float]] = {k: [] for k in KINDS}
    clock = time.process_time if args.threads == 1 else time.perf_counter
    for i in range(args.steps):
        for kind in KINDS if i % 2 == 0 else reversed(KINDS):
            batch = trainings[kind].batch()
            begin = clock()
            losses[kind].append(trainings[kind].step(batch))
            seconds[kind].append(clock() - begin)
    return losses, {k: s[WARM_UP:] for k, s in seconds.items()}


def share(case: Case, args: argparse.Namespace) -> float:
    """The part of torch's step that GroupNorm and SiLU take, forward and backward."""
    training = Training("torch", case._replace(way="eager"), args)
    training.step(training.batch())
    batch = training.batch()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        training.step(batch)
    own = {e.key: e.self_cpu_time_total for e in profile.key_averages()}
    return sum(t for key, t in own.items() if any(f in key for f in FUSED)) / sum(own.values())


def held(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) << 10


def peak(kind: str, case: Case, args: argparse.Namespace) -> int:
    """The bytes that the third step takes above what model and optimizer hold."""
    training = Training(kind, case, args)
    for _ in range(WARM_UP):
        training.step(training.batch())
    training.optimizer.zero_grad()
    batch = training.batch()
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM
    before = held("VmRSS")
    training.step(batch)
    return held("VmHWM") - before


def peak_of_a_process(kind: str, case: Case, args: argparse.Namespace) -> int:
    words = [sys.executable, __file__, "--peak", kind, *case, "--batch", str(args.batch)]
    words += ["--size", str(args.size), "--threads", str(args.threads)]
    done = subprocess.run(words, env=os.environ | ALLOCATOR, check=True, capture_output=True)
    return int(done.stdout)


def cases(args: argparse.Namespace, facts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for words in itertools.product(args.models, args.ways, args.layouts, args.dtypes):
        case = Case(*words)
        losses, seconds = interleaved(case, args)
        pairs = zip(*(seconds[k] for k in KINDS), strict=True)
        quartiles = statistics.quantiles([a / b for a, b in pairs], n=4)
        peaks = {
            k: [peak_of_a_process(k, case, args) for _ in range(args.processes)] for k in KINDS
        }
        found = {
            **case._asdict(),
            "losses": losses,
            "seconds": {k: statistics.median(s) for k, s in seconds.items()},
            "faster": quartiles[1],
            "quartiles": quartiles,
            "share": share(case, args),
            "peak": {k: statistics.median(p) for k, p in peaks.items()},
            "weights": 4 * sum(p.numel() for p in MODELS[case.model]().parameters()),  # bytes
            **{name: getattr(args, name) for name in ("steps", "batch", "size", "processes")},
            "date": facts["date"],
            "command": command(),
        }
        print({k: v for k, v in found.items() if k != "losses"}, flush=True)
        yield found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, default in {
        "steps": 62,
        "batch": 16,
        "size": 32,
        "threads": 2,
        "processes": 3,
    }.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["eager"])
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=list(DTYPES))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--more", action="store_true", help="add to the cases in OUT")
    parser.add_argument("--peak", nargs=5, metavar=("KIND", "MODEL", "WAY", "LAYOUT", "DTYPE"))
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    openaclnn.set_num_threads(args.threads)
    if args.peak:
        kind, *words = args.peak
        print(peak(kind, Case(*words), args))
        return
    facts = about(os.getloadavg()[0]) | {
        "torch": torch.__version__,
        "operators": registration.kind,
        "threads": args.threads,
        "commit": COMMIT,
    }
    found = list(cases(args, facts))
    if args.out and args.more:
        _, *before = read(args.out)
        found = [*before, *found]
    if args.out:
        write(args.out, [facts, *found])


if __name__ == "__main__":
    main()
