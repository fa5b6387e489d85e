# SPDX-License-Identifier: Apache-2.0
"""Writes docs/performance.md and its picture from benchmarks/results/*.json.

pip install '.[bench]' && python benchmarks/page.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import group_norm_report
from group_norm_report import Cell
from reasons import REASONS, UNKNOWN
from report import BASELINES, Result, compared, show, summary, worst_cells
from report_bars import VIEWS, Bar, bars

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "performance.md"
PLOTS = ROOT / "docs" / "performance"
PICTURE, COMPILERS = "everything", "compilers"  # names without suffix: of the picture, of a record

TITLE = """\
<!-- SPDX-License-Identifier: Apache-2.0 -->
# Performance
"""
HEAD = """
`python benchmarks/page.py` writes this page from the measurements in \
[benchmarks/results](../benchmarks/results). [benchmarks/README.md](../benchmarks/README.md) \
describes how they are made.

* The library and the others take turns in one process, with the same number of threads, and \
write to memory that is already allocated (`out=`). A turn of each is a round.
* A ratio is the median over all rounds, and over all runs if there are several. "1.64 (101)" \
means that openaclnn takes 1/1.64 of the other's time and moves 101 GB/s.
* GB/s count the least possible traffic: every input is read once, and the output is written once.
* The streaming loop is a hand-written loop that moves the same traffic with stores that bypass \
the caches.
* fp32, bf16 and fp16 are FLOAT, BFLOAT16 and FLOAT16; the last two are the half types. 4Ki to \
64Mi are numbers of elements.
* A bar is a figure that the project wants to reach. What a bar found is rounded away from it \
(0.899 reads 0.89); figures in tables are rounded to the nearest.
* Layouts: `transposed`: all tensors are transposed; `transposed_in`: only the inputs are; \
`scalar`, `row`, `column`, `middle`: the gradient is one number, one row or one column, or lacks \
the middle one of three dimensions, and is broadcast; `after_torch`: dense tensors, right after an \
operator of torch.
* `attributes` and `mixes` have dense tensors: every set of attributes of the tests, the defaults \
first; and the default attributes with data in which 0.1 % or 20 % of the values are one special \
value.
"""


def load(path: Path) -> tuple[dict[str, Any], list[Result] | list[Cell]]:
    """What bench.py wrote, or group_norm.py."""
    data = json.loads(path.read_text())
    grouped = "shape" in data["results"][0]
    return data["about"], [(Cell if grouped else Result)(**r) for r in data["results"]]


def ordered(values: Any) -> list[Any]:
    return list(dict.fromkeys(values))


def markdown(head: list[str], rows: list[list[str]], left: int = 1) -> str:
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, rule, *rows])


def matrix(results: list[Result], peer: str, row_of: Any, names: list[str]) -> str:
    """Rows by name, a column for each dtype and size: how many times faster, and our GB/s."""
    columns = ordered((r.dtype, r.size) for r in results)
    cells = {(row_of(r), r.dtype, r.size): r for r in results}
    assert len(cells) == len(results), "two results share a field"
    rows = []
    for key in ordered(row_of(r) for r in results):
        row = list(key)
        for column in columns:
            r = cells.get((key, *column))
            ratio = r.ratios.get(peer) if r else None
            row.append("" if r is None or ratio is None else f"{ratio:.2f} ({r.gbps('ours'):.0f})")
        rows.append(row)
    return markdown([*names, *(f"{d} {s}" for d, s in columns)], rows, len(names))


def section(path: Path) -> str:
    about, results = load(path)
    grouped = isinstance(results[0], Cell)
    return heading(path, about) + (of_group_norm(results) if grouped else of_rows(path, results))


def heading(path: Path, about: dict[str, Any]) -> str:
    config = about["config"]
    versions = [f"{name} {about[name]}" for name in ("torch", "jax", "numpy") if about.get(name)]
    text = f"\n## {path.stem.replace('_', ' ')}\n\n"
    text += f"{about['date'][:10]}, {about['cpu']}, {threads(about)} on {about['cpus']} "
    text += f"CPUs, load average {about['load_average_before']:.1f} before the start; "
    made = f"commit {about['commit']}, " if about.get("commit") else ""
    text += f"openaclnn {config['version']} ({made}{config['kernels']} kernels, "
    text += f"{config['compiler']}), "
    text += f"{', '.join(versions)}. {method(about)} `{about['command']}`\n"
    if about.get("samples"):
        text += f"\n{about['samples']} samples. Another machine slowed a core during "
        text += f"{about['samples_repeated']} more, which were repeated, and during "
        text += f"{about['samples_beside_a_slow_core']} that were kept.\n"
    if about.get("absent"):
        text += f"\nNot installed, and therefore without a column: {', '.join(about['absent'])}.\n"
    return text


def threads(about: dict[str, Any]) -> str:
    return "1 thread" if about["threads"] == 1 else f"{about['threads']} threads"


def method(about: dict[str, Any]) -> str:
    runs = f" in each of {about['runs']} runs" if about.get("runs", 1) > 1 else ""
    if about.get("shortest"):
        return (
            f"The machine was busy: each time is the shortest of {about['shortest']} single "
            f"calls{runs}."
        )
    text = f"Medians of {about['rounds']} rounds{runs}."
    if thrice := about.get("measured_three_times"):
        text += f" {thrice} cells broke a bar or came close and were measured twice "
        text += "more: medians of the three."
    return text


def table_of(held: list[Bar]) -> str:
    if not held:
        return ""
    rows = [[bar.what, bar.found, bar.wanted, "yes" if bar.met else "**no**"] for bar in held]
    text = "\n" + markdown(["bar", "found", "wanted", "met"], rows, 4)
    unmet = [f"* {bar.what}: {reason(bar)}\n" for bar in held if not bar.met]
    return text + ("\nWhy bars are not met:\n\n" + "".join(unmet) if unmet else "")


def reason(bar: Bar) -> str:
    return next((why for what, why in REASONS.items() if bar.what.startswith(what)), UNKNOWN)


def of_group_norm(cells: list[Cell]) -> str:
    text = table_of(group_norm_report.bars(cells))
    for op in ordered(c.op for c in cells):
        for peer in group_norm_report.BASELINES:
            own = [c for c in cells if c.op == op and peer in c.ratios]
            if not own:
                continue
            text += f"\n{op}, times faster than {NAMES[peer]} (share of the streaming loop):\n\n"
            dtypes = ordered(c.dtype for c in own)
            rows = []
            for shape, layout in ordered((c.shape, c.layout) for c in own):
                row = [shape if layout == "contiguous" else f"{shape}, channels last"]
                for dtype in dtypes:
                    row += [
                        f"{c.ratios[peer]:.2f} ({show(c.ratios.get('streaming'), '.0%')})"
                        for c in own
                        if (c.shape, c.layout, c.dtype) == (shape, layout, dtype)
                    ] or [""]
                rows.append(row)
            text += markdown(["shape / groups", *dtypes], rows)
    return text


def of_rows(path: Path, results: list[Result]) -> str:
    plain = [r for r in results if r.layout == "contiguous"]
    beside = [r for r in results if r.layout == "after_torch"]
    strided = [r for r in results if r.layout in VIEWS and "torch" in r.seconds]
    every = [r for r in results if r.layout == "attributes"]
    mixed = [r for r in results if r.layout == "mixes"]
    text = table_of(bars(results))
    for dtype in ordered(r.dtype for r in plain if "torch" in r.seconds):
        text += f"\nTimes faster than torch, {dtype} (our GB/s):\n\n"
        own = [r for r in plain if r.dtype == dtype]
        text += matrix(own, "torch", lambda r: (r.op,), ["operator"])
    if strided:
        text += "\nStrided and broadcast inputs, times faster than torch (our GB/s):\n\n"
        text += matrix(strided, "torch", lambda r: (r.op, r.layout), ["operator", "layout"])
    if beside:
        text += "\nRight after a torch operator, times faster than torch in that place "
        text += "(our GB/s):\n\n"
        text += matrix(beside, "torch", lambda r: (r.call,), ["operator"])
    if every:
        text += (
            "\nEvery set of attributes, the defaults first, times faster than torch (our GB/s):\n\n"
        )
        text += matrix(every, "torch", lambda r: (r.op, r.flags), ["operator", "attributes"])
    if mixed:
        text += "\nSpecial values among ordinary ones, times faster than torch (our GB/s):\n\n"
        text += matrix(
            mixed, "torch", lambda r: (r.op, r.flags, r.mix), ["operator", "attributes", "data"]
        )
    peers = {peer: s for peer, s in summary(plain).items() if peer != "torch"}
    for peer, s in peers.items():
        text += f"\nTimes faster than {NAMES[peer]} (our GB/s), geometric mean "
        text += f"{show(s['geometric_mean'], '.2f')} over {s['cells']} cells; without a bar:\n\n"
        text += matrix(
            [r for r in plain if peer in r.seconds], peer, lambda r: (r.op,), ["operator"]
        )
    return text


NAMES = {
    "torch": "torch",
    "recomputed": "torch, which computes y again before the gradient",
    "compiled": "torch.compile",
    "jax": "JAX",
    "numpy": "NumPy",
}
assert NAMES.keys() == {*BASELINES, *group_norm_report.BASELINES}


def mapped() -> tuple[list[dict[str, Any]], list[Result]]:
    """The records of the heat map: all of element-wise rows but that beside compilers, which has
    some of the same cells again."""
    abouts, found = [], list[Result]()
    for path in sorted(RESULTS.glob("*.json")):
        about, results = load(path)
        rows = [r for r in results if isinstance(r, Result)]
        if rows and path.stem != COMPILERS:
            abouts.append(about)
            found += rows
    return abouts, found


def picture() -> str:
    abouts, results = mapped()
    shown = f"performance/{PICTURE}"
    text = f"\n[![Times faster than torch, a row for each operator]({shown}.svg)]({shown}.png)\n\n"
    made = ordered(f"{about['cpu']}, {threads(about)}, {about['date'][:10]}" for about in abouts)
    text += (
        "A field gives the lowest speed-up over torch among its cells; a value below 1 means that "
        "torch is faster. A cell is an operator with one dtype, size and layout, one set of "
        f"attributes and one kind of data. {len(compared(results))} cells, {'; '.join(made)}. "
        "The slowest cells:\n\n"
    )
    return text + "".join(f"* {name}\n" for name in worst_cells(results))


def page() -> str:
    compilers_last = sorted(RESULTS.glob("*.json"), key=lambda path: (path.stem == COMPILERS, path))
    return TITLE + picture() + HEAD + "".join(map(section, compilers_last))


def main() -> None:
    from heatmap import draw  # here: a test needs the text and has no matplotlib

    PLOTS.mkdir(exist_ok=True)
    for old in PLOTS.iterdir():
        old.unlink()
    draw(mapped()[1], PLOTS / PICTURE)
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
