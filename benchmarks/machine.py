# SPDX-License-Identifier: Apache-2.0
"""What a record says of the machine and of the run."""

from __future__ import annotations

import argparse
import os
import platform
import re
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from cells import DTYPES
from measure import PAUSE, Cores, Loops

import openaclnn
from openaclnn.reference import numpy_dtype
from openaclnn.schema import Op

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
