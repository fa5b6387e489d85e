# SPDX-License-Identifier: Apache-2.0
"""Measures an operator with shapes, dtypes and attributes of the user's, beside a peer and a copy.

The candidates take turns (measure.py). Their results are compared before the clock starts.
"""

from __future__ import annotations

import importlib
import math
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

import openaclnn

from ..reference.evaluation import Array
from ..reference.judging import outputs
from ..rows.schema import Op
from ..settings import config
from .agreeing import agrees
from .machine import cpu_name
from .measure import Cores, Loops, Run, interleave, run_of
from .peers import PEERS
from .tensors import BLOCK, CannotMeasure, ours, tensors, to_torch

SCHEMA = "openaclnn bench 1"
TOLERANCE = {"FLOAT": 1e-4, "FLOAT16": 2e-2, "BFLOAT16": 1e-1, "DOUBLE": 1e-12}  # of sums
PEER_NAMES = ("torch", "numpy", "none")


@dataclass(frozen=True)
class Time:
    """Seconds per call: the median of the rounds and its quartiles."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Row:
    """One shape in one dtype."""

    op: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int  # least traffic: each tensor once
    times: Mapping[str, Time]  # ours, the peer, copy (as long as a copy of so many bytes takes)
    ratios: Mapping[str, float]  # how many times as long as ours: the median of the rounds' ratios
    differs: bool  # from the peer

    @property
    def gbps(self) -> float:
        return self.bytes / self.times["ours"].median / 1e9

    def as_data(self) -> dict[str, Any]:
        return {
            "op": self.op,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "bytes": self.bytes,
            "seconds": {
                name: {"median": t.median, "low": t.low, "high": t.high}
                for name, t in self.times.items()
            },
            "ratios": dict(self.ratios),
            "gb_per_second": self.gbps,
            "differs_from_peer": self.differs,
        }


@dataclass(frozen=True)
class Setting:
    """What is measured, whatever the shape and the dtype."""

    op: Op
    attributes: Mapping[str, Any]
    peer: str
    threads: int
    rounds: int

    @property
    def timed(self) -> dict[str, Any]:
        """In place, attributes that keep the data what it was."""
        return {**self.attributes, **PEERS[self.op.python].timed}


class Bench:
    """The CPUs, the copy loop and the module of the peer, found once."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.module = self._module()
        self.loops = Loops.build()
        self.cores = Cores(self.loops, setting.threads)

    def _module(self) -> Any:
        s = self.setting
        if s.peer == "none":
            return None
        peer = PEERS[s.op.python]
        if s.peer == "numpy" and peer.numpy is None:
            raise CannotMeasure(f"--peer numpy has no {s.op.python}; there are torch and none")
        if lacks := peer.lacks(s.attributes):
            raise CannotMeasure(f"--peer {s.peer} {lacks}; --peer none measures without a peer")
        if s.peer == "numpy":
            return np
        try:
            return importlib.import_module("torch")
        except ImportError:
            raise CannotMeasure("--peer torch needs torch: pip install torch") from None

    @contextmanager
    def threads(self) -> Iterator[None]:
        """Ours and torch's; afterwards they are what they were."""
        before = config()["threads"]
        torch = self.module if self.setting.peer == "torch" else None
        theirs = torch.get_num_threads() if torch else 0
        openaclnn.set_num_threads(self.setting.threads)
        if torch:
            torch.set_num_threads(self.setting.threads)
        try:
            yield
        finally:
            openaclnn.set_num_threads(before)
            if torch:
                torch.set_num_threads(theirs)

    def measure(self, shape: tuple[int, ...], dtype: str) -> Row:
        with self.threads():
            return self._measure(shape, dtype)

    def _measure(self, shape: tuple[int, ...], dtype: str) -> Row:
        s, op = self.setting, self.setting.op
        inputs, results = tensors(op, shape, dtype, s.attributes)
        call = ours(op, inputs, results, s.timed)
        starting = inputs[0].copy() if op.inplace else None
        call()
        self._judge(inputs if starting is None else [starting], results)
        candidates: dict[str, Run] = {"ours": run_of(call)}
        differs = False
        if s.peer != "none":
            theirs, compute = self._peer(inputs, results, dtype)
            due = [x.copy() for x in results]
            if starting is not None:
                inputs[0][...] = starting
            differs = not self._same(due, compute(), dtype)
            candidates[s.peer] = run_of(theirs)
        if self.loops is not None:
            x, out = inputs[0].reshape(-1), np.empty_like(results[0]).reshape(-1)
            candidates["copy"] = self.loops.run("copy", [x], out, s.threads, 1.0)
        samples = interleave(candidates, s.rounds, self.cores)
        moved = sum(x.nbytes for x in inputs)
        moved += 0 if op.inplace else sum(x.nbytes for x in results)
        of_copy = moved / (2 * results[0].nbytes)
        share = {name: of_copy if name == "copy" else 1.0 for name in candidates}
        times = {name: _time(t, share[name]) for name, t in samples.samples.items()}
        ratios = {name: r * share[name] for name, r in samples.ratios("ours").items()}
        return Row(op.python, dtype, shape, moved, times, ratios, differs)

    def _judge(self, inputs: list[Array], results: list[Array]) -> None:
        """Our results by the formula; of pointwise rows a block of them."""
        op, attributes = self.setting.op, self.setting.timed
        if op.pointwise:
            inputs = [x.reshape(-1)[:BLOCK] for x in inputs]
            results = [x.reshape(-1)[:BLOCK] for x in results]
        for found in outputs(op, inputs, attributes, results):
            if found.of_promise.max(initial=0.0) > 1:
                raise CannotMeasure(f"{op.python} in {found.dtype} breaks its promise: report this")

    def _peer(
        self, inputs: list[Array], results: list[Array], dtype: str
    ) -> tuple[Callable[[], Any], Callable[[], list[Any]]]:
        """The call that is timed, and one that gives the results as arrays."""
        s, op = self.setting, self.setting.op
        peer = PEERS[op.python]
        named = {p.python_name: x for p, x in zip(op.inputs_, inputs, strict=True)}
        if len(results) == 1 and not op.inplace:
            named["out"] = results[0]
        if s.peer == "torch":
            there = {name: to_torch(self.module, x) for name, x in named.items()}
            call = peer.torch(self.module, there, s.timed)
        else:
            assert peer.numpy is not None
            call = peer.numpy(named, s.timed)

        def compute() -> list[Any]:
            if "out" in named:
                named["out"][...] = math.nan
            found = call()
            return list(found) if isinstance(found, tuple) else [results[0]]

        return call, compute

    def _same(self, due: list[Array], found: list[Any], dtype: str) -> bool:
        op = self.setting.op
        if op.pointwise:
            a, b = due[0].reshape(-1), found[0].reshape(-1)
            below = PEERS[op.python].cancels_below
            return all(agrees(a[i], b[i], below) for i in _blocks(a.size))
        for mine, theirs in zip(due, found, strict=True):
            plain = theirs if isinstance(theirs, np.ndarray) else theirs.double().numpy()
            wide = plain.astype(np.float64).reshape(-1)
            far = np.abs(mine.astype(np.float64).reshape(-1) - wide).max()
            if not far <= TOLERANCE[dtype] * max(1.0, float(np.abs(wide).max())):
                return False
        return True


def _blocks(size: int) -> list[slice]:
    """The first and the last block, and some between."""
    starts = sorted({0, *range(0, size, max(BLOCK, size // 8)), max(0, size - BLOCK)})
    return [slice(i, min(size, i + BLOCK)) for i in starts]


def _time(samples: Sequence[float], share: float) -> Time:
    low, median, high = np.percentile(samples, [25, 50, 75]) * share
    return Time(float(median), float(low), float(high))


def about(bench: Bench, load: float) -> dict[str, Any]:
    s = bench.setting
    module = bench.module
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu_name(),
        "cpus": len(os.sched_getaffinity(0)),
        "openaclnn": config()["version"],
        "kernels": config()["kernels"],
        "python": platform.python_version(),
        "peer": s.peer if module is None else f"{s.peer} {module.__version__}",
        "threads": s.threads,
        "rounds": s.rounds,
        "load_average_before": load,
        "copy": bench.loops.compiler if bench.loops else None,
        "samples": bench.cores.summary(),
    }
