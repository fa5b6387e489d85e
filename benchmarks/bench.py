# SPDX-License-Identifier: Apache-2.0
"""How fast the operators are, beside torch and what the machine can do.

    python benchmarks/bench.py --out benchmarks/results/elementwise.json     everything
    python benchmarks/bench.py --runs 3 --layouts attributes mixes     medians of three runs
    python benchmarks/bench.py --quick                 a smoke run; its figures mean nothing
    python benchmarks/bench.py --ops leaky_relu --dtypes fp32 --sizes 4Ki 64Mi
    python benchmarks/bench.py --backends ours torch compiled jax numpy --sizes 64Ki 1Mi

Everything is eight operators x three dtypes x five sizes, then strided and broadcast inputs, calls
right after torch, every set of attributes, and data with special values. One thing is timed for
each backend, the call a user writes: f(x, out=out) on memory that is there.
README.md says how to read the table.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from types import ModuleType
from typing import Any

from cells import AFTER_TORCH, ATTRIBUTES, MIXES, Array, Cell
from jit import JAX, TORCH
from machine import about, enough_memory
from options import Todo, cells, load_modules, options_from, size_text
from report import Result, median_of, summary, table
from report_bars import bars, bars_text, slow_ones

from openaclnn.bench.baselines import BASELINES
from openaclnn.bench.machine import busy
from openaclnn.bench.timing import Cores, Loops, Run, interleave, run_after, run_of, shortest

JITS = {"compiled": TORCH, "jax": JAX}  # reported without a bar

# Where a sample is one call and waits for memory that others use too, medians of eleven of the same
# cell lie between 88 and 100 % of the streaming loop.
MORE_ROUNDS, MORE_ROUNDS_FROM = 3, 512 << 20


def backends_of(cell: Cell, options: argparse.Namespace) -> list[str]:
    found = []
    for backend in options.backends:
        if backend in JITS and (cell.layout != "contiguous" or cell.op.python not in JITS[backend]):
            continue
        found.append(backend)
        smallest = cell.elements == min(options.elements) and cell.layout == "contiguous"
        if backend == "ours" and smallest:
            found.append("plan")
    return found


def measure(cell: Cell, options: argparse.Namespace, loops: Loops | None, cores: Cores) -> Result:
    op, backends, differs = cell.op, backends_of(cell, options), set[str]()

    def check(expected: Array | None) -> Array:
        for backend in backends:
            result = cell.computed(cell.call(backend, options.modules, cell.attributes))
            if expected is None:
                expected = result.copy()
            if not cell.agrees(expected):
                differs.add(backend)
        assert expected is not None
        return expected

    expected = check(None)
    timed = {**cell.attributes, **BASELINES[op.python].timed}
    candidates: dict[str, Run] = {b: run_of(cell.call(b, options.modules, timed)) for b in backends}
    if cell.layout == AFTER_TORCH:
        alone = {f"{backend}_alone": run for backend, run in candidates.items()}
        add = torch_add(options.modules["torch"], cell.elements)
        after = {b: run_after(add, cell.call(b, options.modules, timed)) for b in backends}
        candidates = after | alone
    if loops is not None and cell.layout == "contiguous":
        inputs = list(cell.inputs.values())
        slope = 1.0 if op.inplace else 0.01  # in place the data stays what it was
        for kind in ("ordinary",) if op.inplace else Loops.KINDS:
            candidates[kind] = loops.run(kind, inputs, cell.result, options.threads, slope)

    def check_spots(name: str) -> None:
        writes = name in backends and name != "jax" and not op.inplace
        if writes and not cell.spots_agree(expected):
            differs.add(name)

    rounds = options.rounds * (MORE_ROUNDS if cell.bytes >= MORE_ROUNDS_FROM else 1)
    poison: Callable[[str], None] = lambda name: cell.poison()  # noqa: E731
    if options.shortest:
        samples = shortest(candidates, options.shortest, poison, check_spots)
    else:
        samples = interleave(candidates, rounds, cores, poison, check_spots)
    seconds, ratios = samples.medians(), samples.ratios("ours")
    for times in (seconds, ratios):
        if "copy" in times:  # from one array to another: two of the arrays that the operator moves
            times["copy"] *= cell.bytes / (2 * cell.result.nbytes)
    if op.inplace:
        check(expected)
    size = size_text(cell.elements)
    head = op.python, cell.dtype, size, cell.layout, cell.elements, cell.bytes
    flags = " ".join(f"{name}={shown(value)}" for name, value in cell.given.items())
    mix = str(cell.mix) if cell.layout == MIXES else ""
    return Result(*head, seconds, ratios, sorted(differs), flags, mix)


def shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def torch_add(torch: ModuleType, elements: int) -> Callable[[], Any]:
    """What torch does before a call: its threads share the work, and then spin."""
    x, y = torch.ones(elements), torch.ones(elements)
    return partial(torch.add, x, 1.0, out=y)


AGAIN = 3  # how often a cell is measured again that another program disturbed


def run(
    options: argparse.Namespace, loops: Loops | None, cores: Cores
) -> tuple[list[Result], dict[str, int]]:
    """All cells once, then all again, --runs times; of each cell the medians. At the end, cells
    with a sample beside a slow core are measured again, and, after a single run, those that break
    a bar or come close twice more: the medians of the three count. Also returns how many there
    were of both."""
    found: dict[int, list[Result]] = {}
    todo: list[Todo] = list(cells(options))
    turns = len(todo) * options.runs
    started = time.monotonic()
    disturbed: list[tuple[int, int, int]] = []  # a cell, which of its runs, how many samples

    def measured(number: int, which: int) -> Result:
        kept = cores.kept
        result = measure(Cell(*todo[number]), options, loops, cores)
        if cores.kept > kept:
            disturbed.append((number, which, cores.kept - kept))
        return result

    def say(progress: str, number: int) -> None:
        one = todo[number]
        what = f"{one.op.python} {one.layout} {one.dtype} {size_text(one.elements)} {one.mix}"
        print(f"[{progress}] {what}", file=sys.stderr, flush=True)

    for turn in range(turns):
        number = turn % len(todo)
        took = time.monotonic() - started
        left = f", about {took / turn * (turns - turn):.0f} s to go" if turn else ""
        say(f"{turn + 1}/{turns}, {took:.0f} s{left}", number)
        if enough_memory(todo[number].op, todo[number].dtype, todo[number].elements):
            runs = found.setdefault(number, [])
            runs.append(measured(number, len(runs)))
        else:
            print("    left out: not enough memory", file=sys.stderr)
    counts = {"disturbed": len(disturbed)}
    for _ in range(AGAIN):
        again, disturbed[:] = disturbed[:], []
        for number, which, samples in again:
            say(f"disturbed, {len(again)} in all", number)
            cores.kept -= samples
            found[number][which] = measured(number, which)
    slow = slow_ones({n: runs[0] for n, runs in found.items()}) if options.runs == 1 else []
    for number in 2 * slow:
        say(f"slow, {len(slow)} in all", number)
        found[number].append(measured(number, len(found[number])))
    counts["measured_three_times"] = len(slow)
    return [median_of(runs) for _, runs in sorted(found.items())], counts


def show(results: list[Result]) -> None:
    print(table(results))
    for peer, s in summary(results).items():
        print(
            f"against {peer}: geometric mean {s['geometric_mean']:.2f}x over {s['cells']} cells, "
            f"worst {s['worst']:.2f}x ({s['worst_cell']})"
        )
    print(bars_text(bars(results)))
    for r in results:
        if "plan" in r.seconds:
            print(
                f"{r.op} {r.dtype} {r.size}: plan.run() {r.seconds['plan'] * 1e9:.0f} ns, "
                f"with out= {r.seconds['ours'] * 1e9:.0f} ns"
            )


def main(arguments: list[str] | None = None) -> int:
    options = options_from(arguments, __doc__)
    load = os.getloadavg()[0]
    if note := busy(load):
        print(note, file=sys.stderr)
    load_modules(options)
    if not options.backends:
        return 1
    loops = Loops.build()
    if loops is None:
        print("there is no g++ or clang++: no hand-written loops", file=sys.stderr)
    cores = Cores(loops, options.threads)
    results, again = run(options, loops, cores)
    show(results)
    print(cores.summary())
    wrong = [f"{r.name}: {', '.join(r.differs)}" for r in results if r.differs]
    if wrong:
        print("results that differ from those of the first backend:\n  " + "\n  ".join(wrong))
    if options.out:
        document = {
            "about": about(options, loops, cores, load) | {"runs": options.runs} | again,
            "summary": summary(results),
            "bars": [asdict(bar) for bar in bars(results)],
            "results": [asdict(r) for r in results],
        }
        options.out.write_text(json.dumps(document, indent=1) + "\n")
    # Attributes and values that nobody tests with torch are where it has results of its own.
    usual = [r for r in results if r.layout not in (ATTRIBUTES, MIXES)]
    return 1 if any(set(r.differs) - set(JITS) for r in usual) else 0


if __name__ == "__main__":
    sys.exit(main())
