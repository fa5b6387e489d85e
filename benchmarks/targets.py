# SPDX-License-Identifier: Apache-2.0
"""The targets of the project, and whether a record meets them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from record import BANDWIDTH, Record, mean

NAMED = 8  # of the cases that miss a target, the worst
LARGEST = "1x128x512x512/32"
Case = tuple[float, tuple[str, ...], str]  # value, labels, column


@dataclass(frozen=True)
class Verdict:
    what: str
    found: str
    wanted: str
    met: bool


def verdicts(name: str, record: Record) -> list[Verdict]:
    cases = list(record.ratios())
    if name == "elementwise":
        return [at_least("geometric mean", 2.4, cases), none_below("cases below", 0.95, cases)]
    if name == "group_norm":
        return of_group_norm(record)
    if name == "attributes":
        first = {row["case"][0]: row["case"][1] for row in reversed(record.rows)}
        usual = [c for c in cases if c[1][1] == first[c[1][0]] or positive(c[1][1])]
        other = [c for c in cases if c not in usual]
        return [
            none_below("defaults and attributes from 0.001 to 10, cases below", 0.95, usual),
            none_below("other attributes, cases below", 0.5, other),
        ]
    if name == "special_values":
        times = times_of_ordinary(record)
        return [
            none_below("0.1% special values, cases below", 0.6,
                       [c for c in cases if c[1][2].startswith("0.1%")]),
            none_above("0.1% special values, times as long as ordinary data", 4,
                       [c for c in times if c[1][2].startswith("0.1%")]),
            none_above("20% special values, times as long as ordinary data", 10,
                       [c for c in times if c[1][2].startswith("20%")]),
        ]  # fmt: skip
    return []


def of_group_norm(record: Record) -> list[Verdict]:
    found = []
    cases, shares = list(record.ratios()), list(record.ratios("streaming"))
    for op in dict.fromkeys(labels[0] for _, labels, _ in cases):
        own = [c for c in cases if c[1][0] == op]
        found.append(at_least(f"{op}, geometric mean", 3, own))
        found.append(none_below(f"{op}, cases below", 1, own))
        for share in [s for s, *case in shares if case == [(op, LARGEST), "fp32"]]:
            what = f"{op} {LARGEST} fp32, share of the streaming loop"
            found.append(Verdict(what, f"{share:.1%}", "at least 60%", share >= 0.6))
    return found


def positive(attributes: str) -> bool:
    """Every number is ordinary and positive, as those of SELU and CELU."""
    values = [word.partition("=")[2] for word in attributes.split()]
    numbers = [float(v) for v in values if v not in ("True", "False", "None")]
    return all(1e-3 <= v <= 10 for v in numbers)


def times_of_ordinary(record: Record) -> list[Case]:
    """How many times as long as ordinary data those with special values take."""
    bandwidths = list(record.ratios(BANDWIDTH))
    usual = {(k[:2], c): v for v, k, c in bandwidths if k[2] == "ordinary"}
    return [(usual[k[:2], c] / v, k, c) for v, k, c in bandwidths if (k[:2], c) in usual]


def at_least(what: str, wanted: float, cases: Iterable[Case]) -> Verdict:
    value = mean(ratio for ratio, *_ in cases)
    return Verdict(what, f"{value:.3f}x", f"at least {wanted:g}x", value >= wanted)


def none_below(what: str, limit: float, cases: list[Case]) -> Verdict:
    slow = sorted(c for c in cases if c[0] < limit)
    return _none(f"{what} {limit:g}x torch", slow, len(cases))


def none_above(what: str, limit: float, cases: list[Case]) -> Verdict:
    slow = sorted((c for c in cases if c[0] > limit), reverse=True)
    return _none(f"{what}, cases above {limit:g}x", slow, len(cases))


def _none(what: str, cases: list[Case], total: int) -> Verdict:
    named = [f"{' '.join(labels)} {column} {value:.3f}x" for value, labels, column in cases]
    more = [f"{len(named) - NAMED} more"] * (len(named) > NAMED)
    found = f"{len(cases)} of {total}" + ": " * bool(named) + ", ".join(named[:NAMED] + more)
    return Verdict(what, found, "none", not cases)
