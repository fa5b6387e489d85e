# SPDX-License-Identifier: Apache-2.0
"""The bars that results are held to: against torch eager, and against the machine."""

from __future__ import annotations

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
        slow = [f"{r.op} {r.dtype} {r.size} {x:.2f}x" for x, r in plain if x < 0.95]
        found.append(none_of("cells below 0.95x torch", slow, len(plain)))
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
            f"{r.call} {r.dtype} {r.size} {x:.2f}x (alone {r.ratio_alone:.2f}x)"
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
    slow = [f"{r.call} {r.dtype} {r.size} {x:.2f}x" for x, r in own if x < 0.95]
    return [
        none_of("every set of attributes, cells below 0.95x torch", slow, len(own)),
        at_least("every set of attributes, geometric mean", mean(x for x, _ in own), 2.5),
    ]


def of_mixes(ratios: list[tuple[float, Result]]) -> list[Bar]:
    own = [(x, r) for x, r in ratios if r.layout == "mixes"]
    if not own:
        return []
    slow = [f"{r.call} {r.dtype} {r.size} {x:.2f}x" for x, r in own if x < 0.9]
    ordinary = {(r.op, r.dtype, r.size): r for _, r in own if r.mix == "ordinary"}
    few = [r for _, r in own if r.mix.startswith("0.1%")]
    times = [(r.seconds["ours"] / ordinary[r.op, r.dtype, r.size].seconds["ours"], r) for r in few]
    cliffs = [f"{r.call} {r.dtype} {r.size} {t:.1f} times" for t, r in times if t > 2]
    return [
        none_of("data with special values, cells below 0.9x torch", slow, len(own)),
        none_of("0.1% special values, cells slower than 2 times ordinary data", cliffs, len(few)),
    ]


def at_least(what: str, value: float, bar: float) -> Bar:
    return Bar(what, f"{value:.2f}x", f"at least {bar}x", value >= bar)


def at_least_share(what: str, share: float, bar: float) -> Bar:
    return Bar(what, f"{share:.0%}", f"at least {bar:.0%}", share >= bar)


def none_of(what: str, slow: list[str], cells: int) -> Bar:
    found = f"{len(slow)} of {cells}" + (f": {', '.join(slow)}" if slow else "")
    return Bar(what, found, "none", not slow)


def bars_text(found: list[Bar]) -> str:
    return "\n".join(
        f"{'met   ' if bar.met else 'UNMET '} {bar.what}: {bar.found} ({bar.wanted})"
        for bar in found
    )
