# SPDX-License-Identifier: Apache-2.0
"""Tables in Markdown of what benchmarks/gpu.py recorded: python benchmarks/gpu_page.py FOLDER."""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from record import read

Rows = list[dict[str, Any]]


def records(folder: Path, section: str) -> Rows:
    return [row for path in sorted(folder.glob(f"{section}*.jsonl")) for row in read(path)]


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    lines = [list(map(str, row)) for row in rows]
    head = list(head)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *lines)) + "\n"


def mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def shape(row: dict[str, Any]) -> str:
    return "×".join(map(str, row["shape"]))


def checks(folder: Path) -> str:
    """Passed and failed of each row and dtype; 16-bit results that differ from the CPU's."""
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0, 0])
    for row in records(folder, "matrix"):
        if "op" not in row:
            continue
        found = counts[row["op"], row["dtype"]]
        if "error" in row:
            found[2] += 1
            continue
        found[0 if row["passed"] else 1] += 1
        found[3] += sum(row.get("differ_from_cpu", ()))
        found[4] += sum(row.get("elements", ()))
    head = "operator", "dtype", "passed", "failed", "exceptions", "differ from the CPU"
    return table(head, [
        (op, dtype, *found[:3], f"{found[3]:,} of {found[4]:,}" if found[4] else "")
        for (op, dtype), found in sorted(counts.items())
    ])  # fmt: skip


def norms(folder: Path) -> str:
    compiled = {
        (shape(row), row["dtype"], row["kind"]): row["compiled"]["us"] / row["ours"]["us"]
        for row in records(folder, "compiled")
        if "compiled" in row
    }
    lines, ratios = [], defaultdict(list)
    for row in records(folder, "group_norm"):
        if "ours" not in row:
            continue
        eager = row["eager"]["us"] / row["ours"]["us"]
        ratios[row["kind"], row["layout"], "torch"].append(eager)
        other = compiled.get((shape(row), row["dtype"], row["kind"]))
        other = other if row["layout"] == "nchw" else None
        if other:
            ratios[row["kind"], row["layout"], "torch.compile"].append(other)
        lines.append((
            row["kind"], shape(row), row["dtype"], row["layout"], f"{row['ours']['us']:.1f}",
            f"{row['ours']['graph'] or math.nan:.1f}", f"{eager:.2f}",
            f"{other:.2f}" if other else "", f"{row['share']:.0%}",
        ))  # fmt: skip
    head = ("", "shape", "dtype", "layout", "µs", "µs in a graph", "times faster than torch",
            "than torch.compile", "of the copy's speed")  # fmt: skip
    means = [(*key, f"{mean(values):.2f}", len(values)) for key, values in sorted(ratios.items())]
    return (
        table(head, sorted(lines))
        + "\n"
        + table(("", "layout", "than", "times faster, geometric mean", "cases"), means)
    )


def elements(folder: Path) -> str:
    rows = [row for row in records(folder, "elementwise") if "ratio" in row]
    head = "operator", "dtype", "elements", "of the copy's speed", "times faster than torch"
    return table(head, [
        (row["op"], row["dtype"], f"{row['elements']:,}", f"{row['share']:.0%}",
         f"{row['ratio']:.2f}")
        for row in rows
    ])  # fmt: skip


def divisions(folder: Path) -> str:
    """The best three of each case, and the chosen one."""
    cases = defaultdict(list)
    for section in "variants", "resident":
        for row in records(folder, section):
            if "variant" in row and "share" in row:
                best = row["graph"] or row["us"]
                cases[row["kind"], shape(row), row["dtype"], row["layout"]].append(
                    (best, row["variant"])
                )
    lines = []
    for key, found in sorted(cases.items()):
        chosen = min((us for us, name in found if name == "chosen"), default=0)
        best = "; ".join(f"{name} {us:.1f}" for us, name in sorted(found)[:3])
        lines.append((*key, f"{chosen:.1f}", best))
    return table(("", "shape", "dtype", "layout", "chosen, µs", "best, µs"), lines)


def steps(folder: Path) -> str:
    """Training steps with and without replace."""
    kinds = "torch", "replaced"
    lines = [
        (row["model"] + compiled, row["dtype"], row["layout"],
         *(f"{row[what].get(kind, math.nan):.1f}" for what in ("ms", "host_ms", "peak_MiB")
           for kind in kinds))
        for section, compiled in (("unet", ""), ("compiled_unet", ", compiled"))
        for row in records(folder, section)
        if "ms" in row
    ]  # fmt: skip
    head = ("model", "dtype", "layout", "ms", "replaced", "host, ms", "replaced", "peak, MiB",
            "replaced")  # fmt: skip
    return table(head, lines)


def others(folder: Path) -> str:
    lines = []
    for section in "smoke", "ways", "determinism", "sanitizer", "unet", "compiled_unet", "copy":
        for row in records(folder, section):
            if "about" not in row and "host_ms" not in row:
                text = str({k: v for k, v in row.items() if k not in ("traceback", "tail")})
                lines.append((section, text[:400].replace("|", "/").replace("\n", " ")))
    return table(("section", "record"), lines)


def main() -> None:
    folder = Path(sys.argv[1])
    about = next(row["about"] for path in folder.glob("*.jsonl") for row in read(path)[:1])
    print(about, "\n")
    for part in (checks, norms, elements, divisions, steps, others):
        print(part(folder))


if __name__ == "__main__":
    main()
