# SPDX-License-Identifier: Apache-2.0
"""The results of `openaclnn bench` as text, as data and as a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..plotting.canvas import Canvas, framed
from ..report.text_table import Paint, columns
from ..rows.catalogue import SHORT, attributes_text
from .cases import Case, text
from .machine import cache_bytes
from .measure import SCHEMA, Result, Time

STYLES = {"ours": ("cyan",), "copy": ("dim",)}
LETTERS = {"ours": "*", "copy": "."}


def as_data(results: Sequence[Result], about: Mapping[str, Any]) -> dict[str, Any]:
    """Results of one operator with one set of attributes."""
    case = results[0].case
    return {
        "schema": SCHEMA,
        "op": case.op.python,
        "attributes": {k: _plain(v) for k, v in case.timed.items()},
        "about": dict(about),
        "rows": [one.as_data() for one in results],
    }


def _plain(value: Any) -> Any:
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def spread(time: Time) -> str:
    """Half of the way between the quartiles, as a share of the median."""
    return f"±{50 * (time.high - time.low) / time.median:.0f} %"


def title(case: Case) -> str:
    given = attributes_text(case.op, case.timed)
    return case.op.python + (f" with {given}" if given else "")


def _cells(results: Sequence[Result], baseline: str) -> list[list[str]]:
    has_copy = "copy" in results[0].times
    head = ["dtype", "shape", "ours", "spread", "GB/s"]
    head += ["of copy"] * has_copy + [baseline, "spread", "times faster"] * (baseline != "none")
    cells = [head]
    for one in results:
        mine = one.times["ours"]
        row = [SHORT[one.case.dtype], text(one.case.shape), duration(mine.median), spread(mine)]
        row.append(f"{one.gbps:.3g}")
        if has_copy:  # one in the cache is not at the speed of memory
            beyond = one.bytes > cache_bytes()
            row.append(f"{100 * one.ratios['copy']:.0f} %" if beyond else "–")
        if baseline != "none":
            theirs = one.times[baseline]
            row += [duration(theirs.median), spread(theirs), f"{one.ratios[baseline]:.2f}"]
            row[-1] += " (results differ)" * bool(one.differs)
        cells.append(row)
    return cells


def lines(results: Sequence[Result], baseline: str, paint: Paint) -> list[str]:
    shown = columns(_cells(results, baseline), "ll" + "r" * 8)
    return [paint(title(results[0].case), "bold"), paint(shown[0], "dim"), *shown[1:]]


def curves(results: Sequence[Result], dtype: str) -> list[tuple[str, list[float], list[float]]]:
    """Name, elements and GB/s of each candidate in a dtype."""
    chosen = [one for one in results if one.case.dtype == dtype]
    x = [float(math.prod(one.case.shape)) for one in chosen]
    return [
        (name, x, [one.bytes / one.times[name].median / 1e9 for one in chosen])
        for name in chosen[0].times
    ]


def _ends(found: Sequence[tuple[str, list[float], list[float]]]) -> tuple[float, float]:
    """Of a logarithmic axis for all of them."""
    values = np.log10([v for _, _, y in found for v in y])
    return float(values.min()) - 0.1, float(values.max()) + 0.1


def sweep_lines(
    results: Sequence[Result], dtype: str, width: int, braille: bool, paint: Paint
) -> str:
    found = curves(results, dtype)
    x = np.log2(found[0][1])
    ends = _ends(found)
    canvas = Canvas(max(24, width - 12), 14, (float(x[0]), float(x[-1])), ends, braille)
    for name, _, y in reversed(found):
        letter, style = LETTERS.get(name, "+"), STYLES.get(name, ("yellow",))
        canvas.line(x, np.log10(y), letter, style, dashed=name != "ours")
    named = [
        paint(
            f"{LETTERS.get(name, '+') * 2 if not braille else '⠒⠒'} {name}",
            *STYLES.get(name, ("yellow",)),
        )
        for name, _, _ in found
    ]
    head = f"{SHORT[dtype]}: GB/s over elements (the axis is their power of 2)"
    return "\n".join([head, "   ".join(named), *framed(canvas, paint, lambda v: f"{10**v:.3g}")])


def sweep_picture(results: Sequence[Result], path: Any) -> None:
    """A panel for each dtype; needs matplotlib."""
    from matplotlib.figure import Figure

    dtypes = list(dict.fromkeys(one.case.dtype for one in results))
    figure = Figure(figsize=(6.4, 2.9 * len(dtypes)), layout="constrained")
    panels = np.atleast_1d(figure.subplots(len(dtypes), 1, sharex=True))
    for axes, dtype in zip(panels, dtypes, strict=True):
        for name, x, y in curves(results, dtype):
            look = {"ours": "-", "copy": ":"}.get(name, "--")
            axes.plot(x, y, look, marker="o", ms=3, label=name)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_ylabel(f"GB/s, {SHORT[dtype]}")
        axes.legend(frameon=False)
    panels[0].set_title(title(results[0].case), fontsize=8, wrap=True)
    panels[-1].set_xlabel("elements")
    figure.savefig(path, dpi=160)
