# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/performance.md and its picture from records/, and the figures of the
READMEs. The tables of a suite are a page of the site, which its build makes.

pip install '.[bench]' && python benchmarks/page.py
"""

from __future__ import annotations

import re
import sys
from typing import Any

from known_misses import reason
from record import BANDWIDTH, ROOT, Case, Record, load, markdown, mean, read
from suites import SUITES
from targets import verdicts
from training_page import RECORD, less, span

PAGE = ROOT / "docs" / "reference" / "performance.md"
PICTURE = PAGE.with_suffix("") / "everything"  # .png and .svg
READMES = [ROOT / name for name in ("README.md", "README.zh-CN.md")]
NAMED = 5  # slowest cases
NAMES = {
    "torch": "torch",
    "recomputed": "torch that computes the normalised x again",
    "compiled": "torch.compile",
    "jax": "JAX",
}
# Columns of the picture: a title, the suite, and words of which the last label contains one.
BROADCAST = ("scalar", "row", "column", "middle")
GROUPS = (
    ("defaults", "elementwise", ("",)),
    ("all attributes", "attributes", ("",)),
    ("0.1% special", "special_values", ("0.1%",)),
    ("20% special", "special_values", ("20%",)),
    ("transposed", "layouts", ("transposed",)),
    ("broadcast", "layouts", BROADCAST),
    ("after torch", "after_torch", ("",)),
)


REWRITTEN = "2026-11-27"  # the kernels, as fast and exact forms

HEAD = """\
<!-- SPDX-License-Identifier: Apache-2.0 -->
# Performance

{result}

[![Times faster than torch, a row for each operator](performance/everything.svg)](performance/everything.png)

A number is the slowest case of its operator, dtype and column; green is faster than torch.

## Ten numbers

{numbers}

## Where torch wins

{slower} of the {cases} cases of the picture take more than 1.05 times as long as torch. The slowest:

{slowest}

Why, for each target that a record misses:

{misses}

## All measurements

{suites}

On the site these are pages; in a checkout, `python benchmarks/page.py SUITE` prints one.

## How it was measured

* A ratio says how many times faster than the baseline openaclnn is: the median over the rounds, and over the runs.
* The library and the baseline take turns in one process, with the same number of threads, and write to allocated \
memory (`out=`).
* {machine}{older}
* `python benchmarks/page.py` writes this page from [benchmarks/records](../../benchmarks/records); \
[benchmarks/README.md](../../benchmarks/README.md) describes the method.
"""  # noqa: E501

MEASUREMENTS = """\
Times faster than the baseline, a case per line. In brackets: our GB/s, counting the least possible traffic (every \
input read once, every result written once), or, where it was timed, the share of the streaming loop: a hand-written \
loop that moves the same traffic with stores that bypass the caches. fp32, bf16 and fp16 are FLOAT, BFLOAT16 and \
FLOAT16; 4Ki to 64Mi are numbers of elements. [Performance](../performance.md) has the summary.
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


def section(name: str, record: Record | None = None) -> str:
    """The page of a suite: what was measured, targets, tables."""
    suite, record = SUITES[name], record or load(name)
    about = record.about
    made = f"commit {about['commit']}, " if about.get("commit") else ""
    runs = f" in each of {about['runs']} runs" if about["runs"] > 1 else ""
    text = f"# {suite.title}\n\n{MEASUREMENTS}\n{machine(about, made)} Load average "
    text += f"{about['load_average_before']:.1f} before the start. Medians of {about['rounds']} "
    text += f"rounds{runs}: {about['samples']}. `{about['command']}`\n"
    text += f"\n{about['note']}\n" if about.get("note") else ""
    if found := verdicts(name, record):
        rows = [[v.what, v.found, v.wanted, "yes" if v.met else "**no**"] for v in found]
        text += "\n" + markdown(["target", "found", "wanted", "met"], rows, 4)
    beside = "share of the streaming loop" if "streaming" in suite.loops else "our GB/s"
    for baseline in NAMES:
        if any(baseline in row for row in record.rows):
            text += f"\n## Beside {NAMES[baseline]}\n\nTimes faster ({beside}):\n\n"
            text += table(record, suite.labels, baseline)
    return text


