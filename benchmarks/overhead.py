# SPDX-License-Identifier: Apache-2.0
"""What a call costs beyond its work: import, plan.run(), a function, phase 1 + phase 2 in C.

    python benchmarks/overhead.py [--out overhead.json]

The kernel's share of a call is what grows with the number of elements: a line is fitted through
256, 512, 768 and 1,024 elements (one tile, so one thread), and its value at 0 is the cost beyond
the kernel. That is an upper bound: it holds the kernel's entry and what any Python call costs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

import openaclnn
from openaclnn.bench.timing import Cores, Loops, interleave, run_of

SIZES = (256, 512, 768, 1024)
IMPORT = """
import sys, time, numpy
start = time.perf_counter()
import openaclnn
print(time.perf_counter() - start, "torch" in sys.modules)
"""


def import_cost(repeats: int = 15) -> tuple[float, bool]:
    """Median seconds beyond `import numpy` in fresh processes, and whether torch came along."""
    command = [sys.executable, "-c", IMPORT]
    with tempfile.TemporaryDirectory() as folder:
        runs = [
            subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder).stdout
            for _ in range(repeats)
        ]
    seconds = [float(run.split()[0]) for run in runs]
    return statistics.median(seconds), any(run.split()[1] == "True" for run in runs)


def call_costs(rounds: int = 15) -> dict[str, float]:
    """Nanoseconds of plan.run() and of the functional call with out= on fp32 NumPy arrays."""
    candidates = {}
    rng = np.random.default_rng(0)
    for n in SIZES:
        x = rng.standard_normal(n, np.float32)
        y = np.empty_like(x)
        candidates[f"run {n}"] = run_of(openaclnn.plan("aclnnLeakyRelu", x, 0.01, y).run)
        candidates[f"call {n}"] = run_of(partial(openaclnn.leaky_relu, x, 0.01, out=y))
    candidates["nothing"] = run_of(lambda: None)
    cores = Cores(Loops.build(), openaclnn.config()["threads"])
    samples = interleave(candidates, rounds, cores)
    print(cores.summary())
    median = {name: seconds * 1e9 for name, seconds in samples.medians().items()}
    costs = {"an empty Python call": median["nothing"]}
    for name in ("run", "call"):
        slope, beyond = np.polyfit(SIZES, [median[f"{name} {n}"] for n in SIZES], 1)
        costs[f"{name}, 1,024 elements"] = median[f"{name} 1024"]
        costs[f"{name}, beyond the kernel"] = float(beyond)
        costs[f"{name}, the kernel's share"] = float(slope) * 1024
    return costs


def c_costs() -> dict[str, float] | None:
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    home = openaclnn.home()
    include = [f"-I{home}/include", f"-I{home}/include/aclnn", f"-I{home}/include/aclnnop"]
    library = [f"-L{home}/lib64", "-lopapi_nn", "-lopapi_math", "-lascendcl", "-lnnopbase"]
    source = Path(__file__).with_name("pair.c")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "pair")
        flags = ["-O2", *include, *library, f"-Wl,-rpath,{home}/lib64"]
        subprocess.run([compiler, source, "-o", program, *flags], check=True)

        def run(argument: str) -> list[float]:
            text = subprocess.run([program, argument], check=True, capture_output=True, text=True)
            return [float(word) for word in text.stdout.split()]

        returned, unwritten, done = run("launch")
        return {
            "pair of 16 elements, ns": run("16")[0],
            "pair of 1,024 elements, ns": run("1024")[0],
            "launch of 64 Mi elements returns after, us": returned,
            "of 1,024 samples not yet written then": unwritten,
            "its result is there after, us": done,
        }


def main() -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    seconds, with_torch = import_cost()
    calls, c = call_costs(), c_costs()
    print(f"import openaclnn beyond NumPy: {seconds * 1e3:.1f} ms, torch imported: {with_torch}")
    for name, value in calls.items():
        print(f"{name}: {value:.0f} ns")
    for name, value in (c or {"C: there is no compiler": float("nan")}).items():
        print(f"C {name}: {value:.4g}")
    if options.out:
        figures = {"import_s": seconds, "torch_imported": with_torch, "python_ns": calls, "c": c}
        options.out.write_text(json.dumps(figures, indent=1) + "\n")
    return 1 if with_torch else 0


if __name__ == "__main__":
    sys.exit(main())
