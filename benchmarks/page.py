# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/performance.md and its picture from records/.

pip install '.[bench]' && python benchmarks/page.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from known_misses import reason
from record import BANDWIDTH, Record, load, markdown, mean
from suites import SUITES
from targets import verdicts

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "performance.md"
PICTURE = PAGE.with_suffix("") / "everything"  # .png and .svg
NAMED = 5  # slowest cases
NAMES = {
    "torch": "torch",
    "recomputed": "torch that computes the normalised x again",
    "compiled": "torch.compile",
    "jax": "JAX",
}
# Columns of the picture: a title, the suite, and words of which the last label contains one.
GROUPS = (
    ("defaults", "elementwise", ("",)),
    ("all attributes", "attributes", ("",)),
    ("0.1% special", "special_values", ("0.1%",)),
    ("20% special", "special_values", ("20%",)),
    ("transposed", "layouts", ("transposed",)),
    ("broadcast", "layouts", ("scalar", "row", "column", "middle")),
    ("after torch", "after_torch", ("",)),
)


class Case(NamedTuple):
    ratio: float  # times faster than torch
    name: str
    op: str
    column: tuple[str, str]  # group and dtype


HEAD = """\
<!-- SPDX-License-Identifier: Apache-2.0 -->
# Performance

{result}

[![Times faster than torch, a row for each operator](performance/everything.svg)](performance/everything.png)

**These records are of the kernels before they were rewritten in two strengths ([kernels.md](../design/kernels.md)), on 26 \
November 2026.** Old and new beside torch, one thread of an Intel CPU (family 6, model 167, busy with other work), \
geometric mean of all sizes, and the slowest case:

| | old | new |
| --- | ---: | ---: |
| default attributes | 2.31, 1.00 | 2.48, 0.99 |
| group norm | 3.72, 1.02 | 3.55, 0.95 |
| gradient of group norm | 2.95, 1.09 | 2.94, 1.08 |
| other sets of attributes, slowest (EluBackward with inputScale at most 0) | 0.81 | 0.38 |
| 0.1 % of a special value, slowest; times as long as without | 0.92, 1.5 | 0.96, 2.0 |
| 20 % of a special value, times as long as without | 19 | 8.9 |

A field of the picture is the slowest of its cases; a case is an operator with one dtype, size, layout, set of \
attributes and kind of data. The slowest of all {cases} cases:

{slowest}

`python benchmarks/page.py` writes this page from the records in [benchmarks/records](../../benchmarks/records); \
[benchmarks/README.md](../../benchmarks/README.md) describes the method.

* The library and the baselines take turns in one process, with the same number of threads, and write to allocated \
memory (`out=`). A turn of each is a round.
* A ratio says how many times faster than the baseline openaclnn is: the median over the rounds, and over the runs. In \
brackets: our GB/s, counting the least possible traffic (every input read once, every result written once).
* The streaming loop is a hand-written loop that moves the same traffic with stores that bypass the caches.
* fp32, bf16 and fp16 are FLOAT, BFLOAT16 and FLOAT16; 4Ki to 64Mi are numbers of elements.
"""  # noqa: E501


def cases() -> list[Case]:
    """In the order of GROUPS."""
    return [
        Case(ratio, f"{' '.join(labels)} {column}", labels[0], (title, column.split()[0]))
        for title, suite, words in GROUPS
        for ratio, labels, column in load(suite).ratios()
        if any(word in labels[-1] for word in words)
    ]


def slowest(found: list[Case]) -> list[str]:
    return [f"{case.ratio:.2f}x {case.name}" for case in sorted(found)[:NAMED]]


def result() -> str:
    ratios = [r for r, *_ in load("elementwise").ratios()]
    norms = [r for r, *_ in load("group_norm").ratios()]
    return (
        f"With default attributes on contiguous tensors, the element-wise operators are "
        f"{mean(ratios):.2f} times as fast as torch (geometric mean of {len(ratios)} cases; the "
        f"slowest {min(ratios):.2f}), and group norm with its gradient {mean(norms):.2f} times "
        f"({len(norms)} cases; the slowest {min(norms):.2f})."
    )