def machine(about: dict[str, Any], made: str = "") -> str:
    versions = [f"{k} {about[k]}" for k in ("torch", "jax", "numpy") if about.get(k)]
    return (
        f"{about['date'][:10]}, {about['cpu']}, {about['threads']} threads on {about['cpus']} CPUs;"
        " "
        f"openaclnn {about['openaclnn']} ({made}{about['kernels']} kernels, {about['compiler']}), "
        f"{', '.join(versions)}."
    )


def numbers() -> list[tuple[str, str, list[float]]]:
    """What is compared, the suite, and its ratios."""

    def of(suite: str, op: str = "", label: str = "", baseline: str = "torch") -> list[float]:
        found = load(suite).ratios(baseline)
        return [r for r, labels, _ in found if op in ("", labels[0]) and label in labels[-1]]

    return [
        ("default attributes, contiguous", "elementwise", of("elementwise")),
        ("GroupNorm + SiLU", "group_norm", of("group_norm", "group_norm_swish")),
        ("its gradient", "group_norm", of("group_norm", "group_norm_swish_grad")),
        (
            "default attributes, beside torch.compile",
            "compilers",
            of("compilers", "", "", "compiled"),
        ),
        ("transposed", "layouts", of("layouts", "", "transposed")),
        ("broadcast", "layouts", [r for w in BROADCAST for r in of("layouts", "", w)]),
        ("right after an operator of torch", "after_torch", of("after_torch")),
        ("all sets of attributes", "attributes", of("attributes")),
        (
            "0.1 % NaN, infinities, zeros or subnormals",
            "special_values",
            of("special_values", "", "0.1%"),
        ),
        ("20 % of them", "special_values", of("special_values", "", "20%")),
    ]


def figures() -> dict[str, str]:
    """Numbers that the READMEs quote, by the name in their marks."""
    _, *steps = read(RECORD)
    small = [c for c in steps if c["model"] != "UNet2DConditionModel" and c["way"] == "eager"]
    means = {
        name: mean([r for r, *_ in load(name).ratios()]) for name in ("elementwise", "group_norm")
    }
    return {name: f"{value:.1f}" for name, value in means.items()} | {
        "memory": span([less(c) for c in small]).replace("% to ", "–").replace("%", " %"),
        "step": span([c["faster"] for c in small], ".2f").replace(" to ", "–"),
    }


def with_figures(text: str) -> str:
    for name, value in figures().items():
        text = re.sub(rf"(<!-- {name} -->).*?(<!-- / -->)", rf"\g<1>{value}\g<2>", text)
    return text


def page() -> str:
    found = cases()
    about = load("elementwise").about
    rows = [
        [f"[{what}]({place(suite)})", f"{mean(ratios):.2f}", f"{min(ratios):.2f}", str(len(ratios))]
        for what, suite, ratios in numbers()
    ]
    missed = [v.what for name in SUITES for v in verdicts(name, load(name)) if not v.met]
    return HEAD.format(
        result=result(),
        numbers=markdown(["times as fast as torch", "mean", "slowest", "cases"], rows, 1).strip(),
        slower=sum(case.ratio < 1 / 1.05 for case in found),
        cases=len(found),
        slowest="\n".join(f"* {name}" for name in slowest(found)),
        misses="\n".join(f"* {what}: {reason(what)}" for what in missed),
        suites="\n".join(f"* [{suite.title}]({place(name)})" for name, suite in SUITES.items()),
        machine=machine(about),
        older=older(),
    )


def older() -> str:
    names = [name for name in SUITES if load(name).about["date"] < REWRITTEN]
    if not names:
        return ""
    return (
        f" The records of {', '.join(names)} are older, of the kernels before "
        "[they were rewritten](../contribute/element_wise_kernels.md)."
    )


def place(suite: str) -> str:
    """Of the records, which in a checkout are all there is; the site has a page instead."""
    return f"../../benchmarks/records/{suite}.jsonl"


if __name__ == "__main__":
    if sys.argv[1:]:
        print("\n".join(map(section, sys.argv[1:])))
    else:
        from picture import draw

        draw(cases(), slowest(cases()), PICTURE)
        PAGE.write_text(page())
        for readme in READMES:
            readme.write_text(with_figures(readme.read_text()))
