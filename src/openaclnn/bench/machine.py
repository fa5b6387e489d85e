# SPDX-License-Identifier: Apache-2.0
"""What a record says of the machine."""

from __future__ import annotations

import platform
import re
from pathlib import Path

CPU_NUMBERS = {"family": "cpu family", "model": "model"}


def cpu_name() -> str:
    """The name alone is "AMD EPYC" for several generations on some virtual machines."""
    first = Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    found = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", first, re.M))
    numbers = [f"{what} {found[key]}" for what, key in CPU_NUMBERS.items() if key in found]
    return ", ".join([found.get("model name", platform.machine()), *numbers])


BUSY = 0.5  # load average beside which times are no measurement


def busy(load: float, when: str = "") -> str:
    """The sentence about a machine that did something else; empty where it did not."""
    if load <= BUSY:
        return ""
    return f"load average {load:.1f}{when}: the machine is busy, distrust these times"


def memory_for(size: int) -> bool:
    """Whether so many bytes are free, with a fifth to spare."""
    free = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())
    return free is None or size < int(free[1]) * 1024 * 0.8
