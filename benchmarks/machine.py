# SPDX-License-Identifier: Apache-2.0
"""What a record says of the machine and of the run."""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from cells import DTYPES

import openaclnn
from openaclnn.bench.machine import cpu_name, memory_for
from openaclnn.bench.measure import PAUSE, Cores, Loops
from openaclnn.reference.evaluation import numpy_dtype
from openaclnn.rows.schema import Op

ROOT = Path(__file__).resolve().parent.parent


def command() -> str:
    """What was typed, without the file for the results."""
    words = ["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]
    if "--out" in words:
        at = words.index("--out")
        del words[at : at + 2]
    return shlex.join(words)


def commit() -> str | None:
    """The commit of these sources, "-dirty" if they differ from it; None outside a repository."""
    words = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else None


COMMIT = commit()  # before anything is measured: another may follow meanwhile


def about(
    options: argparse.Namespace, loops: Loops | None, cores: Cores, load: float
) -> dict[str, Any]:
    versions = {name: module.__version__ for name, module in options.modules.items()}
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu_name(),
        "cpus": len(os.sched_getaffinity(0)),
        "command": command(),
        "commit": COMMIT,
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
        "shortest": options.shortest,
        "pause_seconds": PAUSE,
        "samples": cores.samples,
        "samples_repeated": cores.repeated,
        "samples_beside_a_slow_core": cores.kept,
    }


def enough_memory(op: Op, dtype: str, elements: int) -> bool:
    """Inputs, result, the expected result and scratch of the peers."""
    need = (len(op.inputs_) + 4) * elements * numpy_dtype(DTYPES[dtype]).itemsize
    return memory_for(need)
