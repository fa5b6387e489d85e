# SPDX-License-Identifier: Apache-2.0
"""A result of group_norm.py, the table people read, and the bars that results are held to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from report import mean, show, spread
from report_bars import Bar, at_least, at_least_share, none_of

FORWARD, GRADIENT = "group_norm_swish", "group_norm_swish_grad"
LARGEST = "1x128x512x512/32"
LARGEST_BARS: dict[str, dict[str, float]] = {
    FORWARD: {},
    GRADIENT: {"torch": 3.0, "recomputed": 6.0},
}
# torch with the output of the normalisation kept, if that helps; without; fused by its compiler
BASELINES = ("torch", "recomputed", "compiled")


@dataclass
class Cell:
    op: str
    shape: str
    dtype: str
    layout: str
    bytes: int  # least traffic: each large tensor once
    workspace: int
    seconds: dict[str, float]  # streaming: what the hand-written loop takes for as many bytes
    ratios: dict[str, float]  # how many times as long as ours each took
    differs: list[str]

    @property
    def name(self) -> str:
        return f"{self.shape} {self.dtype} {self.layout}"

    @property
    def gbps(self) -> float:
        return self.bytes / self.seconds["ours"] / 1e9


def sizes_of(shape: str) -> tuple[tuple[int, ...], int]:
    dims, groups = shape.split("/")
    return tuple(map(int, dims.split("x"))), int(groups)


def compared(cells: list[Cell], op: str, peer: str) -> list[tuple[float, Cell]]:
    return [(c.ratios[peer], c) for c in cells if c.op == op and peer in c.ratios]


def summary(cells: list[Cell]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for op in (FORWARD, GRADIENT):
        for peer in BASELINES:
            if ratios := compared(cells, op, peer):
                found[f"{op} / {peer}"] = spread(ratios)
    return found


def bars(cells: list[Cell]) -> list[Bar]:
    """Those that these cells, but for channels last, speak of."""
    plain = [c for c in cells if c.layout == "contiguous"]
    found = []
    for op, peer, bar in (
        (GRADIENT, "torch", 2.0),
        (GRADIENT, "recomputed", 4.0),
        (FORWARD, "torch", 1.5),
    ):
        if ratios := compared(plain, op, peer):
            what = f"{op} against torch{', y recomputed' if peer == 'recomputed' else ''}"
            found.append(at_least(f"{what}, geometric mean", mean(r for r, _ in ratios), bar))
    if ratios := compared(plain, GRADIENT, "torch"):
        slow = [f"{c.shape} {c.dtype} {r:.2f}x" for r, c in ratios if r < 1]
        found.append(none_of(f"{GRADIENT}, cells slower than torch", slow, len(ratios)))
    for cell in (c for c in plain if (c.shape, c.dtype) == (LARGEST, "fp32")):
        what = f"{cell.op} {LARGEST} fp32"
        for peer, bar in LARGEST_BARS[cell.op].items():
            if peer in cell.ratios:
                found.append(at_least(f"{what}, times {peer}", cell.ratios[peer], bar))
        if (share := cell.ratios.get("streaming")) is not None:
            found.append(at_least_share(f"{what}, share of the streaming loop", share, 0.6))
    if cells:
        room = max(c.workspace for c in cells)
        what = "largest workspace, which is all the memory that is taken"
        found.append(Bar(what, f"{room / 1024:.0f} KiB", "below 1 MiB", room < 1 << 20))
    return found


def table(cells: list[Cell]) -> Iterator[str]:
    yield (
        f"{'op':22} {'shape':20} {'dtype':5} {'layout':13} {'us':>9} {'ns/el':>7} {'GB/s':>6} "
        f"{'of stream':>9} " + " ".join(f"{'x ' + h:>12}" for h in BASELINES)
    )
    for c in cells:
        dims, _ = sizes_of(c.shape)
        share = show(c.ratios.get("streaming"), ".0%")
        ratios = [show(c.ratios.get(h), ".2f") for h in BASELINES]
        time = c.seconds["ours"]
        yield (
            f"{c.op:22} {c.shape:20} {c.dtype:5} {c.layout:13} {time * 1e6:9.1f} "
            f"{time / math.prod(dims) * 1e9:7.3f} {c.gbps:6.1f} {share:>9} "
            + " ".join(f"{r:>12}" for r in ratios)
        )
