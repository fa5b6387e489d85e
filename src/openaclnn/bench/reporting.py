# SPDX-License-Identifier: Apache-2.0
"""The results of `openaclnn bench` as text, as data and as a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from ..plotting.canvas import Canvas, framed
from ..report.html_chart import Line, chart
from ..report.html_page import document, table
from ..report.text_table import Paint, columns
from ..rows.catalogue import SHORT, attributes_text
from .running import SCHEMA, Row, Setting, Time
from .tensors import text

STYLES = {"ours": ("cyan",), "copy": ("dim",)}
LETTERS = {"ours": "*", "copy": "."}


def as_data(setting: Setting, rows: Sequence[Row], machine: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "op": setting.op.python,
        "attributes": {k: _plain(v) for k, v in setting.timed.items()},
        "about": dict(machine),
        "rows": [row.as_data() for row in rows],
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


def title(setting: Setting) -> str:
    given = attributes_text(setting.op, setting.timed)
    return setting.op.python + (f" with {given}" if given else "")


def _cells(rows: Sequence[Row], peer: str) -> list[list[str]]:
    has_copy = any("copy" in row.times for row in rows)
    head = ["dtype", "shape", "ours", "spread", "GB/s"]
    head += ["of copy"] * has_copy + [peer, "spread", "times faster"] * (peer != "none")
    cells = [head]
    for row in rows:
        mine = row.times["ours"]
        one = [SHORT[row.dtype], text(row.shape), duration(mine.median), spread(mine)]
        one.append(f"{row.gbps:.3g}")
        one += [f"{100 * row.ratios['copy']:.0f} %"] if has_copy else []
        if peer != "none":
            theirs = row.times[peer]
            one += [duration(theirs.median), spread(theirs), f"{row.ratios[peer]:.2f}"]
            one[-1] += " (results differ)" * row.differs
        cells.append(one)
    return cells


def lines(setting: Setting, rows: Sequence[Row], paint: Paint) -> list[str]:
    shown = columns(_cells(rows, setting.peer), "ll" + "r" * 8)
    return [paint(title(setting), "bold"), paint(shown[0], "dim"), *shown[1:]]


def curves(rows: Sequence[Row], dtype: str) -> list[tuple[str, list[float], list[float]]]:
    """Name, elements and GB/s of each candidate in a dtype."""
    chosen = [row for row in rows if row.dtype == dtype]
    x = [float(math.prod(row.shape)) for row in chosen]
    return [
        (name, x, [row.bytes / row.times[name].median / 1e9 for row in chosen])
        for name in chosen[0].times
    ]


def _ends(found: Sequence[tuple[str, list[float], list[float]]]) -> tuple[float, float]:
    """Of a logarithmic axis for all of them."""
    values = np.log10([v for _, _, y in found for v in y])
    return float(values.min()) - 0.1, float(values.max()) + 0.1


def sweep_lines(rows: Sequence[Row], dtype: str, width: int, braille: bool, paint: Paint) -> str:
    found = curves(rows, dtype)
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


def sweep_picture(setting: Setting, rows: Sequence[Row], path: Any) -> None:
    """A panel for each dtype; needs matplotlib."""
    from matplotlib.figure import Figure

    dtypes = list(dict.fromkeys(row.dtype for row in rows))
    figure = Figure(figsize=(6.4, 2.9 * len(dtypes)), layout="constrained")
    panels = np.atleast_1d(figure.subplots(len(dtypes), 1, sharex=True))
    for axes, dtype in zip(panels, dtypes, strict=True):
        for name, x, y in curves(rows, dtype):
            look = {"ours": "-", "copy": ":"}.get(name, "--")
            axes.plot(x, y, look, marker="o", ms=3, label=name)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_ylabel(f"GB/s, {SHORT[dtype]}")
        axes.legend(frameon=False)
    panels[0].set_title(title(setting), fontsize=8, wrap=True)
    panels[-1].set_xlabel("elements")
    figure.savefig(path, dpi=160)


def noted(notes: Sequence[str]) -> str:
    """What the terminal shows before the results."""
    items = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f'<section id="notes"><h2>Notes</h2>{items}</section>\n' if notes else ""


def _verdict(setting: Setting, rows: Sequence[Row], notes: Sequence[str]) -> str:
    """Good is what is at least as fast as the peer everywhere, on a machine that can tell."""
    if any(row.differs for row in rows):
        return "bad"
    if notes or setting.peer == "none":
        return "none"
    return "good" if all(row.ratios[setting.peer] >= 1 for row in rows) else "none"


def page(
    setting: Setting,
    rows: Sequence[Row],
    machine: Mapping[str, Any],
    sweep: bool,
    notes: Sequence[str] = (),
) -> str:
    head, *cells = _cells(rows, setting.peer)
    body = [[escape(cell) for cell in [f"{one[0]} {one[1]}", *one[2:]]] for one in cells]
    measured = table(
        ["dtype and shape", *head[2:]], body, title(setting), "l" + "r" * (len(head) - 2)
    )
    parts = [noted(notes), f'<section id="results"><h2>Results</h2>{measured}']
    parts.append(f'<p class="hint">{escape(EXPLAINED)}</p></section>')
    if sweep:
        figures = "".join(
            _chart(setting, rows, dtype) for dtype in dict.fromkeys(r.dtype for r in rows)
        )
        parts.append(f'<section id="sweep"><h2>Bandwidth over size</h2>{figures}</section>')
    items = "".join(
        f"<div><dt>{escape(k.replace('_', ' '))}</dt><dd>{escape(str(v))}</dd></div>"
        for k, v in machine.items()
    )
    parts.append(f'<section id="environment"><h2>Environment</h2><dl>{items}</dl></section>')
    sentence = _sentence(setting, rows)
    facts = [str(machine["cpu"]), f"{setting.threads} threads", f"{setting.rounds} rounds"]
    return document(
        "bench", _verdict(setting, rows, notes), sentence, facts, "\n".join(parts),
        ("results", "the results"),
    )  # fmt: skip


EXPLAINED = (
    "Times are medians of the rounds, in which the candidates take turns; the spread is half the "
    "distance between the quartiles. Of copy: how long a copy of the same number of bytes takes, "
    "as a share of our time. Times faster: the median of the ratios of the rounds."
)


def _sentence(setting: Setting, rows: Sequence[Row]) -> str:
    if any(row.differs for row in rows):
        return f"{setting.op.python}: results of {setting.peer} differ from ours"
    if setting.peer == "none":
        return f"{setting.op.python}: {max(row.gbps for row in rows):.1f} GB/s at best"
    ratios = sorted(row.ratios[setting.peer] for row in rows)
    if len(ratios) == 1:
        return f"{setting.op.python}: {ratios[0]:.2f} times as fast as {setting.peer}"
    return (
        f"{setting.op.python}: {ratios[0]:.2f} to {ratios[-1]:.2f} times as fast as {setting.peer}"
    )


def _chart(setting: Setting, rows: Sequence[Row], dtype: str) -> str:
    found = curves(rows, dtype)
    x = [math.log2(v) for v in found[0][1]]
    shown = [Line(name, x, y, dots=True, limit=name == "copy") for name, _, y in found]
    low, high = (10**v for v in _ends(found))
    words = [(v, f"2^{v:.3g}") for v in x]
    name = f"{setting.op.python} in {SHORT[dtype]}, GB/s"
    return chart(name, shown, (x[0], x[-1]), (low, high), "elements", words, y_log=True)
