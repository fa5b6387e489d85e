# SPDX-License-Identifier: Apache-2.0
"""Measures a case beside baselines and hand-written loops.

The candidates take turns (timing.py). Their results are compared before the clock starts.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import openaclnn

from ..reference.arrays import Array
from ..reference.evaluation import REFERENCES
from ..reference.judge import outputs
from ..settings import config
from . import machine
from .agreement import agrees
from .baseline_table import BASELINES
from .cases import BLOCK, Arrays, CannotMeasure, Case, arrays, ours, to_torch
from .timing import Cores, Loops, Run, aligned, interleave, run_after, run_of

SCHEMA = "openaclnn bench 1"
TOLERANCE = {"FLOAT": 1e-4, "FLOAT16": 2e-2, "BFLOAT16": 1e-1, "DOUBLE": 1e-12}  # of sums


@dataclass(frozen=True)
class Time:
    """Seconds per call: the median of the rounds and its quartiles."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Result:
    """Of one case."""

    case: Case
    bytes: int  # least traffic
    # ours, the baselines, and loops: how long one takes for as many bytes
    times: Mapping[str, Time]
    ratios: Mapping[str, float]  # how many times as long as ours: the median of the rounds' ratios
    differs: tuple[str, ...]  # baselines with other results

    @property
    def gbps(self) -> float:
        return self.bytes / self.times["ours"].median / 1e9

    def as_data(self) -> dict[str, Any]:
        return {
            "op": self.case.op.python,
            "dtype": self.case.dtype,
            "shape": list(self.case.shape),
            "bytes": self.bytes,
            "seconds": {
                name: {"median": t.median, "low": t.low, "high": t.high}
                for name, t in self.times.items()
            },
            "ratios": dict(self.ratios),
            "gb_per_second": self.gbps,
            "differs": list(self.differs),
        }


class CannotCompile(CannotMeasure):
    """The baseline `compiled` fails."""


class Bench:
    """The CPUs and the loops, found once."""

    def __init__(
        self,
        threads: int,
        rounds: int,
        loops: Sequence[str] = ("copy",),
    ) -> None:
        self.threads, self.rounds = threads, rounds
        self.versions: dict[str, str] = {}
        self.loops = Loops.build()
        self.kinds = tuple(loops) if self.loops else ()
        self.cores = Cores(self.loops, threads)

    def measure(
        self, case: Case, baselines: Sequence[str], before: Callable[[], Any] | None = None
    ) -> Result:
        """`before` runs, untimed, before each call."""
        modules = {name: self._module(name, case) for name in baselines}
        with self._threads(modules.values()):
            return self._measure(case, modules, before)

    def _module(self, name: str, case: Case) -> Any:
        package = "numpy" if name == "numpy" else "torch"
        if package == "torch" and (lacks := BASELINES[case.op.python].lacks(case.attributes)):
            raise CannotMeasure(f"--baseline {name} {lacks}; --baseline numpy has every attribute")
        try:
            module = importlib.import_module(package)
        except ImportError:
            raise CannotMeasure(f"--baseline {name} needs torch: pip install torch") from None
        self.versions[package] = module.__version__
        return module

    @contextmanager
    def _threads(self, modules: Any) -> Iterator[None]:
        """Sets the threads of openaclnn and torch, and restores them."""
        setters = [openaclnn.set_num_threads]
        before = [config()["threads"]]
        for torch in (m for m in modules if hasattr(m, "set_num_threads")):
            setters.append(torch.set_num_threads)
            before.append(torch.get_num_threads())
        for setter in setters:
            setter(self.threads)
        try:
            yield
        finally:
            for setter, threads in zip(setters, before, strict=True):
                setter(threads)

    def _measure(
        self, case: Case, modules: Mapping[str, Any], before: Callable[[], Any] | None
    ) -> Result:
        data = arrays(case)
        call = ours(case, data, case.timed)
        start = data.inputs[0].copy() if case.op.inplace else None
        call()
        self._judge(case, data.inputs if start is None else [start], data.results)
        calls = {"ours": call}
        expected = [x.copy() for x in data.results]
        differs = []
        for name, module in modules.items():
            if start is not None:
                data.inputs[0][...] = start
            else:
                for x in data.results:
                    x.fill(math.nan)
            baseline = _call_of(name, module, case, data)
            try:
                found = baseline()
            except Exception as error:  # torch.compile raises many kinds
                if name != "compiled":
                    raise
                raise CannotCompile(f"torch.compile: {str(error).splitlines()[0]}") from error
            calls[name] = baseline
            # compilers compute expm1(x) as exp(x) - 1
            below = 1.0 if name == "compiled" else BASELINES[case.op.python].cancels_below
            found = found if isinstance(found, tuple) else data.results
            if not _same(case, expected, found, below):
                differs.append(name)
        timed = {n: run_after(before, c) if before else run_of(c) for n, c in calls.items()}
        shares = dict.fromkeys(timed, 1.0)
        for kind in self.kinds:
            timed[kind], moved = self._loop(kind, data)
            shares[kind] = data.bytes / moved
        samples = interleave(timed, self.rounds, self.cores)
        times = {name: _time(t, shares[name]) for name, t in samples.samples.items()}
        ratios = {name: r * shares[name] for name, r in samples.ratios("ours").items()}
        return Result(case, data.bytes, times, ratios, tuple(differs))

    def _loop(self, kind: str, data: Arrays) -> tuple[Run, int]:
        """The loop over the large tensors, and the bytes that it moves."""
        assert self.loops is not None
        out = aligned(data.results[0].size, data.results[0].dtype)  # streaming stores need it
        inputs = [x for x in data.inputs if x.nbytes == out.nbytes] or [out.copy()]
        inputs = inputs[: 1 if kind == "copy" else 2]
        run = self.loops.run(kind, inputs, out, self.threads, 0.5)
        return run, (len(inputs) + 1) * out.nbytes

    def _judge(self, case: Case, inputs: list[Array], results: list[Array]) -> None:
        """Our results by the formula; of pointwise rows the first elements."""
        if case.op.pointwise:
            shape = results[0].shape
            inputs = [np.broadcast_to(x, shape).reshape(-1)[:BLOCK] for x in inputs]
            results = [x.reshape(-1)[:BLOCK] for x in results]
        for found in outputs(case.op, inputs, case.timed, results):
            if found.of_promise.max(initial=0.0) > 1:
                name = case.op.python
                raise CannotMeasure(f"{name} in {found.dtype} breaks its promise: report this")

    def about(self, load: float) -> dict[str, Any]:
        return {
            **machine.about(load),
            **self.versions,
            "threads": self.threads,
            "rounds": self.rounds,
            "loops": self.loops.compiler if self.loops else None,
            "samples": self.cores.summary(),
        }


