# SPDX-License-Identifier: Apache-2.0
"""Processes that import torch, compute on npu, and exit, several at a time: how many crashed, hung
or said something wrong, and whether shared memory is left.

openaclnn npu -- python tools/npu_cycles.py --cycles 1000 --beside 8
"""

from __future__ import annotations

import argparse
import collections
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
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


def cycle(limit: float) -> str:
    """How a process ended; "right" is good."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {limit:.0f} s"
    if done.returncode != 0:
        return f"ended with {done.returncode}: {done.stderr.strip()[-300:]}"
    return done.stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--beside", type=int, default=8, help="processes at a time")
    parser.add_argument("--limit", type=float, default=300, help="seconds until one hangs")
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    before, begin = shared_memory(), time.monotonic()
    with ThreadPoolExecutor(given.beside) as pool:
        ends = collections.Counter(pool.map(cycle, [given.limit] * given.cycles))
    left = shared_memory() - before
    print(f"{given.cycles} cycles, {given.beside} at a time, {time.monotonic() - begin:.0f} s")
    for end, count in ends.most_common():
        print(f"{count:6} {end}")
    print(f"shared memory left: {', '.join(sorted(left)) or 'none'}")
    return 0 if ends["right"] == given.cycles and not left else 1


if __name__ == "__main__":
    sys.exit(main())
