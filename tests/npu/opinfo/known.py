# SPDX-License-Identifier: Apache-2.0
"""What is known to fail on device npu: known.txt, and the table of docs/npu_device.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

KNOWN = Path(__file__).with_name("known.txt")
PAGE = Path(__file__).resolve().parents[3] / "docs" / "npu_device.md"
BEGIN = "| dtype | forward | backward | in place | forward, by shape |\n" + "| --- " * 5 + "|\n"
END = "\n<!-- end of the table"


def known_failures() -> dict[str, set[str]]:
    """By dtype and direction; other calls under "other calls"."""
    found: dict[str, set[str]] = {}
    for line in KNOWN.read_text().splitlines():
        if line and not line.startswith("#"):
            where, _, listed = line.partition(": ")
            found[where] = set(listed.split(", "))
    return found


def surprises(document: dict[str, Any], unreached: list[str]) -> list[str]:
    """What fails and is not known to, and rows that nothing reached."""
    known = known_failures()
    results = {
        f"{dtype} {direction}": names
        for dtype, found in document["tables"].items()
        for direction, names in found.items()
    } | {"other calls": document["calls"]}
    new = [
        f"{where}: {name}: {why}"
        for where, found in results.items()
        for name, why in found.items()
        if why is not None and name not in known.get(where, set())
    ]
    new += [f"no call reached {name}" for name in unreached]
    page = PAGE.read_text()
    return new + [
        f"{PAGE.name} does not say: {row}"
        for row in table(document).splitlines()
        if row not in page
    ]


def write(document: dict[str, Any]) -> None:
    """Takes what is found for known, in the list and in the page."""
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        "# Written by tests/npu/opinfo --write-known",
    ]
    for dtype, found in document["tables"].items():
        for direction, results in found.items():
            if failing := [name for name, why in results.items() if why is not None]:
                lines.append(f"{dtype} {direction}: {', '.join(failing)}")
    if failing := [name for name, why in document["calls"].items() if why is not None]:
        lines.append(f"other calls: {', '.join(failing)}")
    KNOWN.write_text("\n".join(lines) + "\n")
    page = PAGE.read_text()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    PAGE.write_text(page[:begin] + table(document) + page[end:])


def counted(results: dict[str, str | None]) -> str:
    return f"{sum(why is None for why in results.values())} of {len(results)}" if results else ""


def table(document: dict[str, Any]) -> str:
    """The rows of the page: how many of the operators of PyTorch's table pass."""
    rows = ""
    for dtype, found in document["tables"].items():
        by_value = [counted(results) for where, results in found.items() if "shape" not in where]
        rows += f"| {dtype} | {' | '.join(by_value)} | {counted(found['forward, by shape'])} |\n"
    return rows