def _call_of(name: str, module: Any, case: Case, data: Arrays) -> Callable[[], Any]:
    """Writes the results, or returns all of them as a tuple."""
    baseline = BASELINES[case.op.python]
    named = {p.python_name: x for p, x in zip(case.op.input_tensors, data.inputs, strict=True)}
    if len(data.results) == 1 and not case.op.inplace:
        named["out"] = data.results[0]
    if name == "numpy":
        return partial(_formula, case, data)
    there = {key: to_torch(module, x) for key, x in named.items()}
    if name in baseline.others:
        return baseline.others[name](module, there, case.timed)
    call = baseline.torch(module, there, case.timed)
    if name == "torch":
        return call
    if name != "compiled":
        raise CannotMeasure(f"{case.op.python} has no baseline {name}")
    module.compiler.reset()
    compiled: Callable[[], Any] = module.compile(lambda: call(), fullgraph=True)
    return compiled


def _formula(case: Case, data: Arrays) -> Any:
    """The reference in the dtype of the arrays, as NumPy code is written."""
    with np.errstate(all="ignore"):
        found = REFERENCES[case.op.kernel].formula(*data.inputs, **case.timed)
    if isinstance(found, tuple):
        return found
    data.results[0][...] = found
    return None


def _same(case: Case, expected: list[Array], found: Sequence[Any], below: float) -> bool:
    """`below`: smaller results are compared as if they were as large."""
    if case.op.pointwise:
        a, b = expected[0].reshape(-1), found[0].reshape(-1)
        return all(agrees(a[i], b[i], below) for i in _blocks(a.size))
    for mine, theirs in zip(expected, found, strict=False):  # compiled: without the statistics
        plain = theirs if isinstance(theirs, np.ndarray) else theirs.double().numpy()
        a, b = (x.astype(np.float64).reshape(-1) for x in (mine, plain))
        if not np.abs(a - b).max() <= TOLERANCE[case.dtype] * max(1.0, float(np.abs(b).max())):
            return False
    return True


def _blocks(size: int) -> list[slice]:
    """The first and the last block, and some between."""
    starts = sorted({0, *range(0, size, max(BLOCK, size // 8)), max(0, size - BLOCK)})
    return [slice(i, min(size, i + BLOCK)) for i in starts]


def _time(samples: Sequence[float], share: float) -> Time:
    low, median, high = np.percentile(samples, [25, 50, 75]) * share
    return Time(float(median), float(low), float(high))
