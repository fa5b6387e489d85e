# SPDX-License-Identifier: Apache-2.0
"""How fast GroupNormSwish and its gradient are beside torch.

    python benchmarks/group_norm.py                        every row, shape and dtype
    python benchmarks/group_norm.py --quick                a smoke run; its figures mean nothing
    python benchmarks/group_norm.py --shapes 1x128x512x512/32 --dtypes fp32 --out results.json

A shape is samples x channels x height x width / groups. The method is that of bench.py (README.md);
`torch` kept the output of the normalisation, `recomputed` means that it did not, as we do not,
`compiled` is torch.compile. A candidate whose results differ from ours ends the run with 1.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from bench import MORE_ROUNDS, about
from group_norm_report import LARGEST, Cell, bars, sizes_of, summary, table
from report_bars import bars_text

import openaclnn
from openaclnn.bench.group_norm_peers import PEERS
from openaclnn.bench.machine import busy
from openaclnn.bench.measure import Cores, Loops, Run, aligned, interleave, run_of
from openaclnn.reference.formulas_group_norm import EPS
from openaclnn.rows.schema import Op

SHAPES = [
    *("1x32x8x8/8", "2x320x64x64/32", "2x1280x16x16/32", "8x512x32x32/32"),
    *("1x128x512x512/32", "1x512x1x1/512", "4x64x7x7/1"),
]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
# Relative to the largest value: torch keeps y, mean and rstd in 16 bits.
TOLERANCE = {"fp32": 2e-4, "bf16": 0.1, "fp16": 0.02}
LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
OUTPUTS = {
    "group_norm_swish": ("y_out", "mean_out", "rstd_out"),
    "group_norm_swish_grad": ("dx_out", "dgamma_out", "dbeta_out"),
}


def problem(shape: str, dtype: str, layout: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tensors and attributes, by Python name."""
    dims, groups = sizes_of(shape)
    kind, order = DTYPES[dtype], LAYOUTS[layout]
    torch.manual_seed(1)
    x, dy = (torch.randn(dims).to(kind).contiguous(memory_format=order) for _ in range(2))
    gamma, beta = ((a + b * torch.randn(dims[1])).to(kind) for a, b in ((1, 0.2), (0, 0.5)))
    samples, channels, positions = dims[0], dims[1], math.prod(dims[2:])
    norm = torch.ops.aten.native_group_norm
    _, mean, rstd = norm(x, gamma, beta, samples, channels, positions, groups, EPS)
    # channels last, torch keeps fp32 statistics beside 16-bit tensors in some versions
    shaped = [s.reshape(dims[0], groups).to(kind) for s in (mean, rstd)]
    tensors = {"x": x, "gamma": gamma, "beta": beta, "dy": dy, "mean": shaped[0], "rstd": shaped[1]}
    return tensors, {"num_groups": groups, "eps": EPS}


def ours(op: Op, t: dict[str, Any], groups: int) -> tuple[openaclnn.Plan, tuple[Any, ...]]:
    large, small = torch.empty_like(t["x"]), t["gamma" if "grad" in op.python else "mean"]
    out = (large, torch.empty_like(small), torch.empty_like(small))
    named = {q.python_name: t[q.python_name] for q in op.inputs_}
    named |= dict(zip(OUTPUTS[op.python], out, strict=True)) | {"num_groups": groups}
    return openaclnn.plan(op.name, **named), out


def close(found: Any, expected: Any, dtype: str) -> bool:
    """By the largest value, at least 1, the size of dy: another order of sums cancels elsewhere."""
    a, b = found.double().reshape(-1), expected.double().reshape(-1)
    return bool((a - b).abs().max() <= TOLERANCE[dtype] * b.abs().max().clamp(min=1))


class Machine:
    """The CPUs, and the hand-written loops that store past the cache: x -> y, and x, dy -> dx, of
    32 Mi fp32 values each."""

    def __init__(self, loops: Loops | None, options: argparse.Namespace) -> None:
        self.cores = Cores(loops, options.threads)
        self.streams: dict[str, Run] = {}
        if loops is None or options.quick:
            return
        kind = np.dtype(np.float32)
        x, dy, y = (aligned(1 << 25, kind) for _ in range(3))
        x.fill(1), dy.fill(1)
        for op, inputs in (("group_norm_swish", [x]), ("group_norm_swish_grad", [dy, x])):
            self.streams[op] = loops.run("streaming", inputs, y, options.threads, 0.5)
        self.bytes = y.nbytes


