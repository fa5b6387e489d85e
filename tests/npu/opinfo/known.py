# SPDX-License-Identifier: Apache-2.0
"""What is known to fail on device npu: known.txt as product any, known_A2.txt what A2 refuses
beyond that; and the tables of docs/reference/npu_coverage.md.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from openaclnn.rows.table import ANY

KNOWN = Path(__file__).with_name("known.txt")
PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "npu_coverage.md"
BEGIN = "| dtype | forward | backward | in place | forward, by shape |\n" + "| --- " * 5 + "|\n"
END = "\n<!-- end of the table"
BEGIN_REFUSED = "| refused by A2 | forward | backward | in place |\n" + "| --- " * 4 + "|\n"
CALLS = "other calls"
Failures = dict[str, dict[str, str]]  # by dtype and direction: why, by the name of the operator


def failures(document: dict[str, Any]) -> Failures:
    """Of a run; other calls under CALLS."""
    results = {
        f"{dtype} {direction}": names
        for dtype, found in document["tables"].items()
        for direction, names in found.items()
    } | {CALLS: document["calls"]}
    return {
        where: {name: why for name, why in found.items() if why is not None}
        for where, found in results.items()
    }


def of_product(product: str) -> Path:
    return KNOWN.with_name(f"known_{product}.txt")


def known_failures(product: str) -> dict[str, set[str]]:
    """By dtype and direction; other calls under CALLS."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in (KNOWN, *([] if product == ANY.key else [of_product(product)])):
        for line in path.read_text().splitlines() if path.exists() else []:
            if line and not line.startswith("#"):
                where, _, listed = line.split(" | ")[0].partition(": ")
                found[where] |= set(listed.split(", "))
    return found


def surprises(document: dict[str, Any], product: str) -> list[str]:
    """What fails and is not known to, and lines that the page lacks."""
    known = known_failures(product)
    new = [
        f"{where}: {name}: {why}"
        for where, found in failures(document).items()
        for name, why in found.items()
        if name not in known.get(where, set())
    ]
    page = PAGE.read_text()
    rows = table(document) if product == ANY.key else refused_table(document)
    return new + [
        f"{PAGE.name} does not say: {row}" for row in rows.splitlines() if row not in page
    ]


def write(document: dict[str, Any], product: str) -> None:
    """Takes what is found for known, in the list and in the page."""
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        "# Written by tests/npu/opinfo --write-known",
    ]
    page = PAGE.read_text()
    if product == ANY.key:
        for where, found in failures(document).items():
            if found:
                lines.append(f"{where}: {', '.join(found)}")
        KNOWN.write_text("\n".join(lines) + "\n")
        start, rows = page.index(BEGIN) + len(BEGIN), table(document)
    else:
        for where, found in refused(document).items():
            names = defaultdict(list)
            for name, why in found.items():
                names[why].append(name)
            lines += [f"{where}: {', '.join(those)} | {why}" for why, those in names.items()]
        of_product(product).write_text("\n".join(lines) + "\n")
        start, rows = page.index(BEGIN_REFUSED) + len(BEGIN_REFUSED), refused_table(document)
    PAGE.write_text(page[:start] + rows + page[page.index(END, start) :])


def refused(document: dict[str, Any]) -> Failures:
    """What fails beyond what fails as product any."""
    known = known_failures(ANY.key)
    return {
        where: {name: why for name, why in found.items() if name not in known.get(where, set())}
        for where, found in failures(document).items()
    }


def refused_table(document: dict[str, Any]) -> str:
    """The rows of the page: how many operators a product refuses."""
    found = refused(document)
    rows = ""
    for dtype, directions in document["tables"].items():
        counts = []
        for direction in ("forward", "backward", "inplace"):
            tried = len(directions[direction])
            counts.append(f"{len(found[f'{dtype} {direction}'])} of {tried}" if tried else "")
        rows += f"| {dtype} | {' | '.join(counts)} |\n"
    return rows


def counted(results: dict[str, str | None]) -> str:
    return f"{sum(why is None for why in results.values())} of {len(results)}" if results else ""


def table(document: dict[str, Any]) -> str:
    """The rows of the page: how many of the operators of PyTorch's table pass."""
    rows = ""
    for dtype, found in document["tables"].items():
        by_value = [counted(results) for where, results in found.items() if "shape" not in where]
        rows += f"| {dtype} | {' | '.join(by_value)} | {counted(found['forward, by shape'])} |\n"
    return rows
