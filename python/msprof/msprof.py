# SPDX-License-Identifier: Apache-2.0
"""`msprof --export=on --output=DIR`: tables and a timeline of a profile that aclprof* recorded.

DIR is a folder PROF_* or one that holds such folders. The files are written into
PROF_*/mindstudio_profiler_output; docs/howto/npu_device.md lists them. Times of the records are
nanoseconds of the raw monotonic clock, times of the files microseconds of the wall clock.
"""

from __future__ import annotations

import argparse
import ast
import csv
import json
import re
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = re.compile(r"PROF_\d+_\d+_[0-9a-zA-Z]+")
OUTPUT = "mindstudio_profiler_output"
# torch_npu's analyser looks for tables every 0.1 s, and gives up if its other tasks end before it
# has seen one: they wait for this process.
ANALYSER_POLLS = 0.3  # seconds

Interval = tuple[int, int]
Event = dict[str, Any]


@dataclass
class Work:
    """One piece of work of a stream."""

    device: int
    begin: int
    end: int
    stream: int
    submitted: int
    submitted_end: int
    thread: int
    name: str

    @property
    def is_operator(self) -> bool:
        return not self.name.startswith("aclrt")

    @property
    def is_communication(self) -> bool:
        return self.name.startswith("Hccl")

    @property
    def kind(self) -> str:
        """The type of the name, without the prefix of the interface."""
        return self.name.removeprefix("aclnn").removeprefix("aclrt")

    @property
    def task_type(self) -> str:
        if self.is_communication:
            return "COMMUNICATION"
        if self.is_operator:
            return "AI_CPU"  # a CPU computes
        return {"aclrtMemcpyAsync": "MEMCPY_ASYNC", "aclrtStreamWaitEvent": "EVENT_WAIT"}.get(
            self.name, "OTHER"
        )


@dataclass
class Mark:
    begin: int
    end: int
    thread: int
    message: str


@dataclass
class Profile:
    process: int
    devices: list[int]
    work: list[Work]
    marks: list[Mark]


def lines(path: Path, fields: int) -> Iterable[list[str]]:
    if path.exists():
        with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
            for line in file:
                yield line.rstrip("\n").split("\t", fields - 1)


def read(folder: Path) -> Profile:
    """The records, with times of the wall clock in nanoseconds."""
    start = ast.literal_eval((folder / "host" / "start_info").read_text(encoding="utf-8"))
    wall = int(start["collectionTimeBegin"].replace(".", ""))
    shift = wall - int(start["clockMonotonicRaw"])
    profile = Profile(int(start["pid"]), [], [], [])
    for path in sorted(folder.glob("device_*")):
        device = int(path.name.removeprefix("device_"))
        profile.devices.append(device)
        for *numbers, name in lines(path / "data" / "work.tsv", 7):
            begin, end, stream, submitted, submitted_end, thread = map(int, numbers)
            profile.work.append(
                Work(
                    device, begin + shift, end + shift, stream, submitted + shift,
                    submitted_end + shift, thread, name,
                )
            )  # fmt: skip
    for begin_, end_, thread_, message in lines(folder / "host" / "data" / "marks.tsv", 4):
        profile.marks.append(Mark(int(begin_) + shift, int(end_) + shift, int(thread_), message))
    profile.work.sort(key=lambda work: (work.device, work.begin))
    profile.marks.sort(key=lambda mark: mark.begin)
    return profile


# ---- times ----


def micros(nanoseconds: int) -> str:
    """Exact: a double has no nanoseconds of the wall clock."""
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"


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
    for begin, end in intervals:
        for other_begin, other_end in others:
            if other_end <= begin or other_begin >= end:
                continue
            if other_begin > begin:
                left.append((begin, other_begin))
            begin = max(begin, other_end)
        if begin < end:
            left.append((begin, end))
    return left


# ---- the timeline ----


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
        arrow = {"cat": "HostToDevice", "name": "HostToDevice", "id": f"{device}_{number}"}
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


def timeline(profile: Profile) -> list[Event]:
    first = profile.process * 64  # apart from the rows of the process itself
    events = submissions(profile, first)
    for device in profile.devices:
        events += device_rows(profile, device, first + 1 + 2 * device, first)
        events += overlap(profile, device, first + 2 + 2 * device)
    return events


# ---- tables ----


