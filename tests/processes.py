# SPDX-License-Identifier: Apache-2.0
"""Programs that tests build once or start: what they printed, and an end for those that hang."""

from __future__ import annotations

import fcntl
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest


def once(target: Path, build: Callable[[Path], object]) -> Path:
    """What `build` writes to the path that it gets; the first worker of pytest-xdist calls it."""
    with target.with_name(f"{target.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=target.parent) as folder:
                build(made := Path(folder) / target.name)
                made.rename(target)
    return target


def run_with_children(
    command: Sequence[str], environment: dict[str, str], limit: float
) -> tuple[int, str]:
    """The exit status, and all that it printed. After `limit` seconds it is a hang, and the
    processes that it started are killed too."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        text, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        text, _ = process.communicate()
        pytest.fail(f"{command} did not end within {limit} s:\n{text}")
    return process.returncode, text


# ---- batteries: test files that, run as programs, print the instruction set and a digest ----


def run_battery(file: str, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, file], env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def assert_digest_on(file: str, level: str, expected: str) -> None:
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip(f"{platform.machine()} has one build of the kernels")
    kernels, digest = run_battery(file, OPENACLNN_ISA=level)
    if kernels != level:
        pytest.skip(f"this CPU runs {kernels} at most")
    assert digest == expected
