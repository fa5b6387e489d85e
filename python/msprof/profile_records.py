# SPDX-License-Identifier: Apache-2.0
"""The records of a profile, as core/acl/profile_records.cpp writes them: nanoseconds of the raw
monotonic clock, read as those of the wall clock.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


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


def micros(nanoseconds: int) -> str:
    """Exact: a double has no nanoseconds of the wall clock."""
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"
