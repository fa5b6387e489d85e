# SPDX-License-Identifier: Apache-2.0
"""What viewers (Perfetto, TensorBoard) ask of a file in the trace event format, checked strictly:
every event is complete, tracks have names, slices of one track nest, arrows lead forward in time
from one slice to another.
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


METADATA = {  # the only argument, and its type
    "process_name": ("name", str),
    "process_labels": ("labels", str),
    "process_sort_index": ("sort_index", int),
    "thread_name": ("name", str),
    "thread_sort_index": ("sort_index", int),
}


def check_events(events: list[Event]) -> None:
    for e in events:
        of_process = e["ph"] == "M" and e["name"].startswith("process_")
        assert {"ph", "name", "pid", *(["tid"] if not of_process else [])} <= e.keys(), e
        assert e["ph"] in {"X", "M", "s", "f", "i"}, e
        assert all(isinstance(e.get(key, 0), (int, str)) for key in ("pid", "tid", "id")), e
        assert isinstance(e.get("args", {}), dict), e
        if e["ph"] == "M":
            argument, kind = METADATA[e["name"]]
            assert isinstance(e["args"][argument], kind), e
        else:
            assert nanoseconds(e["ts"]) >= 0, e
        if e["ph"] == "X":
            assert nanoseconds(e["dur"]) >= 0, e
        if e["ph"] in "sf":
            assert {"cat", "id"} <= e.keys(), e
        if e["ph"] == "i":
            assert e.get("s", "t") in {"g", "p", "t"}, e


def check_names(events: list[Event]) -> None:
    """Each number that stands for a process or thread has a name."""
    named = {(e["name"], e["pid"], e.get("tid")) for e in events if e["ph"] == "M"}
    processes = {pid for name, pid, _ in named if name == "process_name"}
    for pid, tid in tracks(events):
        assert isinstance(pid, str) or pid in processes, pid
        assert isinstance(tid, str) or ("thread_name", pid, tid) in named, (pid, tid)


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
    """Returns the number of arrows. A viewer goes by time, then by the order of the file, and binds
    an end of an arrow to a slice that it has seen."""
    ends: dict[tuple[Any, ...], dict[str, list[Event]]] = defaultdict(lambda: defaultdict(list))
    seen: dict[tuple[Any, Any], list[Slice]] = defaultdict(list)
    for e in sorted((e for e in events if e["ph"] in "Xsf"), key=lambda e: nanoseconds(e["ts"])):
        at, slices = nanoseconds(e["ts"]), seen[e["pid"], e["tid"]]
        if e["ph"] == "X":
            slices.append((at, at + nanoseconds(e["dur"]), e["name"]))
            continue
        ends[e["cat"], e["name"], e["id"]][e["ph"]].append(e)
        assert any(end + rounding >= at for _, end, _ in slices), e
    for arrow, by_phase in ends.items():
        assert {ph: len(own) for ph, own in by_phase.items()} == {"s": 1, "f": 1}, arrow
        (begin,), (end,) = by_phase["s"], by_phase["f"]
        assert nanoseconds(begin["ts"]) <= nanoseconds(end["ts"]) + rounding, arrow
    return len(ends)


def check_trace(events: list[Event], rounding: int = 0) -> int:
    """Returns the number of arrows."""
    check_events(events)
    check_names(events)
    check_nesting(events, rounding)
    return check_arrows(events, rounding)


def check_order(events: list[Event]) -> None:
    """Names come first, then what they name, by time."""
    times = [-1 if e["ph"] == "M" else nanoseconds(e["ts"]) for e in events]
    assert times == sorted(times)
