# SPDX-License-Identifier: Apache-2.0
"""What viewers ask of a file in the trace event format, checked strictly: every event is complete,
slices of one track nest, arrows lead forward in time from one slice to another.
"""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import Any

Event = dict[str, Any]
Slice = tuple[int, int, str]  # begin, end, name


def nanoseconds(value: str | float) -> int:
    """Of microseconds; files have them as numbers or, where a double is too coarse, as text."""
    return round(Decimal(value) * 1000)


def tracks(events: list[Event]) -> dict[tuple[Any, Any], list[Slice]]:
    found: dict[tuple[Any, Any], list[Slice]] = defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            begin = nanoseconds(e["ts"])
            found[e["pid"], e["tid"]].append((begin, begin + nanoseconds(e["dur"]), e["name"]))
    for slices in found.values():
        slices.sort(key=lambda s: (s[0], -s[1]))
    return found


def check_events(events: list[Event]) -> None:
    for e in events:
        of_process = e["ph"] == "M" and e["name"].startswith("process_")
        assert {"ph", "name", "pid", *(["tid"] if not of_process else [])} <= e.keys(), e
        assert e["ph"] in {"X", "M", "s", "f", "i"}, e
        if e["ph"] == "M":
            assert e["args"], e
        else:
            assert nanoseconds(e["ts"]) >= 0, e
        if e["ph"] == "X":
            assert nanoseconds(e["dur"]) >= 0, e


def check_nesting(events: list[Event], rounding: int = 0) -> None:
    """`rounding`: nanoseconds by which times in the file may be off."""
    for track, slices in tracks(events).items():
        open_: list[Slice] = []
        for own in slices:
            while open_ and open_[-1][1] <= own[0] + rounding:
                open_.pop()
            assert not open_ or own[1] <= open_[-1][1] + rounding, (track, own, open_[-1])
            open_.append(own)


def check_arrows(events: list[Event], rounding: int = 0) -> int:
    """Returns the number of arrows."""
    ends: dict[tuple[Any, ...], dict[str, list[Event]]] = defaultdict(lambda: defaultdict(list))
    for e in events:
        if e["ph"] in "sf":
            ends[e["cat"], e["name"], e["id"]][e["ph"]].append(e)
    found = tracks(events)
    for arrow, by_phase in ends.items():
        assert {ph: len(own) for ph, own in by_phase.items()} == {"s": 1, "f": 1}, arrow
        (begin,), (end,) = by_phase["s"], by_phase["f"]
        assert nanoseconds(begin["ts"]) <= nanoseconds(end["ts"]) + rounding, arrow
        for e in (begin, end):
            at = nanoseconds(e["ts"])
            around = found[e["pid"], e["tid"]]
            assert any(b - rounding <= at <= c + rounding for b, c, _ in around), (arrow, e)
    return len(ends)


def check_trace(events: list[Event], rounding: int = 0) -> int:
    """Returns the number of arrows."""
    check_events(events)
    check_nesting(events, rounding)
    return check_arrows(events, rounding)


def check_order(events: list[Event]) -> None:
    """Names come first, then what they name, by time."""
    times = [-1 if e["ph"] == "M" else nanoseconds(e["ts"]) for e in events]
    assert times == sorted(times)
