# SPDX-License-Identifier: Apache-2.0
"""What a call costs beyond its work: nanoseconds on 16 fp32 elements, and the import.

    python benchmarks/overhead.py [--rounds 15]

The calls take turns on one thread, by the clock of that thread. A ratio is that to the same call of
torch.ops.aten. The exit status is 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import openaclnn
from openaclnn.bench.timing import Cores, Loops, interleave, run_of

IMPORT = """
import sys, time, numpy
start = time.perf_counter()
import openaclnn
print(time.perf_counter() - start, "torch" in sys.modules)
"""
# The most that torch.ops.openaclnn may take, as a multiple of torch.ops.aten.
TARGETS = {
    "call": 1.3,
    "recorded call": 1.3,
    "recorded call and backward": 1.2,
    "call with out=": 1.0,
}


def import_cost(repeats: int) -> tuple[float, bool]:
    """Seconds after `import numpy` in fresh processes, and whether torch is imported too."""
    command = [sys.executable, "-c", IMPORT]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True, cwd="/")
            for _ in range(repeats)]  # fmt: skip
    words = [run.stdout.split() for run in runs]
    return statistics.median(float(w[0]) for w in words), any(w[1] == "True" for w in words)


def python_calls() -> dict[str, Callable[[], Any]]:
    x = np.ones(16, np.float32)
    y = np.empty_like(x)
    return {
        "an empty Python call": lambda: None,
        "plan.run()": openaclnn.plan("aclnnLeakyRelu", x, 0.01, y).run,
        "openaclnn.leaky_relu(x, 0.01, out=y)": partial(openaclnn.leaky_relu, x, 0.01, out=y),
    }


def torch_calls(torch: Any, library: str) -> list[Callable[[], Any]]:
    """In the order of TARGETS."""
    leaky_relu = getattr(torch.ops, library).leaky_relu
    x, out, gradient = torch.randn(16), torch.empty(16), torch.ones(16)
    leaf = torch.randn(16, requires_grad=True)
    return [
        lambda: leaky_relu.default(x, 0.1),
        lambda: leaky_relu.default(leaf, 0.1),
        lambda: leaky_relu.default(leaf, 0.1).backward(gradient),
        lambda: leaky_relu.out(x, 0.1, out=out),
    ]


def c_pair() -> float | None:
    """Nanoseconds of both phases in C; None without a compiler."""
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    home = openaclnn.home()
    flags = ["-O2", f"-I{home}/include", f"-L{home}/lib64", "-lopapi", "-lascendcl", "-lnnopbase"]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "pair")
        command = [compiler, Path(__file__).with_name("pair.c"), "-o", program, *flags]
        subprocess.run([*command, f"-Wl,-rpath,{home}/lib64"], check=True)
        return float(subprocess.run([program], check=True, capture_output=True).stdout)


def main() -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    seconds, with_torch = import_cost(rounds)
    print(f"import openaclnn after NumPy: {1e3 * seconds:.1f} ms, torch imported: {with_torch}")
    import torch

    from openaclnn.torch import registration

    openaclnn.set_num_threads(1)
    torch.set_num_threads(1)
    calls = python_calls()
    for name, ours, aten in zip(
        TARGETS, torch_calls(torch, "openaclnn"), torch_calls(torch, "aten"), strict=True
    ):
        calls |= {f"torch.ops.openaclnn, {name}": ours, f"torch.ops.aten, {name}": aten}
    cores = Cores(Loops.build(), 1)
    samples = interleave(
        {name: run_of(call, time.thread_time) for name, call in calls.items()}, rounds, cores
    )
    for name, median in samples.medians().items():
        print(f"{name}: {1e9 * median:.0f} ns")
    print(f"both phases in C: {c_pair() or float('nan'):.0f} ns")
    missed = with_torch
    for name, most in TARGETS.items():
        ratio = samples.ratios(f"torch.ops.aten, {name}")[f"torch.ops.openaclnn, {name}"]
        missed |= ratio > most
        verdict = "met" if ratio <= most else "MISSED"
        print(f"{name}, {registration.kind}: {ratio:.2f} of aten, target {most}: {verdict}")
    print(cores.summary())
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
