# SPDX-License-Identifier: Apache-2.0
"""The processes that write a report of a run, each its own file."""

from __future__ import annotations

import time
from pathlib import Path


def is_running(process: str) -> bool:
    try:
        state = Path("/proc", process, "stat").read_text(encoding="utf-8").rpartition(")")[2]
    except OSError:
        return False
    return state.split()[0] not in "ZX"  # a zombie, dead


def process_of(path: Path) -> str:
    return path.stem.partition("-")[0]


def wait_for_processes(folder: Path, seconds: float = 20) -> None:
    """Workers of pytest-xdist end after the program: waits for those that have not written yet."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        texts = {path: path.read_bytes() for path in folder.glob("*.json")}
        if not any(
            b'"complete": true' not in text and is_running(process_of(path))
            for path, text in texts.items()
        ):
            return
        time.sleep(0.05)
