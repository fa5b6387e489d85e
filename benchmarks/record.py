# SPDX-License-Identifier: Apache-2.0
"""A record: the ratios and bandwidths of one suite. A file has a line of JSON about the run, one
with the columns, and one for each row of the table."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "benchmarks" / "records"
BANDWIDTH = "GB/s"
Measured = tuple[tuple[str, ...], str, dict[str, float]]  # labels, column, values by name


@dataclass(frozen=True)
class Record:
    """`rows`: the labels under "case", and a list of values, one for each column, under the name
    of a baseline (times faster than it) and under GB/s."""

    about: dict[str, Any]
    columns: list[str]
    rows: list[dict[str, Any]]

    def ratios(self, baseline: str = "torch") -> Iterator[tuple[float, tuple[str, ...], str]]:
        """Ratio, labels and column of every case."""
        for row in self.rows:
            for column, ratio in zip(self.columns, row.get(baseline, ()), strict=False):
                if ratio is not None:
                    yield ratio, tuple(row["case"]), column


class Case(NamedTuple):
    """Of the picture."""

    ratio: float  # times faster than torch
    name: str
    op: str
    column: tuple[str, str]  # group and dtype


def read(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(path: Path, lines: Iterable[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def load(name: str, folder: Path = RECORDS) -> Record:
    about, columns, *rows = read(folder / f"{name}.jsonl")
    return Record(about, columns, rows)


def save(name: str, found: Record, folder: Path) -> None:
    write(folder / f"{name}.jsonl", [found.about, found.columns, *found.rows])


def collect(about: dict[str, Any], measured: Iterable[Measured]) -> Record:
    """Of a case measured several times, the medians."""
    runs = defaultdict[tuple[str, ...], dict[str, dict[str, list[float]]]](dict)
    for labels, column, values in measured:
        for name, value in values.items():
            runs[labels].setdefault(name, {}).setdefault(column, []).append(value)
    columns = list(dict.fromkeys(c for row in runs.values() for v in row.values() for c in v))
    rows: list[dict[str, Any]] = []
    for labels, row in runs.items():
        medians = {n: {c: float(f"{median(x):.7g}") for c, x in v.items()} for n, v in row.items()}
        values_of = {n: [v.get(c) for c in columns] for n, v in medians.items()}
        rows.append({"case": list(labels)} | values_of)
    return Record(about, columns, rows)


def mean(ratios: Iterable[float]) -> float:
    """Geometric."""
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logarithms) / len(logarithms))


def markdown(head: list[str], rows: list[list[str]], left: int = 1) -> str:
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, rule, *rows])
