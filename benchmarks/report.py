# SPDX-License-Identifier: Apache-2.0
"""A benchmark result, the table people read, and the bars that results are held to."""

from __future__ import annotations

import math
from collections.abc import Iterable
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
    # median per call: ours, plan, torch, compiled, jax, numpy; copy, ordinary, streaming
    seconds: dict[str, float]
    ratios: dict[str, float]  # how many times as long as ours each took
    differs: list[str]  # backends whose result is not ours
    flags: str = ""  # attributes that differ from the first set: is_result=True

    @property
    def call(self) -> str:
        return f"{self.op} {self.flags}".rstrip()

    @property
    def name(self) -> str:
        return f"{self.call} {self.layout} {self.dtype} {self.size}"

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


PEERS = ("torch", "compiled", "jax", "numpy")


def mean(ratios: Iterable[float]) -> float:
    """Geometric."""
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logarithms) / len(logarithms))


def show(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def table(results: list[Result]) -> str:
    peers = [peer for peer in PEERS if any(peer in r.seconds for r in results)]
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
    for peer in PEERS:
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


# ---- the bars: against torch eager, and against the machine ----


@dataclass
class Bar:
    what: str
    found: str
    wanted: str
    met: bool


def bars(results: list[Result]) -> list[Bar]:
    """Those that these results speak of."""
    ratios = [(ratio, r) for r in results if (ratio := r.ratios.get("torch")) is not None]
    plain = [(x, r) for x, r in ratios if r.layout == "contiguous"]
    beside = [(x, r) for x, r in ratios if r.layout == "after_torch"]
    strided = [(x, r) for x, r in ratios if r.layout not in ("contiguous", "after_torch")]
    halves = [(x, r) for x, r in plain if r.dtype in ("bf16", "fp16") and r.size in ("64Ki", "1Mi")]
    found: list[Bar] = []
    if plain:
        slow = [f"{r.op} {r.dtype} {r.size} {x:.2f}x" for x, r in plain if x < 0.95]
        found.append(none_of("cells below 0.95x torch", slow, len(plain)))
        found.append(at_least("geometric mean against torch", mean(x for x, _ in plain), 1.7))
    for op in ("logit", "logit_grad", "elu_backward"):
        own = [(x, r) for x, r in halves if r.op == op]
        if own:
            worst, cell = min(own, key=lambda pair: pair[0])
            what = f"{op}, half types, 64 Ki and 1 Mi, worst ({cell.dtype} {cell.size})"
            found.append(at_least(what, worst, 2.0))
    large = [
        (share, r)
        for r in results
        if (r.layout, r.dtype, r.size) == ("contiguous", "fp32", "64Mi")
        and (share := r.fraction("streaming")) is not None
    ]
    if large:
        share, cell = min(large, key=lambda pair: pair[0])
        what = f"share of the streaming loop, fp32 64 Mi, worst ({cell.op})"
        found.append(at_least_share(what, share, 0.9))
    if strided:
        what = "geometric mean against torch, broadcast and transposed"
        found.append(at_least(what, mean(x for x, _ in strided), 1.5))
    if beside:
        slow = [
            f"{r.call} {r.dtype} {r.size} {x:.2f}x (alone {r.ratio_alone:.2f}x)"
            for x, r in beside
            if x < 0.9 and r.ratio_alone is not None and r.ratio_alone >= 0.9
        ]
        what = "cells below 0.9x torch right after a torch operator, and not when alone"
        found.append(none_of(what, slow, len(beside)))
    return found


def at_least(what: str, value: float, bar: float) -> Bar:
    return Bar(what, f"{value:.2f}x", f"at least {bar}x", value >= bar)


def at_least_share(what: str, share: float, bar: float) -> Bar:
    return Bar(what, f"{share:.0%}", f"at least {bar:.0%}", share >= bar)


def none_of(what: str, slow: list[str], cells: int) -> Bar:
    told = f"{len(slow)} of {cells}" + (f": {', '.join(slow)}" if slow else "")
    return Bar(what, told, "none", not slow)


def bars_text(found: list[Bar]) -> str:
    return "\n".join(
        f"{'met   ' if bar.met else 'UNMET '} {bar.what}: {bar.found} ({bar.wanted})"
        for bar in found
    )