def measure(
    op: Op, shape: str, dtype: str, layout: str, options: argparse.Namespace, machine: Machine
) -> Cell:
    tensors, attributes = problem(shape, dtype, layout)
    plan, out = ours(op, tensors, attributes["num_groups"])
    x = tensors["x"]
    plan.run()
    candidates: dict[str, Run] = {"ours": run_of(plan.run)}
    differs = []
    peer = PEERS[op.python]
    for name, make in {"torch": peer.torch, **peer.others}.items():
        if name == "compiled" and not options.compiled:
            continue
        try:
            call = make(torch, tensors, attributes)
            results = call()
        except (
            Exception
        ) as error:  # whatever a compiler may raise: it is printed, and the peer left out
            if name != "compiled":
                raise
            print(f"    torch.compile: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        # the statistics of a normalisation that saw 16 bits differ by their own rounding
        for a, b in zip(out, results, strict=False):
            if not close(a, b, dtype):
                differs.append(name)
                break
        candidates[name] = run_of(call)
    if op.python in machine.streams:
        candidates["streaming"] = machine.streams[op.python]
    large = 3 if "grad" in op.python else 2  # tensors of x's size
    traffic = large * x.numel() * x.element_size()
    past_caches = (shape, dtype) == (LARGEST, "fp32")  # memory decides its bars
    rounds = options.rounds * (MORE_ROUNDS if past_caches else 1)
    samples = interleave(candidates, rounds, machine.cores)
    times = samples.medians(), samples.ratios("ours")
    for by_name in times:
        if "streaming" in by_name:
            by_name["streaming"] *= traffic / (large * machine.bytes)
    return Cell(op.python, shape, dtype, layout, traffic, plan.workspace_size, *times, differs)


def options_from(arguments: list[str] | None) -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    add = parser.add_argument
    add("--ops", nargs="+", choices=list(PEERS), default=list(PEERS))
    add("--shapes", nargs="+", metavar="NxCxHxW/G", help=f"default {' '.join(SHAPES)}")
    add("--dtypes", nargs="+", choices=DTYPES, default=list(DTYPES))
    add("--layouts", nargs="+", choices=LAYOUTS, default=["contiguous"])
    add("--threads", type=int, default=2, help="of ours and of torch, default 2")
    add("--rounds", type=int, help="samples a median is of, default 9")
    add("--no-compiled", dest="compiled", action="store_false", help="without torch.compile")
    add("--out", type=Path, help="write the results as JSON")
    add("--quick", action="store_true", help="small shapes, 2 rounds, without torch.compile")
    options = parser.parse_args(arguments)
    options.shapes = options.shapes or ([SHAPES[0], SHAPES[-1]] if options.quick else SHAPES)
    options.rounds = options.rounds or (2 if options.quick else 9)
    options.compiled = options.compiled and not options.quick
    options.modules, options.absent, options.shortest = {"torch": torch}, [], None  # for about()
    return options


def main(arguments: list[str] | None = None) -> int:
    options = options_from(arguments)
    load = os.getloadavg()[0]
    if note := busy(load):
        print(note, file=sys.stderr)
    warnings.filterwarnings("ignore")  # of torch.compile about the machine
    torch.set_num_threads(options.threads)
    openaclnn.set_num_threads(options.threads)
    loops = Loops.build()
    machine = Machine(loops, options)
    rows = {op.python: op for op in openaclnn.OPS}
    cells = []
    for name in options.ops:
        for layout in options.layouts:
            for shape in options.shapes:
                for dtype in options.dtypes:
                    print(f"{name} {layout} {shape} {dtype}", file=sys.stderr, flush=True)
                    torch.compiler.reset()
                    cells.append(measure(rows[name], shape, dtype, layout, options, machine))
    print("\n".join(table(cells)))
    found = summary(cells)
    for peer, s in found.items():
        print(
            f"{peer}: geometric mean {s['geometric_mean']:.2f}x over {s['cells']} cells, "
            f"worst {s['worst']:.2f}x ({s['worst_cell']})"
        )
    print(machine.cores.summary())
    print(bars_text(bars(cells)))
    wrong = [f"{c.op} {c.shape} {c.dtype}: {', '.join(c.differs)}" for c in cells if c.differs]
    if wrong:
        print("results that differ from ours:\n  " + "\n  ".join(wrong))
    if options.out:
        document = {
            "about": about(options, loops, machine.cores, load),
            "summary": found,
            "bars": [asdict(bar) for bar in bars(cells)],
            "results": [asdict(c) for c in cells],
        }
        options.out.write_text(json.dumps(document, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
