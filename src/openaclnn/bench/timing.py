# SPDX-License-Identifier: Apache-2.0
"""The timing method: candidates take turns in one process, and are compared round by round.

A sample is a loop of calls that lasts about 2 ms, after an untimed warm-up of 10 ms, each at least
one call: on a virtual machine a thread that wakes may share the caller's CPU until the scheduler
has balanced (3 to 4 ms, torch's as well as ours), which is due to the machine alone.
Between two candidates the process sleeps: torch's OpenMP threads spin for 5 to 7 ms after their
last work (CPU time used while the process sleeps) and would steal a core from the next.

A ratio is the median of the ratios of the rounds, not that of two medians: where neighbours slow
the whole machine for some seconds (64 Ki elements: 4.8 and 7.7 us, torch 5.1 and 8.2), both times
of a round are slow, while the medians of two candidates may come from different seconds.

And a virtual CPU may share its core with another machine's, for seconds, without the kernel seeing
it: then it is 1.7 times as slow, and twice as fast as torch becomes 0.3 times. So the same piece of
arithmetic is timed on all CPUs before and after each sample, and a sample beside a slow one is
taken again.
"""

from __future__ import annotations

import ctypes
import shutil
import statistics
import subprocess
import tempfile
import time
import timeit
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

SAMPLE = 2e-3  # seconds
PAUSE = 0.02  # seconds
WARM_UP = 5  # samples
SLOW = 1.2  # times the shortest arithmetic
TRIES = 3  # samples, or pauses, for each wanted sample, on the average of a case

Run = Callable[[int], float]  # makes so many calls, gives seconds


def run_of(call: Callable[[], Any], timer: Callable[[], float] = time.perf_counter) -> Run:
    return timeit.Timer(call, timer=timer).timeit


def run_after(before: Callable[[], Any], call: Callable[[], Any]) -> Run:
    """The calls alone are timed, each right after `before`; the clock adds 0.1 us."""

    def run(calls: int) -> float:
        now, total = time.perf_counter, 0.0
        for _ in range(calls):
            before()
            start = now()
            call()
            total += now() - start
        return total

    return run


def calls_for(run: Run, seconds: float = SAMPLE) -> tuple[int, int]:
    """How many calls last that long, and how many are its warm-up."""
    run(1)
    calls, took = 1, run(1)
    while took < seconds / 4 and calls < 1 << 24:
        calls *= 4
        took = run(calls)
    needed = calls * seconds / took
    return max(1, round(needed)), max(1, round(WARM_UP * needed))


class Samples:
    """Seconds per call of candidates, one sample for each round."""

    def __init__(self, samples: Mapping[str, list[float]]) -> None:
        self.samples = samples

    def medians(self) -> dict[str, float]:
        return {name: statistics.median(times) for name, times in self.samples.items()}

    def ratios(self, to: str) -> dict[str, float]:
        """How many times as long as `to` each took."""
        return {
            name: statistics.median(a / b for a, b in zip(times, self.samples[to], strict=True))
            for name, times in self.samples.items()
            if to in self.samples
        }


class Cores:
    """Whether the CPUs are ours alone. Without a compiler nobody knows, and all is well."""

    def __init__(self, loops: Loops | None, threads: int) -> None:
        self.arithmetic = (lambda: loops.arithmetic(threads)) if loops else lambda: 0.0
        self.shortest = min(self.arithmetic() for _ in range(20))
        self.samples = self.repeated = self.kept = 0  # kept: though beside a slow one

    def free(self) -> bool:
        now = self.arithmetic()
        self.shortest = min(self.shortest, now)
        return now <= SLOW * self.shortest

    def summary(self) -> str:
        return (
            f"{self.samples} samples, {self.repeated} more beside a slow core and taken again, "
            f"{self.kept} kept though beside one"
        )

    def count(self, tries: int, good: bool) -> None:
        self.samples += 1
        self.repeated += tries - 1
        self.kept += not good


def interleave(
    candidates: Mapping[str, Run],
    rounds: int,
    cores: Cores,
) -> Samples:
    loops = {}
    for name, run in candidates.items():
        time.sleep(PAUSE)
        loops[name] = calls_for(run)
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    spare = (TRIES - 1) * rounds * len(candidates)
    time.sleep(PAUSE)
    free = cores.free()
    for _ in range(rounds):
        for name, run in candidates.items():
            calls, warm_up = loops[name]
            good, tries = False, 0
            while not good and (tries == 0 or spare > 0):
                spare -= tries > 0
                while not free and spare > 0:
                    spare -= 1
                    time.sleep(PAUSE)
                    free = cores.free()
                tries += 1
                run(warm_up)
                seconds = run(calls) / calls
                time.sleep(PAUSE)
                good, free = free, cores.free()
                good = good and free
            cores.count(tries, good)
            samples[name].append(seconds)
    return Samples(samples)


def aligned(size: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Memory that begins at a cache line, as torch's does; every page touched."""
    raw = np.empty(size * dtype.itemsize + 64, np.uint8)
    raw.fill(0xFF)
    start = -raw.ctypes.data % 64
    return raw[start : start + size * dtype.itemsize].view(dtype)


class Loops:
    """The hand-written loops of loops.cpp, for the machine they run on."""

    KINDS = ("copy", "streaming")

    def __init__(self, compiler: str) -> None:
        source = Path(__file__).with_name("loops.cpp")
        command = f"{compiler} -std=c++20 -O3 -march=native -fPIC -shared -pthread".split()
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "loops.so"
            subprocess.run([*command, source, "-o", library], check=True)
            loaded = ctypes.CDLL(str(library))  # which stays when the file goes
        self._stream, self.arithmetic = loaded.stream, loaded.arithmetic
        self._stream.restype = self.arithmetic.restype = ctypes.c_double
        version = subprocess.run(
            [compiler, "--version"], capture_output=True, text=True, check=True
        )
        self.compiler = version.stdout.splitlines()[0]

    @classmethod
    def build(cls) -> Loops | None:
        """None without a compiler."""
        compiler = shutil.which("g++") or shutil.which("clang++")
        return cls(compiler) if compiler else None

    def run(self, kind: str, inputs: list[Any], out: Any, threads: int, slope: float) -> Run:
        g, x = (inputs[0].ctypes.data, inputs[1].ctypes.data if len(inputs) > 1 else None)
        fixed = (
            self.KINDS.index(kind),
            8 if out.itemsize == 8 else 4,
            ctypes.c_void_p(g),
            ctypes.c_void_p(x),
            ctypes.c_void_p(out.ctypes.data),
            ctypes.c_int64(out.nbytes),
            threads,
            ctypes.c_double(slope),
        )

        def passes(repeats: int, pointed_to: Any = (*inputs, out)) -> float:  # so that it stays
            return float(self._stream(*fixed, ctypes.c_int64(repeats)))

        return passes
