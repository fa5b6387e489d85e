# SPDX-License-Identifier: Apache-2.0
"""The bars that results are held to: against torch eager, and against the machine."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cells import BROADCAST, STRIDED
from report import Result, mean

VIEWS = (*STRIDED, *BROADCAST)


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
    strided = [(x, r) for x, r in ratios if r.layout in VIEWS]
    halves = [(x, r) for x, r in plain if r.dtype in ("bf16", "fp16") and r.size in ("64Ki", "1Mi")]
    found: list[Bar] = []
    if plain:
        found.append(none_below("cells below 0.95x torch", 0.95, plain))
        found.append(at_least("geometric mean against torch", mean(x for x, _ in plain), 2.5))
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
            f"{cell_of(r)} {rounded_down(x)}x (alone {r.ratio_alone:.2f}x)"
            for x, r in beside
            if x < 0.9 and r.ratio_alone is not None and r.ratio_alone >= 0.9
        ]
        what = "cells below 0.9x torch right after a torch operator, and not when alone"
        found.append(none_of(what, slow, len(beside)))
    return found + of_attributes(ratios) + of_mixes(ratios)


def of_attributes(ratios: list[tuple[float, Result]]) -> list[Bar]:
    own = [(x, r) for x, r in ratios if r.layout == "attributes"]
    if not own:
        return []
    return [
        none_below("every set of attributes, cells below 0.95x torch", 0.95, own),
        at_least("every set of attributes, geometric mean", mean(x for x, _ in own), 2.5),
    ]


def of_mixes(ratios: list[tuple[float, Result]]) -> list[Bar]:
    own = [(x, r) for x, r in ratios if r.layout == "mixes"]
    if not own:
        return []
    special = [(x, r) for x, r in own if r.mix != "ordinary"]
    times = times_of_ordinary([r for _, r in own])
    cliffs = [f"{cell_of(r)} {rounded_up(t)} times" for t, r in sorted(times, key=first) if t > 2]
    what = "0.1% special values, cells that take more than 2 times as long as ordinary data"
    return [
        none_below("data with special values, cells below 0.9x torch", 0.9, special),
        none_of(what, cliffs[::-1], len(times)),
    ]


def times_of_ordinary(mixed: list[Result]) -> list[tuple[float, Result]]:
    """How many times as long as ordinary data those with 0.1 % special values take."""
    usual = {(r.op, r.flags, r.dtype, r.size): r for r in mixed if r.mix == "ordinary"}
    return [
        (r.seconds["ours"] / usual[r.op, r.flags, r.dtype, r.size].seconds["ours"], r)
        for r in mixed
        if r.mix.startswith("0.1%")
    ]


def slow_ones(results: dict[int, Result]) -> list[int]:
    """Those below 0.95x torch, which is a bar or, with special values, close to one, and those that
    break the bar of 0.1 % special values."""
    number = {id(r): n for n, r in results.items()}
    mixed = [r for r in results.values() if r.layout == "mixes" and "torch" in r.ratios]
    cliffs = {number[id(r)] for t, r in times_of_ordinary(mixed) if t > 2}
    return [n for n, r in results.items() if n in cliffs or r.ratios.get("torch", 1) < 0.95]


def first(pair: tuple[float, Result]) -> float:
    return pair[0]


def cell_of(r: Result) -> str:
    return f"{r.call} {r.dtype} {r.size}"


def hundredths(ratio: float) -> float:
    """Without the error of the product, which would round 0.29 down to 0.28."""
    return round(100 * ratio, 6)


def rounded_down(ratio: float) -> str:
    """So that 0.8999 does not read 0.90 where 0.9 is the bar."""
    return f"{math.floor(hundredths(ratio)) / 100:.2f}"


def rounded_up(ratio: float) -> str:
    return f"{math.ceil(hundredths(ratio)) / 100:.2f}"


def at_least(what: str, value: float, bar: float) -> Bar:
    return Bar(what, f"{rounded_down(value)}x", f"at least {bar}x", value >= bar)


def at_least_share(what: str, share: float, bar: float) -> Bar:
    return Bar(what, f"{math.floor(hundredths(share))}%", f"at least {bar:.0%}", share >= bar)


NAMED = 8  # cells that a bar names, the slowest ones


def none_below(what: str, bar: float, ratios: list[tuple[float, Result]]) -> Bar:
    slow = [f"{cell_of(r)} {rounded_down(x)}x" for x, r in sorted(ratios, key=first) if x < bar]
    return none_of(what, slow, len(ratios))


def none_of(what: str, slow: list[str], cells: int) -> Bar:
    found = f"{len(slow)} of {cells}" + (f": {', '.join(slow[:NAMED])}" if slow else "")
    found += f" and {len(slow) - NAMED} more" if len(slow) > NAMED else ""
    return Bar(what, found, "none", not slow)


def bars_text(found: list[Bar]) -> str:
    return "\n".join(
        f"{'met   ' if bar.met else 'UNMET '} {bar.what}: {bar.found} ({bar.wanted})"
        for bar in found
    )
