# SPDX-License-Identifier: Apache-2.0
"""What a record says of the machine and of the run."""

from __future__ import annotations

import os
import platform
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ..settings import config

CPU_NUMBERS = {"family": "cpu family", "model": "model"}


def cpu_name() -> str:
    """The name alone is "AMD EPYC" for several generations on some virtual machines."""
    first = Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    found = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", first, re.M))
    numbers = [f"{what} {found[key]}" for what, key in CPU_NUMBERS.items() if key in found]
    return ", ".join([found.get("model name", platform.machine()), *numbers])


def about(load: float) -> dict[str, Any]:
    """`load`: the load average before the run."""
    found = config()
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu_name(),
        "cpus": len(os.sched_getaffinity(0)),
        "openaclnn": found["version"],
        "kernels": found["kernels"],
        "compiler": found["compiler"],
        "python": platform.python_version(),
        "numpy": np.__version__,
        "load_average_before": round(load, 2),
    }


BUSY = 0.5  # load average above which times mean little


def busy(load: float, when: str = "") -> str:
    """A sentence about a busy machine; empty for an idle one."""
    if load <= BUSY:
        return ""
    return f"load average {load:.1f}{when}: the machine is busy, distrust these times"


def cache_bytes() -> int:
    """Of a core's own cache, level 2; 0 where the system does not say."""
    name = "SC_LEVEL2_CACHE_SIZE"
    return max(os.sysconf(name), 0) if name in os.sysconf_names else 0


def memory_for(size: int) -> bool:
    """Whether so many bytes are free, with a fifth to spare."""
    free = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())
    return free is None or size < int(free[1]) * 1024 * 0.8
