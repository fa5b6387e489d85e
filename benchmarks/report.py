# SPDX-License-Identifier: Apache-2.0
"""A benchmark result, and the table people read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass
class Result:
    op: str
    dtype: str
    size: str
    layout: str
    elements: int
    bytes: int  # least traffic
    seconds: dict[
        str, float
    ]  # median per call: ours, plan, torch, numpy, copy, ordinary, streaming
    differs: list[str]  # backends whose result is not ours

    def gbps(self, name: str) -> float:
        return self.bytes / self.seconds[name] / 1e9

    def ratio(self, to: str) -> float | None:
        """How many times faster we are."""
        return (
            self.seconds[to] / self.seconds["ours"] if {to, "ours"} <= self.seconds.keys() else None
        )

    def fraction(self, *names: str) -> float | None:
        """Our bandwidth as a share of the best of these."""
        times = [self.seconds[n] for n in names if n in self.seconds]
        return min(times) / self.seconds["ours"] if times and "ours" in self.seconds else None


def show(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def table(results: list[Result]) -> str:
    head = [
        "op",
        "layout",
        "dtype",
        "size",
        "ns/element",
        "GB/s",
        "x torch",
        "x numpy",
        "of loop",
        "of copy",
    ]
    rows = [head]
    for r in results:
        ours = r.seconds.get("ours")
        rows.append(
            [
                *(r.op, r.layout, r.dtype, r.size),
                show(ours and ours / r.elements * 1e9, ".4f"),
                show(ours and r.gbps("ours"), ".1f"),
                show(r.ratio("torch"), ".2f"),
                show(r.ratio("numpy"), ".2f"),
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
    for peer in ("torch", "numpy"):
        ratios = [(ratio, r) for r in results if (ratio := r.ratio(peer)) is not None]
        if ratios:
            worst, cell = min(ratios, key=lambda pair: pair[0])
            found[peer] = {
                "geometric_mean": math.exp(sum(math.log(x) for x, _ in ratios) / len(ratios)),
                "worst": worst,
                "worst_cell": f"{cell.op} {cell.layout} {cell.dtype} {cell.size}",
                "cells": len(ratios),
            }
    return found
