# SPDX-License-Identifier: Apache-2.0
"""The timeline of a profile, for chrome://tracing and Perfetto."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from profile_records import Profile, micros

Interval = tuple[int, int]
Event = dict[str, Any]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    joined: list[Interval] = []
    for begin, end in sorted(intervals):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined


def without(intervals: Sequence[Interval], others: Sequence[Interval]) -> list[Interval]:
    """The parts of `intervals` outside `others`; both are unions."""
    left = []
    first = 0  # of `others` that may reach into what follows
    for begin, end in intervals:
        while first < len(others) and others[first][1] <= begin:
            first += 1
        at = first
        while at < len(others) and others[at][0] < end:
            if others[at][0] > begin:
                left.append((begin, others[at][0]))
            begin = max(begin, others[at][1])
            at += 1
        if begin < end:
            left.append((begin, end))
    return left


def slice_of(name: str, process: int, thread: int, begin: int, end: int, **args: Any) -> Event:
    return {
        "ph": "X", "name": name, "pid": process, "tid": thread, "ts": micros(begin),
        "dur": (end - begin) / 1000, "args": args,
    }  # fmt: skip


def describe(process: int, name: str, label: str, order: int) -> list[Event]:
    return [
        {"ph": "M", "name": kind, "pid": process, "tid": 0, "args": args}
        for kind, args in (
            ("process_name", {"name": name}),
            ("process_labels", {"labels": label}),
            ("process_sort_index", {"sort_index": order}),
        )
    ]


def name_thread(process: int, thread: int, name: str) -> Event:
    return {
        "ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": name},
    }  # fmt: skip


def submissions(profile: Profile, host: int) -> list[Event]:
    events = describe(host, "CANN", "CPU", 7)
    threads = {work.thread for work in profile.work} | {mark.thread for mark in profile.marks}
    events += [name_thread(host, thread, f"Thread {thread}") for thread in sorted(threads)]
    for work in profile.work:
        events.append(
            slice_of(
                f"AscendCL@{work.name}", host, work.thread, work.submitted, work.submitted_end,
                level="acl", **{"Thread Id": work.thread},
            )
        )  # fmt: skip
    for mark in profile.marks:
        events.append(slice_of(mark.message, host, mark.thread, mark.begin, mark.end, level="mark"))
    return events


def device_rows(profile: Profile, device: int, hardware: int, host: int) -> list[Event]:
    own = [work for work in profile.work if work.device == device]
    events = describe(hardware, "Ascend Hardware", f"NPU {device}", 13)
    streams = sorted({work.stream for work in own})
    events += [name_thread(hardware, stream, f"Stream {stream}") for stream in streams]
    for number, work in enumerate(own):
        arguments = {"Task Type": work.task_type, "Stream Id": work.stream, "Task Id": number}
        events.append(slice_of(work.kind, hardware, work.stream, work.begin, work.end, **arguments))
        arrow: dict[str, Any] = {
            "cat": "HostToDevice",
            "name": "HostToDevice",
            "id": f"{device}_{number}",
        }
        events.append(
            arrow | {"ph": "s", "pid": host, "tid": work.thread, "ts": micros(work.submitted)}
        )
        arrow |= {"ph": "f", "bp": "e", "pid": hardware, "tid": work.stream}
        events.append(arrow | {"ts": micros(work.begin)})
    return events


OVERLAP = ("Computing", "Communication", "Communication(Not Overlapped)", "Free")


def overlap(profile: Profile, device: int, process: int) -> list[Event]:
    """What the device does at each moment."""
    own = [work for work in profile.work if work.device == device and work.is_operator]
    computing = union((w.begin, w.end) for w in own if not w.is_communication)
    communication = union((w.begin, w.end) for w in own if w.is_communication)
    busy = union([*computing, *communication])
    free = without([(busy[0][0], busy[-1][1])], busy) if busy else []
    events = describe(process, "Overlap Analysis", f"NPU {device}", 15)
    rows = (computing, communication, without(communication, computing), free)
    for thread, (name, intervals) in enumerate(zip(OVERLAP, rows, strict=True)):
        events.append(name_thread(process, thread, name))
        events += [slice_of(name, process, thread, *interval) for interval in intervals]
    return events


def when(event: Event) -> int:
    """Names before what they name."""
    return int(event["ts"].replace(".", "")) if "ts" in event else -1


def timeline(profile: Profile) -> list[Event]:
    first = profile.process * 64  # apart from the rows of the process itself
    events = submissions(profile, first)
    for device in profile.devices:
        events += device_rows(profile, device, first + 1 + 2 * device, first)
        events += overlap(profile, device, first + 2 + 2 * device)
    return sorted(events, key=when)