def figures(durations: Sequence[int], all_of_them: int) -> list[str]:
    total = sum(durations)
    mean = total // len(durations)
    share = f"{100 * total / max(all_of_them, 1):.3f}"
    return [micros(total), str(len(durations)), micros(min(durations)), micros(mean),
            micros(max(durations)), share]  # fmt: skip


def by_name(
    named: Iterable[tuple[tuple[Any, ...], int]],
) -> list[tuple[tuple[Any, ...], list[int]]]:
    """The durations of each key, the longest total first."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for key, duration in named:
        found.setdefault(key, []).append(duration)
    return sorted(found.items(), key=lambda item: -sum(item[1]))


def operators(profile: Profile) -> Iterable[list[Any]]:
    ends: dict[tuple[int, int], int] = {}
    for number, work in enumerate(profile.work):
        wait = work.begin - ends.get((work.device, work.stream), work.begin)
        ends[work.device, work.stream] = work.end
        if work.is_operator:
            times = (work.begin, work.end - work.begin, max(wait, 0))
            numbers = [work.device, number, work.stream]
            yield [*numbers, work.name, work.kind, work.task_type, *map(micros, times), 0]


def operator_figures(profile: Profile) -> Iterable[list[Any]]:
    own = [work for work in profile.work if work.is_operator]
    total = sum(work.end - work.begin for work in own)
    keyed = (((w.device, w.kind, w.task_type), w.end - w.begin) for w in own)
    for (device, kind, task_type), durations in by_name(keyed):
        all_, count, *rest = figures(durations, total)
        yield [device, kind, task_type, count, all_, *rest]


def call_figures(profile: Profile) -> Iterable[list[Any]]:
    total = sum(work.submitted_end - work.submitted for work in profile.work)
    keyed = ((("acl", w.name), w.submitted_end - w.submitted) for w in profile.work)
    for (level, name), durations in by_name(keyed):
        yield [level, name, *figures(durations, total)]


def tasks(profile: Profile) -> Iterable[list[Any]]:
    for number, work in enumerate(profile.work):
        yield [work.device, work.kind, work.task_type, work.stream, number,
               micros(work.end - work.begin), micros(work.begin), micros(work.end)]  # fmt: skip


TABLES = {
    "op_summary": (
        "Device_id,Task ID,Stream ID,Op Name,OP Type,Task Type,Task Start Time(us),"
        "Task Duration(us),Task Wait Time(us),Block Num",
        operators,
    ),
    "op_statistic": (
        "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),"
        "Ratio(%)",
        operator_figures,
    ),
    "api_statistic": (
        "Level,API Name,Time(us),Count,Min(us),Avg(us),Max(us),Ratio(%)",
        call_figures,
    ),
    "task_time": (
        "Device_id,kernel_name,kernel_type,stream_id,task_id,task_time(us),task_start(us),"
        "task_stop(us)",
        tasks,
    ),
}


# ---- the command ----


def export(folder: Path) -> None:
    profile = read(folder)
    output = folder / OUTPUT
    output.mkdir(exist_ok=True)
    stamp = time.strftime("%Y%m%d%H%M%S")
    text = json.dumps(timeline(profile))
    (output / f"msprof_{stamp}.json").write_text(text, encoding="utf-8")
    for name, (header, rows) in TABLES.items():
        with (output / f"{name}_{stamp}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(header.split(","))
            writer.writerows(rows(profile))


def refuse(sentence: str) -> int:
    print(f"msprof: {sentence}", file=sys.stderr)
    return 2


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="msprof", description=__doc__, allow_abbrev=False)
    parser.add_argument("--export", choices=("on", "off"), default="off")
    parser.add_argument("--analyze", choices=("on", "off"), default="off")
    parser.add_argument("--output", type=Path)
    given, rest = parser.parse_known_args(words)
    if rest:
        return refuse(f"{rest[0]} is not supported; record with aclprof* or torch_npu.profiler")
    if given.output is None or "on" not in (given.export, given.analyze):
        return refuse("name what to do: --export=on --output=DIR")
    if given.output.is_dir() and FOLDER.match(given.output.resolve().name):
        folders = [given.output]
    else:
        folders = [path for path in given.output.glob("PROF_*") if FOLDER.match(path.name)]
    if not folders:
        return refuse(f"{given.output} is not a folder PROF_* and holds none")
    if given.export == "on":  # there is nothing to analyse: collectives have no transfers here
        for folder in sorted(folders):
            export(folder)
        time.sleep(ANALYSER_POLLS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
