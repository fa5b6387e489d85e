# SPDX-License-Identifier: Apache-2.0
"""Processes that import torch, compute on npu, and exit, several at a time: how many crashed, hung
or said something wrong, and whether shared memory is left.

openaclnn npu -- python tests/npu/cycles.py --cycles 1000 --beside 8

A process that does not end is shown to gdb, if there is one; the stacks of its threads go to the
folder of --stacks. For the stack of a crash, allow core files (ulimit -c unlimited).
"""

from __future__ import annotations

import argparse
import collections
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

# Streams, events, threads of autograd, pinned memory: what has to end in some order at exit.
PROGRAM = """
import torch
x = torch.randn(64, 64, device="npu", requires_grad=True)
side = torch.npu.Stream()
with torch.npu.stream(side):
    y = torch.nn.functional.elu(x @ x).sum()
torch.npu.current_stream().wait_stream(side)
y.backward()
host = torch.empty(64, 64, pin_memory=True)
host.copy_(x.grad, non_blocking=True)
torch.npu.synchronize()
print("right" if torch.equal(host, x.grad.cpu()) else "wrong")
torch.relu(x)
"""


def shared_memory() -> set[str]:
    """Names in /dev/shm, and segments of System V of this user."""
    files = {path.name for path in Path("/dev/shm").iterdir()}
    listed = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return files | {f"segment {line.split()[1]}" for line in listed}


def show_stacks(process: int, folder: Path) -> str:
    """Where the file with the stacks of all threads is, or why there is none."""
    if shutil.which("gdb") is None:
        return "gdb is not installed"
    words = ["gdb", "-p", str(process), "-batch", "-ex", "thread apply all backtrace"]
    shown = subprocess.run(words, capture_output=True, text=True, check=False)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{process}.txt"
    path.write_text(shown.stdout + shown.stderr)
    return f"stacks in {path}"


def cycle(limit: float, folder: Path) -> str:
    """How a process ended; "right" is good."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            printed, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            where = show_stacks(process.pid, folder)
            process.kill()
            return f"did not end within {limit:.0f} s ({where})"
    if process.returncode != 0:
        return f"ended with {process.returncode}: {errors.strip()[-300:]}"
    return printed.strip()


def show_progress(ends: collections.Counter[str], all_cycles: int, seconds: float) -> None:
    done, end = ends.total(), "" if ends.total() < all_cycles else "\n"
    left = seconds / done * (all_cycles - done)
    bad = done - ends["right"]
    print(f"\r{done} of {all_cycles} cycles, {bad} not right, {left:.0f} s left  ", end=end,
          file=sys.stderr, flush=True)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--beside", type=int, default=8, help="processes at a time")
    parser.add_argument("--limit", type=float, default=300, help="seconds until one hangs")
    parser.add_argument("--stacks", type=Path, default=Path("cycle_stacks"),
                        help="folder for the stacks of processes that hang")  # fmt: skip
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    before, begin = shared_memory(), time.monotonic()
    with ThreadPoolExecutor(given.beside) as pool:
        waiting = [pool.submit(cycle, given.limit, given.stacks) for _ in range(given.cycles)]
        ends: collections.Counter[str] = collections.Counter()
        for finished in as_completed(waiting):
            ends[finished.result()] += 1
            show_progress(ends, given.cycles, time.monotonic() - begin)
    left = shared_memory() - before
    print(f"{given.cycles} cycles, {given.beside} at a time, {time.monotonic() - begin:.0f} s")
    for end, count in ends.most_common():
        print(f"{count:6} {end}")
    print(f"shared memory left: {', '.join(sorted(left)) or 'none'}")
    return 0 if ends["right"] == given.cycles and not left else 1


if __name__ == "__main__":
    sys.exit(main())
