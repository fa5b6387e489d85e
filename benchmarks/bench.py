# SPDX-License-Identifier: Apache-2.0
"""How fast the operators are, beside torch, NumPy and what the machine can do.

    python benchmarks/bench.py                               every row and size
    python benchmarks/bench.py --quick                       a smoke run; its figures mean nothing
    python benchmarks/bench.py --ops leaky_relu --dtypes fp32 --sizes 4Ki 64Mi --out results.json

One thing is timed for each backend, the call a user writes: f(x, out=out) on memory that is there.
README.md says how to read the table.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from measure import PAUSE, Loops, Run, aligned, interleave, run_of
from peers import PEERS
from report import Result, summary, table

import openaclnn
from openaclnn.reference import REFERENCES, numpy_dtype
from openaclnn.schema import Op

Array = np.ndarray[Any, Any]

DTYPES = {"fp32": "FLOAT", "bf16": "BFLOAT16", "fp16": "FLOAT16", "fp64": "DOUBLE"}
SIZES = ["4Ki", "64Ki", "1Mi", "4Mi", "16Mi", "64Mi"]
LAYOUTS = ["contiguous", "transposed", "broadcast"]
BACKENDS = ["ours", "torch", "numpy"]
UNITS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20}
# Backends may differ by this many units of the dtype: NumPy rounds attributes to half types.
EPSILON = {"fp32": 2.0**-23, "bf16": 2.0**-7, "fp16": 2.0**-10, "fp64": 2.0**-52}
LEAST = {"fp32": 2.0**-126, "bf16": 2.0**-126, "fp16": 2.0**-14, "fp64": 2.0**-1022}
DIFFERENCE = 4


class Cell:
    """The data of one row, layout, dtype and size: inputs, and memory for the result."""

    def __init__(self, op: Op, layout: str, dtype: str, elements: int) -> None:
        self.op, self.layout, self.dtype, self.elements = op, layout, dtype, elements
        kind = numpy_dtype(DTYPES[dtype])
        rng = np.random.default_rng(elements)
        columns = min(elements & -elements, 1 << (elements.bit_length() // 2))  # a power of 2
        self.shape = (elements,) if layout == "contiguous" else (elements // columns, columns)
        self.inputs: dict[str, Array] = {}
        self.bytes = 0
        for p in op.inputs_:
            few = layout == "broadcast" and p is op.inputs_[-1]
            memory = aligned(columns if few else elements, kind)
            self.bytes += memory.nbytes
            for i in range(0, memory.size, 1 << 20):  # normal, of both signs
                part = memory[i : i + (1 << 20)]
                part[:] = rng.standard_normal(part.size, np.float32)
            self.inputs[p.python_name] = self.arrange(memory, few)
            self.result = memory
        self.original = self.result.copy() if op.inplace else None
        if not op.inplace:
            self.result = aligned(elements, kind)
        self.bytes += self.result.nbytes
        first = REFERENCES[op.kernel].attributes[0]
        self.attributes = {p.python_name: first[p.python_name] for p in op.attributes}

    def arrange(self, memory: Array, few: bool) -> Array:
        if few or self.layout == "contiguous":
            return memory
        if self.layout == "transposed":
            return memory.reshape(self.shape[::-1]).T
        return memory.reshape(self.shape)

    def tensors(self, backend: str, torch: ModuleType | None) -> dict[str, Any]:
        tensors = dict(self.inputs)
        if not self.op.inplace:
            tensors["out"] = self.result.reshape(self.shape)
        if backend != "torch" or torch is None:
            return tensors
        if self.dtype != "bf16":
            return {name: torch.from_numpy(x) for name, x in tensors.items()}
        return {
            k: torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) for k, x in tensors.items()
        }

    def call(self, backend: str, torch: ModuleType | None, attributes: dict[str, Any]) -> Any:
        tensors, peer = self.tensors(backend, torch), PEERS[self.op.python]
        if backend == "torch":
            assert torch is not None
            return peer.torch(torch, tensors, attributes)
        if backend == "numpy":
            return peer.numpy(tensors, attributes)
        given = {p.python_name: tensors.get(p.python_name) for p in self.op.inputs_} | attributes
        if backend == "plan":
            values = tensors | attributes
            names = ("out" if p.role == "output" else p.python_name for p in self.op.parameters)
            return openaclnn.plan(self.op.name, *(values[name] for name in names)).run
        out = {} if self.op.inplace else {"out": tensors["out"]}
        ordered = [given[p.python_name] for p in self.op.parameters if p.role != "output"]
        return partial(getattr(openaclnn, self.op.python), *ordered, **out)

    def reset(self) -> None:
        """NaN into the output, or the data back in place."""
        if self.original is None:
            self.result.view(np.uint8).fill(0xFF)
        else:
            self.result[:] = self.original

    def agrees(self, expected: Array) -> bool:
        """Equal bits, or else close by; NaN never is."""
        unsigned = f"u{expected.itemsize}"
        step = 1 << 20
        for i in range(0, expected.size, step):
            a, b = self.result[i : i + step], expected[i : i + step]
            if np.array_equal(a.view(unsigned), b.view(unsigned)) and not np.isnan(b).any():
                continue
            wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
            least = max(LEAST[self.dtype], PEERS[self.op.python].cancels_below)
            size = np.maximum(np.maximum(abs(wide_a), abs(wide_b)), least)
            if not (abs(wide_a - wide_b) <= DIFFERENCE * EPSILON[self.dtype] * size).all():
                return False
        return True


def measure(
    cell: Cell, options: argparse.Namespace, torch: ModuleType | None, loops: Loops | None
) -> Result:
    op, peer = cell.op, PEERS[cell.op.python]
    backends = [b for b in options.backends if b != "torch" or torch is not None]
    if (
        "ours" in backends
        and cell.layout == "contiguous"
        and cell.elements == min(options.elements)
    ):
        backends.insert(1, "plan")

    def check(expected: Array | None) -> tuple[Array, set[str]]:
        differ = set()
        for backend in backends:
            cell.reset()
            cell.call(backend, torch, cell.attributes)()
            if expected is None:
                expected = cell.result.copy()
            if not cell.agrees(expected):
                differ.add(backend)
        assert expected is not None
        return expected, differ

    expected, differs = check(None)
    timed = {**cell.attributes, **peer.timed}
    candidates: dict[str, Run] = {b: run_of(cell.call(b, torch, timed)) for b in backends}
    if loops is not None and cell.layout == "contiguous":
        inputs = list(cell.inputs.values())
        slope = 1.0 if op.inplace else 0.01  # in place the data stays what it was
        for kind in ("ordinary",) if op.inplace else Loops.KINDS:
            candidates[kind] = loops.run(kind, inputs, cell.result, options.threads, slope)

    def before(name: str) -> None:
        if not op.inplace:
            cell.reset()

    def after(name: str) -> None:
        if name in backends and not op.inplace and not cell.agrees(expected):
            differs.add(name)

    cell.reset()
    seconds = interleave(candidates, options.rounds, before, after)
    if "copy" in seconds:  # from one array to another: two of the arrays that the operator moves
        seconds["copy"] *= cell.bytes / (2 * cell.result.nbytes)
    differs |= check(expected)[1]
    size = options.sizes[options.elements.index(cell.elements)]
    return Result(
        op.python,
        cell.dtype,
        size,
        cell.layout,
        cell.elements,
        cell.bytes,
        seconds,
        sorted(differs),
    )


def cells(options: argparse.Namespace) -> Iterator[tuple[Op, str, str, int]]:
    for op in openaclnn.OPS:
        if not {op.python, op.name} & set(options.ops or (op.python,)):
            continue
        for layout in options.layouts:
            if layout == "broadcast" and (op.shapes != "broadcast" or len(op.inputs_) < 2):
                continue
            for dtype in options.dtypes:
                for elements in options.elements if DTYPES[dtype] in op.dtypes else ():
                    yield op, layout, dtype, elements


def about(
    options: argparse.Namespace, torch: ModuleType | None, loops: Loops | None, load: float
) -> dict[str, Any]:
    cpu = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu[1] if cpu else platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "command": shlex.join(["python", "benchmarks/bench.py", *sys.argv[1:]]),
        "config": {k: v for k, v in openaclnn.config().items() if k != "home"},
        "loops_compiler": loops.compiler if loops else None,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__ if torch else None,
        "load_average_before": load,
        "threads": options.threads,
        "rounds": options.rounds,
        "pause_seconds": PAUSE,
    }


def enough_memory(op: Op, dtype: str, elements: int) -> bool:
    """Inputs, result, the expected result and scratch of the peers."""
    need = (len(op.inputs_) + 4) * elements * numpy_dtype(DTYPES[dtype]).itemsize
    free = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())
    return free is None or need < int(free[1]) * 1024 * 0.8


def count(text: str) -> int:
    match = re.fullmatch(r"([1-9]\d*)(Ki|Mi|)", text)
    if match is None:
        raise ValueError(f"a size is a number, or one with Ki or Mi, but got {text}")
    return int(match[1]) * UNITS[match[2]]


def options_from(arguments: list[str] | None) -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    names = sorted(op.python for op in openaclnn.OPS)
    known = {name for op in openaclnn.OPS for name in (op.python, op.name)}
    add = parser.add_argument
    add(
        "--ops", nargs="+", metavar="OP", help=f"Python or C names; default all: {', '.join(names)}"
    )
    add("--dtypes", nargs="+", choices=DTYPES, help="default fp32 bf16 fp16")
    add("--sizes", nargs="+", metavar="N", help=f"elements; default {' '.join(SIZES)}")
    add("--layouts", nargs="+", choices=LAYOUTS, help="default contiguous")
    add("--backends", nargs="+", choices=BACKENDS, default=BACKENDS, help="default all")
    add("--threads", type=int, default=2, help="of ours and of torch, default 2; NumPy has one")
    add("--rounds", type=int, help="samples a median is of, default 9")
    add("--out", type=Path, help="write the results as JSON")
    add(
        "--quick",
        action="store_true",
        help="defaults become 4Ki 1Mi, fp32 bf16, all layouts, 2 rounds",
    )
    options = parser.parse_args(arguments)
    quick = options.quick
    options.sizes = options.sizes or (["4Ki", "1Mi"] if quick else SIZES)
    options.dtypes = options.dtypes or (["fp32", "bf16"] if quick else ["fp32", "bf16", "fp16"])
    options.layouts = options.layouts or (LAYOUTS if quick else LAYOUTS[:1])
    options.rounds = options.rounds or (2 if quick else 9)
    for name in set(options.ops or ()) - known:
        parser.error(f"no operator {name}; there are {', '.join(names)}")
    try:
        options.elements = [count(size) for size in options.sizes]
    except ValueError as error:
        parser.error(str(error))
    return options


def main(arguments: list[str] | None = None) -> int:
    options = options_from(arguments)
    load = os.getloadavg()[0]
    if load > 0.5:
        print(
            f"load average {load:.1f}: the machine is busy, distrust the figures", file=sys.stderr
        )
    torch: ModuleType | None = None
    if "torch" in options.backends:
        if importlib.util.find_spec("torch"):
            import torch as installed

            torch = installed
            torch.set_num_threads(options.threads)
        else:
            print("torch is not installed: no ratios to it", file=sys.stderr)
    openaclnn.set_num_threads(options.threads)
    if torch is None and options.backends == ["torch"]:
        return 1
    loops = Loops.build()
    if loops is None:
        print("there is no g++ or clang++: no hand-written loops", file=sys.stderr)

    results: list[Result] = []
    todo = list(cells(options))
    for number, (op, layout, dtype, elements) in enumerate(todo, 1):
        size = options.sizes[options.elements.index(elements)]
        print(
            f"[{number}/{len(todo)}] {op.python} {layout} {dtype} {size}",
            file=sys.stderr,
            flush=True,
        )
        if enough_memory(op, dtype, elements):
            results.append(measure(Cell(op, layout, dtype, elements), options, torch, loops))
        else:
            print("    left out: not enough memory", file=sys.stderr)

    print(table(results))
    found = summary(results)
    for peer, s in found.items():
        print(
            f"against {peer}: geometric mean {s['geometric_mean']:.2f}x over {s['cells']} cells, "
            f"worst {s['worst']:.2f}x ({s['worst_cell']})"
        )
    for r in results:
        if "plan" in r.seconds:
            print(
                f"{r.op} {r.dtype} {r.size}: plan.run() {r.seconds['plan'] * 1e9:.0f} ns, "
                f"with out= {r.seconds['ours'] * 1e9:.0f} ns"
            )
    wrong = [
        f"{r.op} {r.layout} {r.dtype} {r.size}: {', '.join(r.differs)}"
        for r in results
        if r.differs
    ]
    if wrong:
        print("results that differ from those of the first backend:\n  " + "\n  ".join(wrong))
    if options.out:
        document = {
            "about": about(options, torch, loops, load),
            "summary": found,
            "results": [asdict(r) for r in results],
        }
        options.out.write_text(json.dumps(document, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
