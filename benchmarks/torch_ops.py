# SPDX-License-Identifier: Apache-2.0
"""What a call of torch.ops.openaclnn costs beside that of torch.ops.aten, on 16 fp32 elements.

    python benchmarks/torch_ops.py [--rounds 200] [--out torch_ops.json]

Both take turns on one thread. A figure is the median over the rounds of the time of 200 calls, on
the clock of the thread, which stands while others have the core; a ratio is the median of the
rounds' ratios. The exit status is 1 where a bar is not met.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import openaclnn
import openaclnn.torch
from openaclnn.torch import registration

CALLS = 200
# The most that ours may take, as a multiple of aten's. A call with out= stays below it.
BARS = {"call": 1.3, "recorded call": 1.3, "recorded call and backward": 1.2, "call with out=": 1.0}
Pair = tuple[Callable[[], Any], Callable[[], Any]]


def pairs() -> dict[str, Pair]:
    """aten's and ours."""
    packets = torch.ops.aten.leaky_relu, torch.ops.openaclnn.leaky_relu
    x, out, gradient = torch.randn(16), torch.empty(16), torch.ones(16)
    leaf = torch.randn(16, requires_grad=True)

    def pair(make: Callable[[Any], Callable[[], Any]]) -> Pair:
        return make(packets[0]), make(packets[1])

    def call(packet: Any) -> Callable[[], Any]:
        return lambda: packet.default(x, 0.1)

    def recorded(packet: Any) -> Callable[[], Any]:
        return lambda: packet.default(leaf, 0.1)

    def backward(packet: Any) -> Callable[[], Any]:
        return lambda: packet.default(leaf, 0.1).backward(gradient)

    def with_out(packet: Any) -> Callable[[], Any]:
        return lambda: packet.out(x, 0.1, out=out)

    return dict(zip(BARS, map(pair, (call, recorded, backward, with_out)), strict=True))


def microseconds(function: Callable[[], Any]) -> float:
    begin = time.thread_time_ns()
    for _ in range(CALLS):
        function()
    return (time.thread_time_ns() - begin) / CALLS / 1000


def measure(functions: Pair, rounds: int) -> dict[str, float]:
    for function in functions:
        microseconds(function)
    times = []
    for i in range(rounds):  # who goes first changes
        order = functions if i % 2 == 0 else functions[::-1]
        one, other = map(microseconds, order)
        times.append((one, other) if i % 2 == 0 else (other, one))
    return {
        "aten": statistics.median(a for a, _ in times),
        "ours": statistics.median(b for _, b in times),
        "ratio": statistics.median(b / a for a, b in times),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    openaclnn.set_num_threads(1)
    print(f"torch {torch.__version__}, {registration.kind} operators, us")
    found, missed = {}, 0
    for name, functions in pairs().items():
        figures = found[name] = measure(functions, arguments.rounds)
        met = figures["ratio"] <= BARS[name]
        missed += not met
        print(
            f"{name:27} aten {figures['aten']:6.2f}  ours {figures['ours']:6.2f}  "
            f"ratio {figures['ratio']:.2f}, bar {BARS[name]}: {'met' if met else 'NOT MET'}"
        )
    if arguments.out:
        arguments.out.write_text(json.dumps({"bars": BARS, "us": found}, indent=1) + "\n")
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
