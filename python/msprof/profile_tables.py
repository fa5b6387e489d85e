# SPDX-License-Identifier: Apache-2.0
"""The tables of a profile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from profile_records import Profile, micros


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
