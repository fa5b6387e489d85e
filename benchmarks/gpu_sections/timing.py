# SPDX-License-Identifier: Apache-2.0
"""Times on the device: medians of many runs, by CUDA events and of a captured graph.

Calls rotate among sets of tensors that together exceed the L2 cache, so that none finds its inputs
there. What is timed here is checked by the section `matrix`.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

L2 = 1 << 28  # bytes that the sets have together at least; several times the largest cache
SETS = 40  # at most


def sets_for(size: int, dry: bool) -> int:
    return 1 if dry else max(1, min(SETS, -(-L2 // max(size, 1))))


def sync(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def clocked(calls: Sequence[Callable[[], Any]], device: str, seconds: float) -> list[float]:
    """Seconds of single calls, one after the other in the stream."""
    if device != "cuda":
        begin = time.perf_counter()
        calls[0]()
        return [time.perf_counter() - begin]
    for call in calls:  # compiles, and fills caches of the host
        call()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for call in calls[:5]:
        call()
    torch.cuda.synchronize()
    each = max((time.perf_counter() - begin) / len(calls[:5]), 1e-6)
    count = int(max(20, min(200, seconds / each)))
    found = []
    for _ in range(3):
        n = count // 3
        events = [torch.cuda.Event(enable_timing=True) for _ in range(n + 1)]
        # The launches queue up behind a wait, so that there are no gaps between calls.
        torch.cuda._sleep(min(int(n * each * 2.5e9), 400_000_000))
        events[0].record()
        for i in range(n):
            calls[i % len(calls)]()
            events[i + 1].record()
        torch.cuda.synchronize()
        found += [a.elapsed_time(b) * 1e-3 for a, b in itertools.pairwise(events)]
    return found


def in_graph(calls: Sequence[Callable[[], Any]], device: str, seconds: float) -> float | None:
    """Seconds of a call among others in a graph: without what launches cost the CPU."""
    if device != "cuda":
        return None
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    torch.cuda.synchronize()
    rounds = max(1, 20 // len(calls))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(rounds):
            for call in calls:
                call()
    found = []
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph.replay()
    torch.cuda.synchronize()
    stop = time.perf_counter() + seconds
    while len(found) < 5 or (time.perf_counter() < stop and len(found) < 50):
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end) * 1e-3 / (rounds * len(calls)))
    return statistics.median(found)


def measured(
    calls: Sequence[Callable[[], Any]], device: str, seconds: float = 0.15, graph: bool = True
) -> dict[str, float | None]:
    """Median and quartile in µs, and the median in a graph. What a graph cannot capture is None."""
    times = clocked(calls, device, seconds)
    in_a_graph = None
    if graph:
        try:
            in_a_graph = in_graph(calls, device, seconds)
        except Exception as error:
            print(f"  not captured: {type(error).__name__}: {str(error)[:200]}", flush=True)
            sync(device)
    quarter = sorted(times)[len(times) // 4]
    return {
        "us": statistics.median(times) * 1e6,
        "quartile": quarter * 1e6,
        "graph": None if in_a_graph is None else in_a_graph * 1e6,
    }


def host(call: Callable[[], Any], device: str, count: int = 200) -> float:
    """µs that a call keeps the CPU."""
    if device != "cuda":
        count = 1
    sync(device)
    best = []
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        best.append((time.perf_counter() - begin) / count)
        sync(device)
    return min(best) * 1e6


def cast(dtype: str) -> torch.dtype:
    return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[dtype]


def copy_speed(device: str, size: int, seconds: float = 0.3) -> float:
    """Bytes read and written in a second by a copy of `size` bytes on the device."""
    x = torch.rand(size // 4, device=device)
    ys = [torch.empty_like(x) for _ in range(2)]
    calls = [lambda y=y: y.copy_(x) for y in ys]  # type: ignore[misc]
    found = measured(calls, device, seconds, graph=False)["us"]
    assert found is not None
    return 2 * size / (found * 1e-6)