def table(record: Record, labels: tuple[str, ...], baseline: str) -> str:
    """In brackets: the share of the streaming loop where it was timed, else our GB/s."""
    rows = []
    for row in record.rows:
        share = "streaming" in row
        pairs = zip(row.get(baseline, ()), row["streaming" if share else BANDWIDTH], strict=False)
        cells = [
            "" if ratio is None else f"{ratio:.2f} ({f'{x:.0%}' if share else f'{x:.0f}'})"
            for ratio, x in pairs
        ]
        rows += [[*row["case"], *cells]] if cells else []
    return markdown([*labels, *record.columns], rows, len(labels))


def section(name: str, record: Record, why: bool = False) -> str:
    """`why`: with the reasons of missed targets, which are known of the records."""
    suite, about = SUITES[name], record.about
    versions = [f"{k} {about[k]}" for k in ("torch", "jax", "numpy") if about.get(k)]
    made = f"commit {about['commit']}, " if about.get("commit") else ""
    runs = f" in each of {about['runs']} runs" if about["runs"] > 1 else ""
    text = f"\n## {suite.title}\n\n"
    text += f"{about['date'][:10]}, {about['cpu']}, {about['threads']} threads on {about['cpus']} "
    text += f"CPUs, load average {about['load_average_before']:.1f} before the start; openaclnn "
    text += f"{about['openaclnn']} ({made}{about['kernels']} kernels, {about['compiler']}), "
    text += f"{', '.join(versions)}. Medians of {about['rounds']} rounds{runs}: {about['samples']}."
    text += f" `{about['command']}`\n"
    text += f"\n{about['note']}\n" if about.get("note") else ""
    if found := verdicts(name, record):
        rows = [[v.what, v.found, v.wanted, "yes" if v.met else "**no**"] for v in found]
        text += "\n" + markdown(["target", "found", "wanted", "met"], rows, 4)
        text += "".join(f"\n* {v.what}: {reason(v.what)}\n" for v in found if why and not v.met)
    beside = "share of the streaming loop" if "streaming" in suite.loops else "our GB/s"
    for baseline in NAMES:
        if any(baseline in row for row in record.rows):
            text += f"\nTimes faster than {NAMES[baseline]} ({beside}):\n\n"
            text += table(record, suite.labels, baseline)
    return text


def page() -> str:
    found = cases()
    names = "\n".join(f"* {name}" for name in slowest(found))
    head = HEAD.format(result=result(), cases=len(found), slowest=names)
    return head + "".join(section(name, load(name), True) for name in SUITES)


def save(figure: Any, stem: Path) -> None:
    """stem.svg and stem.png: the same bytes for the same results."""
    import matplotlib

    stem.parent.mkdir(exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": stem.name, "svg.fonttype": "none"}):
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
        figure.savefig(stem.with_suffix(".png"), dpi=150, metadata={"Software": None})


def draw(found: list[Case], stem: Path) -> None:
    """The slowest case of each operator, group and dtype."""
    import numpy as np
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    worst: dict[tuple[str, tuple[str, str]], float] = {}
    for ratio, _, op, column in found:
        worst[op, column] = min(ratio, worst.get((op, column), ratio))
    ops, columns = (list(dict.fromkeys(key)) for key in zip(*worst, strict=True))
    grid = np.array([[worst.get((op, c), np.nan) for c in columns] for op in ops])
    size = 2.2 + 0.52 * len(columns), 1.9 + 0.36 * len(ops)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(grid, cmap="RdYlGn", norm=LogNorm(1 / 4, 4), aspect="auto")
    for (i, k), ratio in np.ndenumerate(grid):
        if not np.isnan(ratio):
            weight = "bold" if ratio < 0.95 else "normal"
            text = f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"
            axes.text(k, i, text, ha="center", va="center", fontsize=7.5, fontweight=weight)
    axes.set_yticks(range(len(ops)), ops, fontsize=8.5)
    axes.set_xticks(range(len(columns)), [dtype for _, dtype in columns], fontsize=7)
    for title in dict.fromkeys(title for title, _ in columns):
        own = [k for k, (name, _) in enumerate(columns) if name == title]
        axes.text(np.mean(own), -0.75, title, ha="center", va="bottom", fontsize=8)
        axes.axvline(own[-1] + 0.5, color="white", linewidth=3)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    title = "Times faster than torch; each field is its slowest case (green: faster)"
    figure.suptitle(title, fontsize=10)
    figure.supxlabel("slowest: " + "\n".join(slowest(found)), fontsize=7, ha="center")
    save(figure, stem)


if __name__ == "__main__":
    draw(cases(), PICTURE)
    PAGE.write_text(page())
