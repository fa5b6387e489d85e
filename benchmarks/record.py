# SPDX-License-Identifier: Apache-2.0
"""A record: the ratios and bandwidths of one suite, a line for each row of its table."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

RECORDS = Path(__file__).resolve().parent / "records"
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


def load(name: str, folder: Path = RECORDS) -> Record:
    return Record(**json.loads((folder / f"{name}.json").read_text()))


def collect(about: dict[str, Any], measured: Iterable[Measured]) -> Record:
    """Of a case measured several times, the medians."""
    runs: dict[tuple[str, ...], dict[str, dict[str, list[float]]]] = {}
    for labels, column, values in measured:
        for name, value in values.items():
            of_row = runs.setdefault(labels, {})
            of_row.setdefault(name, {}).setdefault(column, []).append(value)
    columns = list(dict.fromkeys(c for row in runs.values() for v in row.values() for c in v))
    rows = [
        {"case": list(labels)}
        | {
            name: [digits(median(v[c])) if c in v else None for c in columns]
            for name, v in row.items()
        }
        for labels, row in runs.items()
    ]
    return Record(about, columns, rows)


def digits(value: float) -> float:
    return float(f"{value:.7g}")


def write(path: Path, document: dict[str, Any]) -> None:
    """JSON with one line for each fact and each row."""
    parts = []
    for key, value in document.items():
        if isinstance(value, dict):
            inside = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items())
            parts.append(f' "{key}": {{\n{inside}\n }}')
        elif value and isinstance(value[0], dict):
            inside = ",\n".join(f"  {json.dumps(row)}" for row in value)
            parts.append(f' "{key}": [\n{inside}\n ]')
        else:
            parts.append(f' "{key}": {json.dumps(value)}')
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def mean(ratios: Iterable[float]) -> float:
    """Geometric."""
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logarithms) / len(logarithms))


def markdown(head: list[str], rows: list[list[str]], left: int = 1) -> str:
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, rule, *rows])
