# SPDX-License-Identifier: Apache-2.0
"""Writes docs/performance.md and its plots from benchmarks/results/*.json.

pip install '.[bench]' && python benchmarks/page.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from report import PEERS, Result, bars, show, summary

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "performance.md"
PLOTS = ROOT / "docs" / "performance"

HEAD = """\
<!-- SPDX-License-Identifier: Apache-2.0 -->
# Performance

Every figure here is written by `python benchmarks/page.py` from the measurements in \
[benchmarks/results](../benchmarks/results); how they are made and what the columns mean: \
[benchmarks/README.md](../benchmarks/README.md). A figure is the median of calls with `out=` on \
memory that is there, both sides in the same process with as many threads. GB/s count the least \
traffic: every input read once, the output written once.
"""


def load(path: Path) -> tuple[dict[str, Any], list[Result]]:
    data = json.loads(path.read_text())
    return data["about"], [Result(**result) for result in data["results"]]


def ordered(values: Any) -> list[Any]:
    return list(dict.fromkeys(values))


def markdown(head: list[str], rows: list[list[str]], left: int = 1) -> str:
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, rule, *rows])


def matrix(results: list[Result], peer: str, row_of: Any, names: list[str]) -> str:
    """Rows by name, a column for each dtype and size: how many times faster, and our GB/s."""
    columns = ordered((r.dtype, r.size) for r in results)
    cells = {(row_of(r), r.dtype, r.size): r for r in results}
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
    plain = [r for r in results if r.layout == "contiguous"]
    strided = [r for r in results if r.layout != "contiguous" and "torch" in r.seconds]
    config = about["config"]
    versions = [f"{name} {about[name]}" for name in ("torch", "jax", "numpy") if about.get(name)]
    text = f"\n## {path.stem.replace('_', ' ')}\n\n"
    text += f"{about['date'][:10]}, {about['cpu']}, {about['threads']} threads on {about['cpus']} "
    text += f"CPUs, load {about['load_average_before']:.1f} before; openaclnn {config['version']} "
    text += f"({config['kernels']} kernels, {config['compiler']}), {', '.join(versions)}. "
    text += f"Medians of {about['rounds']} rounds. `{about['command']}`\n"
    if about.get("absent"):
        text += f"\nNot installed there, so without a column: {', '.join(about['absent'])}.\n"
    held = bars(results)
    if held:
        rows = [[bar.what, bar.found, bar.wanted, "yes" if bar.met else "**no**"] for bar in held]
        text += "\n" + markdown(["bar", "found", "wanted", "met"], rows, 4)
    for dtype in ordered(r.dtype for r in plain if "torch" in r.seconds):
        text += f"\nTimes faster than torch, {dtype} (our GB/s):\n\n"
        own = [r for r in plain if r.dtype == dtype]
        text += matrix(own, "torch", lambda r: (r.op,), ["operator"])
    if strided:
        text += "\nStrided and broadcast inputs, times faster than torch (our GB/s):\n\n"
        text += matrix(strided, "torch", lambda r: (r.op, r.layout), ["operator", "layout"])
    others = {peer: s for peer, s in summary(plain).items() if peer != "torch"}
    for peer, s in others.items():
        text += f"\nTimes faster than {NAMES[peer]} (our GB/s), geometric mean "
        text += f"{show(s['geometric_mean'], '.2f')} over {s['cells']} cells; no bar:\n\n"
        text += matrix(
            [r for r in plain if peer in r.seconds], peer, lambda r: (r.op,), ["operator"]
        )
    if has_plot(results):
        plot = f"performance/{path.stem}"
        text += f"\n[![Bandwidth against size: ours, torch, the loops]({plot}.svg)]({plot}.png)\n"
    return text


NAMES = {"compiled": "torch.compile", "jax": "JAX", "numpy": "NumPy"}
assert NAMES.keys() == set(PEERS) - {"torch"}


def has_plot(results: list[Result]) -> bool:
    """A curve needs three sizes."""
    return len({r.size for r in results if r.layout == "contiguous"}) >= 3


def page() -> str:
    return HEAD + "".join(section(path) for path in sorted(RESULTS.glob("*.json")))


def main() -> None:
    from roofline import draw  # here: a test needs the text and has no matplotlib

    PLOTS.mkdir(exist_ok=True)
    for old in PLOTS.iterdir():
        old.unlink()
    for path in sorted(RESULTS.glob("*.json")):
        about, results = load(path)
        if has_plot(results):
            draw(about, results, PLOTS / path.stem)
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
