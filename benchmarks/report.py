# SPDX-License-Identifier: Apache-2.0
"""A benchmark result, and the table people read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median
from typing import Any


@dataclass
class Result:
    op: str
    dtype: str
    size: str
    layout: str
    elements: int
    bytes: int  # least traffic
    # median per call: ours, plan, torch, compiled, jax, numpy; copy, ordinary, streaming
    seconds: dict[str, float]
    ratios: dict[str, float]  # how many times as long as ours each took
    differs: list[str]  # backends whose result is not ours
    flags: str = ""  # attributes that differ from the first set: is_result=True
    mix: str = ""  # of layout `mixes`, the data: 0.1% nan

    @property
    def call(self) -> str:
        return " ".join(filter(None, (self.op, self.flags, self.mix)))

    @property
    def name(self) -> str:
        told = self.layout in ("attributes", "mixes")  # by the flags, or the mix
        layout = "" if told else self.layout
        return " ".join(filter(None, (self.call, layout, self.dtype, self.size)))

    @property
    def ratio_alone(self) -> float | None:
        """Of an after_torch cell: how many times faster than torch the same calls are when torch's
        threads have gone to sleep."""
        if not {"ours_alone", "torch_alone"} <= self.ratios.keys():
            return None
        return self.ratios["torch_alone"] / self.ratios["ours_alone"]

    def gbps(self, name: str) -> float:
        return self.bytes / self.seconds[name] / 1e9

    def fraction(self, *names: str) -> float | None:
        """Our bandwidth as a share of the best of these."""
        return min((self.ratios[n] for n in names if n in self.ratios), default=None)


def median_of(runs: list[Result]) -> Result:
    """One cell, measured several times."""
    first = runs[0]
    return replace(
        first,
        seconds={name: median(r.seconds[name] for r in runs) for name in first.seconds},
        ratios={name: median(r.ratios[name] for r in runs) for name in first.ratios},
        differs=sorted({name for r in runs for name in r.differs}),
    )


BASELINES = ("torch", "compiled", "jax", "numpy")


def mean(ratios: Iterable[float]) -> float:
    """Geometric."""
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logarithms) / len(logarithms))


def show(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def table(results: list[Result]) -> str:
    peers = [peer for peer in BASELINES if any(peer in r.seconds for r in results)]
    head = ["op", "layout", "dtype", "size", "ns/element", "GB/s"]
    head += [*(f"x {peer}" for peer in peers), "of loop", "of copy"]
    rows = [head]
    for r in results:
        ours = r.seconds.get("ours")
        rows.append(
            [
                *(r.call, r.layout, r.dtype, r.size),
                show(ours and ours / r.elements * 1e9, ".4f"),
                show(ours and r.gbps("ours"), ".1f"),
                *(show(r.ratios.get(peer), ".2f") for peer in peers),
                show(r.fraction("ordinary", "streaming"), ".0%"),
                show(r.fraction("copy"), ".0%"),
            ]
        )
    width = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(w) if i < 3 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, width, strict=True))
        )
        for row in rows
    ]
    return "\n".join(lines)


def summary(results: list[Result]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for peer in BASELINES:
        ratios = [(ratio, r) for r in results if (ratio := r.ratios.get(peer)) is not None]
        if ratios:
            found[peer] = spread(ratios)
    return found


def spread(ratios: list[tuple[float, Any]]) -> dict[str, Any]:
    """Of ratios and what has them, which has a name."""
    worst, cell = min(ratios, key=lambda pair: pair[0])
    return {
        "geometric_mean": mean(ratio for ratio, _ in ratios),
        "worst": worst,
        "worst_cell": cell.name,
        "cells": len(ratios),
    }


NAMED = 5  # worst cells


def compared(results: list[Result]) -> list[Result]:
    return [r for r in results if "torch" in r.ratios]


def worst_cells(results: list[Result]) -> list[str]:
    """The names of the slowest cells, and their ratios."""
    slowest = sorted(compared(results), key=lambda r: r.ratios["torch"])[:NAMED]
    return [f"{r.ratios['torch']:.2f}x {r.name}" for r in slowest]
