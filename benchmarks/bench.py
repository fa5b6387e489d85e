# SPDX-License-Identifier: Apache-2.0
"""How fast the operators are, beside torch and what the machine can do.

    python benchmarks/bench.py --out benchmarks/results/elementwise.json     everything
    python benchmarks/bench.py --quick                 a smoke run; its figures mean nothing
    python benchmarks/bench.py --ops leaky_relu --dtypes fp32 --sizes 4Ki 64Mi
    python benchmarks/bench.py --backends ours torch compiled jax numpy --sizes 64Ki 1Mi

Everything is eight operators x three dtypes x five sizes, then strided and broadcast inputs. One
thing is timed for each backend, the call a user writes: f(x, out=out) on memory that is there.
README.md says how to read the table.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import platform
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from cells import AFTER_TORCH, BROADCAST, DTYPES, LAYOUTS, STRIDED, Array, Cell, flags_of
from jit import JAX, TORCH
from measure import PAUSE, Cores, Loops, Run, interleave, run_after, run_of
from peers import PEERS
from report import Result, bars, bars_text, summary, table

import openaclnn
from openaclnn.reference import numpy_dtype
from openaclnn.schema import Op

SIZES = ["4Ki", "64Ki", "1Mi", "16Mi", "64Mi"]
STRIDED_SIZES = ["1Mi", "16Mi"]  # of layouts other than contiguous, unless --sizes is given
STRIDED_DTYPES = ["fp32", "bf16"]  # the same for --dtypes
AFTER_TORCH_SIZES = ["64Ki", "256Ki", "1Mi", "4Mi"]
BACKENDS = {"ours": None, "torch": "torch", "compiled": "torch", "jax": "jax", "numpy": None}
UNITS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20}
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
    timed = {**cell.attributes, **PEERS[op.python].timed}
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
    samples = interleave(candidates, rounds, cores, lambda name: cell.poison(), check_spots)
    seconds, ratios = samples.medians(), samples.ratios("ours")
    for times in (seconds, ratios):
        if "copy" in times:  # from one array to another: two of the arrays that the operator moves
            times["copy"] *= cell.bytes / (2 * cell.result.nbytes)
    if op.inplace:
        check(expected)
    size = size_text(cell.elements)
    head = op.python, cell.dtype, size, cell.layout, cell.elements, cell.bytes
    flags = " ".join(f"{name}={value}" for name, value in cell.flags.items())
    return Result(*head, seconds, ratios, sorted(differs), flags)


def torch_add(torch: ModuleType, elements: int) -> Callable[[], Any]:
    """What torch does before a call: its threads share the work, and then spin."""
    x, y = torch.ones(elements), torch.ones(elements)
    return partial(torch.add, x, 1.0, out=y)


def cells(options: argparse.Namespace) -> Iterator[tuple[Op, str, str, int, dict[str, bool]]]:
    for layout in options.layouts or LAYOUTS:
        if layout == AFTER_TORCH and not {"ours", "torch"} <= set(options.backends):
            continue
        plain = layout == "contiguous" or options.layouts
        dtypes = options.dtypes or (["fp32", "bf16", "fp16"] if plain else STRIDED_DTYPES)
        sizes = options.sizes if plain or options.given else STRIDED_SIZES
        if layout == AFTER_TORCH and not options.given:
            dtypes, sizes = options.dtypes or STRIDED_DTYPES, AFTER_TORCH_SIZES
        for op in openaclnn.OPS:
            named = op.python in (options.ops or ()) or op.name in (options.ops or ())
            if op.family != "elementwise" or (options.ops and not named):
                continue
            if op.inplace and not (named and layout == "contiguous"):
                continue
            if layout in BROADCAST and op.shapes != "broadcast":
                continue
            if layout in STRIDED and not named and len(op.inputs_) == 1:
                continue  # the gradients stand for all
            for dtype in dtypes:
                for size in sizes if DTYPES[dtype] in op.dtypes else ():
                    for flags in flags_of(op) if layout == AFTER_TORCH else [{}]:
                        yield op, layout, dtype, count(size), flags


CPU_NUMBERS = {"family": "cpu family", "model": "model"}


def cpu_name() -> str:
    """The name alone is "AMD EPYC" for several generations on some virtual machines."""
    first = Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    found = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", first, re.M))
    numbers = [f"{what} {found[key]}" for what, key in CPU_NUMBERS.items() if key in found]
    return ", ".join([found.get("model name", platform.machine()), *numbers])


def about(
    options: argparse.Namespace, loops: Loops | None, cores: Cores, load: float
) -> dict[str, Any]:
    versions = {name: module.__version__ for name, module in options.modules.items()}
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu_name(),
        "cpus": len(os.sched_getaffinity(0)),
        "command": shlex.join(["python", "benchmarks/bench.py", *sys.argv[1:]]),
        "config": {k: v for k, v in openaclnn.config().items() if k != "home"},
        "loops_compiler": loops.compiler if loops else None,
        "python": platform.python_version(),
        "numpy": np.__version__,
        **{name: versions.get(name) for name in ("torch", "jax")},
        "absent": options.absent,
        "load_average_before": load,
        "load_average_after": os.getloadavg()[0],
        "threads": options.threads,
        "rounds": options.rounds,
        "pause_seconds": PAUSE,
        "samples": cores.samples,
        "samples_repeated": cores.repeated,
        "samples_beside_a_slow_core": cores.kept,
    }


def enough_memory(op: Op, dtype: str, elements: int) -> bool:
    """Inputs, result, the expected result and scratch of the peers."""
    need = (len(op.inputs_) + 4) * elements * numpy_dtype(DTYPES[dtype]).itemsize
    free = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())
    return free is None or need < int(free[1]) * 1024 * 0.8


def size_text(elements: int) -> str:
    """64Ki for 65,536: what count reads."""
    units = [unit for unit, size in UNITS.items() if elements % size == 0]
    return f"{elements // UNITS[units[-1]]}{units[-1]}"


def count(text: str) -> int:
    match = re.fullmatch(r"([1-9]\d*)(Ki|Mi|)", text)
    if match is None:
        raise ValueError(f"a size is a number, or one with Ki or Mi, but got {text}")
    return int(match[1]) * UNITS[match[2]]


def options_from(arguments: list[str] | None) -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    rows = [op for op in openaclnn.OPS if op.family == "elementwise"]
    names = sorted(op.python for op in rows)
    known = {name for op in rows for name in (op.python, op.name)}
    add = parser.add_argument
    add("--ops", nargs="+", metavar="OP", help=f"default all but in-place rows: {', '.join(names)}")
    add("--dtypes", nargs="+", choices=DTYPES, help="default fp32 bf16 fp16")
    add("--sizes", nargs="+", metavar="N", help=f"elements; default {' '.join(SIZES)}")
    add("--layouts", nargs="+", choices=LAYOUTS, help="default all")
    add("--backends", nargs="+", choices=BACKENDS, default=["ours", "torch"])
    add("--threads", type=int, default=2, help="of ours and of torch, default 2; NumPy has one")
    add("--rounds", type=int, help="samples a median is of, default 11")
    add("--out", type=Path, help="write the results as JSON")
    add("--quick", action="store_true", help="defaults become 4Ki 1Mi, fp32 bf16, 2 rounds")
    options = parser.parse_args(arguments)
    quick = options.quick
    options.given = bool(options.sizes) or quick
    options.sizes = options.sizes or (["4Ki", "1Mi"] if quick else SIZES)
    options.dtypes = options.dtypes or (["fp32", "bf16"] if quick else None)
    options.rounds = options.rounds or (2 if quick else 11)
    for name in set(options.ops or ()) - known:
        parser.error(f"no operator {name}; there are {', '.join(names)}")
    try:
        options.elements = [count(size) for size in options.sizes]
    except ValueError as error:
        parser.error(str(error))
    return options


def load_modules(options: argparse.Namespace) -> None:
    """Those the backends need; a backend whose module is not installed is left out and named."""
    options.modules, options.absent = {}, []
    for backend in list(options.backends):
        module = BACKENDS[backend]
        if module and importlib.util.find_spec(module) is None:
            options.backends.remove(backend)
            options.absent.append(backend)
            print(f"{module} is not installed: no column {backend}", file=sys.stderr)
        elif module:
            options.modules[module] = importlib.import_module(module)
    if "torch" in options.modules:
        options.modules["torch"].set_num_threads(options.threads)
    openaclnn.set_num_threads(options.threads)


def run(options: argparse.Namespace, loops: Loops | None, cores: Cores) -> list[Result]:
    results: list[Result] = []
    todo, started = list(cells(options)), time.monotonic()
    for number, (op, layout, dtype, elements, flags) in enumerate(todo):
        took = time.monotonic() - started
        left = f", about {took / number * (len(todo) - number):.0f} s to go" if number else ""
        what = f"{op.python} {layout} {dtype} {size_text(elements)} {flags or ''}"
        print(f"[{number + 1}/{len(todo)}, {took:.0f} s{left}] {what}", file=sys.stderr, flush=True)
        if enough_memory(op, dtype, elements):
            cell = Cell(op, layout, dtype, elements, flags)
            results.append(measure(cell, options, loops, cores))
        else:
            print("    left out: not enough memory", file=sys.stderr)
    return results


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
    options = options_from(arguments)
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"load average {load:.1f}: the machine is busy, distrust this", file=sys.stderr)
    load_modules(options)
    if not options.backends:
        return 1
    loops = Loops.build()
    if loops is None:
        print("there is no g++ or clang++: no hand-written loops", file=sys.stderr)
    cores = Cores(loops, options.threads)
    results = run(options, loops, cores)
    show(results)
    print(cores.told())
    wrong = [
        f"{r.op} {r.layout} {r.dtype} {r.size}: {', '.join(r.differs)}"
        for r in results
        if r.differs
    ]
    if wrong:
        print("results that differ from those of the first backend:\n  " + "\n  ".join(wrong))
    if options.out:
        document = {
            "about": about(options, loops, cores, load),
            "summary": summary(results),
            "bars": [asdict(bar) for bar in bars(results)],
            "results": [asdict(r) for r in results],
        }
        options.out.write_text(json.dumps(document, indent=1) + "\n")
    return 1 if any(set(r.differs) - set(JITS) for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
