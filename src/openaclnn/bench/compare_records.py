# SPDX-License-Identifier: Apache-2.0
"""Two records of `openaclnn bench`, row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..report.text_table import Paint, columns
from ..rows.catalogue import SHORT
from .cases import text
from .machine import busy
from .report import duration


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows that both have: how many times as fast the new one is, by our times and by our times
    as shares of the baseline's or of the copy's, which a slow machine slows too. They are the same
    where the quartiles overlap."""
    if old["attributes"] != new["attributes"] or old["op"] != new["op"]:
        raise ValueError("both files must measure one operator with the same attributes")
    before = {(r["dtype"], tuple(r["shape"])): r for r in old["rows"]}
    found = []
    for row in new["rows"]:
        past = before.get((row["dtype"], tuple(row["shape"])))
        if past is None:
            continue
        a, b = past["seconds"]["ours"], row["seconds"]["ours"]
        disjoint = a["low"] > b["high"] or b["low"] > a["high"]
        faster = a["median"] / b["median"]
        beside = next((n for n in row["ratios"] if n != "ours" and n in past["ratios"]), None)
        found.append(
            {
                "dtype": row["dtype"],
                "shape": row["shape"],
                "before": a["median"],
                "after": b["median"],
                "times_faster": faster,
                "beside": beside,
                "times_faster_beside": (
                    row["ratios"][beside] / past["ratios"][beside] if beside else None
                ),
                "verdict": ("faster" if faster > 1 else "slower") if disjoint else "same",
            }
        )
    if not found:
        raise ValueError("the files have no dtype and shape in common")
    return found


def notes(files: Sequence[str], records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which of the records were measured on a busy machine."""
    loads = (record.get("about", {}).get("load_average_before", 0.0) for record in records)
    found = (busy(load, f" in {file}") for file, load in zip(files, loads, strict=True))
    return list(filter(None, found))


def _compared_cells(found: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    cells = [
        ["dtype", "shape", "before", "after", "times faster", "beside the baseline", "verdict"]
    ]
    for one in found:
        beside = one["beside"]
        share = f"{one['times_faster_beside']:.2f} ({beside})" if beside else "–"
        cells.append(
            [
                SHORT[one["dtype"]],
                text(one["shape"]),
                duration(one["before"]),
                duration(one["after"]),
                f"{one['times_faster']:.2f}",
                share,
                one["verdict"],
            ]
        )
    return cells


def compared_lines(found: Sequence[Mapping[str, Any]], paint: Paint) -> list[str]:
    shown = columns(_compared_cells(found), "llrrrrl")
    styles = {"faster": ("green",), "slower": ("red",), "same": ()}
    return [
        paint(shown[0], "dim"),
        *(paint(x, *styles[one["verdict"]]) for x, one in zip(shown[1:], found, strict=True)),
    ]
