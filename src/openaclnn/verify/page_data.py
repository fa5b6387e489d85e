# SPDX-License-Identifier: Apache-2.0
"""The results of a run as data for the page: short, each thing once.

Thousands of cases share a few hundred profiles, because all instruction sets make the same bits. So
profiles, attribute sets and words are tables, and results point into them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..reference.compare import LABELS
from ..reference.comparison import number, pair
from ..rows.catalogue import attributes_text
from .cases import Case
from .profile import Profile
from .report import Report, explanation
from .runner import FAILED, LEFT_OUT, PASSED, Result

STATUS = {PASSED: 0, FAILED: 1, LEFT_OUT: 2}


class Table:
    """Values in the order of their first appearance, and the place of each."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._places: dict[Any, int] = {}

    def place(self, key: Any, value: Any) -> int:
        if key not in self._places:
            self._places[key] = len(self.rows)
            self.rows.append(value)
        return self._places[key]


def page_data(report: Report) -> dict[str, Any]:
    """What the scripts in report_page read."""
    profiles = Table()
    groups = []
    for (op, dtype), results in cells(report).items():
        cases: dict[int, list[Result]] = {}
        for r in results:
            cases.setdefault(id(r.case), []).append(r)
        made = [_case(report, same, profiles) for same in cases.values()]
        for own, one in zip(numbers([c["id"] for c in made]), made, strict=True):
            one["number"] = own
        groups.append({"op": op, "dtype": dtype, "cases": made})
    return {
        "schema": "openaclnn-verify-page-1",
        "providers": list(report.providers),
        "commands": {provider: report.command_of(provider) for provider in report.providers},
        "labels": list(LABELS),
        "operators": {
            name: {"name": op.name, "formula": op.formula}
            for name, op in {r.case.op.python: r.case.op for r in report.results}.items()
        },
        "groups": groups,
        "profiles": profiles.rows,
    }


def numbers(ids: Sequence[str]) -> list[int]:
    """The numbers of the cases of a cell: those at the end of their names, if all have one, so that
    case 13 is elu/FLOAT16/13; otherwise their positions."""
    found = [re.fullmatch(r"[^/]+/[^/]+/(\d+)", name) for name in ids]
    return [int(m[1]) if m and all(found) else i for i, m in enumerate(found)]


def cells(report: Report) -> dict[tuple[str, str], list[Result]]:
    """The results of each operator in each dtype."""
    found: dict[tuple[str, str], list[Result]] = {}
    for r in report.results:
        found.setdefault((r.case.op.python, r.case.dtype), []).append(r)
    return found


def _case(report: Report, results: Sequence[Result], profiles: Table) -> dict[str, Any]:
    case = results[0].case
    same: dict[tuple[Any, ...], dict[str, Any]] = {}
    for r in results:
        key = (r.status, r.kind, r.message, repr(r.error), repr(r.worst), repr(r.profiles))
        if key not in same:
            same[key] = {"by": [], **_result(r, profiles)}
        same[key]["by"].append(report.providers.index(r.provider))
    return {**_described(case), "results": list(same.values())}


def _described(case: Case) -> dict[str, Any]:
    shapes = " ".join(str(list(s)) for s in dict.fromkeys(case.shapes))
    attributes = attributes_text(case.op, case.attributes)
    data = {"id": case.id, "shape": shapes, "layout": case.layout_text, "values": case.values}
    if attributes:
        data["attributes"] = attributes
    notes = [f"companions {case.companion}"] if case.companion else []
    notes += [f"output {case.out}"] if case.out else []
    notes += [f"output in the memory of {case.alias}"] if case.alias else []
    notes += [f"{case.mistake}: the call must be refused"] if case.mistake else []
    return data | ({"note": ", ".join(notes)} if notes else {})


def _result(r: Result, profiles: Table) -> dict[str, Any]:
    data: dict[str, Any] = {"status": STATUS[r.status]}
    if r.sentence:
        data["sentence"] = "; ".join(filter(None, (r.message, explanation(r))))
    if r.kind:
        data["kind"] = r.kind
    if r.unit:
        data |= {"error": _short(r.error), "unit": r.unit}
    if r.worst:
        data["worst"] = [
            [
                list(e.index),
                {name: pair(*x) for name, x in e.inputs.items()},
                pair(*e.nearest),
                pair(*e.got),
                _short(e.ulp),
            ]
            for e in r.worst
        ]
    if r.profiles:
        data["profiles"] = [profiles.place(repr(p), _profile(p)) for p in r.profiles]
    return data


def _profile(p: Profile) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": p.name,
        "unit": p.unit,
        "limit": p.limit,
        "counts": [p.histogram.get(label, 0) for label in LABELS],
        "curves": {
            name: [c.dtype, c.bins, None if c.nan is None else _short(c.nan)]
            for name, c in p.curves.items()
        },
    }
    return data | ({"mismatches": dict(p.mismatches)} if p.mismatches else {})


def _short(value: float) -> Any:
    return number(float(f"{value:.5g}"))
