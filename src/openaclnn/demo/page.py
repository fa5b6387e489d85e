# SPDX-License-Identifier: Apache-2.0
"""The page of `openaclnn demo --html`: a table and the curve of every operator."""

from __future__ import annotations

import math
from html import escape

import numpy as np

from ..plotting.curves import curves, first_attributes
from ..report.html_chart import Line, chart
from ..report.html_page import document, signed, table
from ..rows.catalogue import SHORT, attributes_text, formula_lines
from ..settings import config
from .showcase import ELEMENTS, PERIOD, REPEATS, Demo, Measured, Shown
from .text import number


def page(demo: Demo) -> str:
    now = config()
    verdict = "bad" if demo.broken else "good" if demo.measured else "none"
    facts = [f"openaclnn {now['version']}", demo.product.title, f"{now['kernels']} kernels"]
    facts.append(f"{now['threads']} thread{'s' if now['threads'] != 1 else ''}, no NPU")
    facts += [f"{dtype} is left out: it needs {m}" for dtype, m in demo.left_out.items()]
    hint = (
        f'<p class="hint">The distance is that of {PERIOD:,} inputs, a quarter of them special, '
        f"at {ELEMENTS:,} places, from the formula in float64 (DOUBLE: long double), in units of "
        f"the last place. The time is that of the fastest of {REPEATS} runs.</p>"
    )
    sections = [*(_operator(one, demo) for one in demo.shown), _refusal(demo)]
    main = "\n".join([_summary(demo), hint, *sections])
    first = demo.shown[0].op.python if demo.shown else "refusal"
    return document(
        "demo", verdict, demo.closing.rstrip("."), facts, main, (first, "the operators")
    )


def _summary(demo: Demo) -> str:
    """A row for each operator: the worst error of each dtype as a share of what is promised."""
    dtypes = list(dict.fromkeys(m.dtype for m in demo.measured))
    rows = []
    for one in demo.shown:
        found = {m.dtype: m for m in one.measured}
        cells = [f'<a href="#{escape(one.op.python)}">{escape(one.op.name)}</a>']
        for dtype in dtypes:
            m = found.get(dtype)
            cells.append("–" if m is None else signed("good" if m.kept else "bad", _share(m)))
        rows.append(cells)
    head = ["operator", *(SHORT[d] for d in dtypes)]
    caption = "Worst error of each dtype, as a share of what is promised"
    shown = table(head, rows, caption, "l" + "r" * len(dtypes))
    return f'<section id="summary" aria-label="summary">{shown}</section>'


def _share(m: Measured) -> str:
    if m.error == 0:
        return "exact"
    return f"{100 * m.error / m.allowed:.0f} %" if m.allowed > 0 else f"{m.error:.2f}{m.unit}"


def _operator(one: Shown, demo: Demo) -> str:
    op = one.op
    title = f"{op.name} {number_words(one)}"
    formula = "<br>".join(map(escape, formula_lines(op, 92)))
    start = (
        f'<section id="{escape(op.python)}" aria-label="{escape(op.name)}"><h2>{title}</h2>'
        f'<p class="formula mono">{formula}</p>'
    )
    if not one.measured:
        what = (
            f"not on {demo.product.title}"
            if not op.accepted(demo.product)
            else "no dtype that could be measured"
        )
        return f'{start}<p class="hint">{escape(what)}</p></section>'
    rows = [
        [
            m.dtype,
            escape(f"{m.error:.4f}{m.unit}"),
            f"{m.allowed:.4f}",
            f"{m.nanoseconds:.3f}",
            signed("good" if m.kept else "bad", m.verdict),
        ]
        for m in one.measured
    ]
    head = ["dtype", "worst error", "promised", "ns/element", "verdict"]
    measured = table(head, rows, f"{op.name}: errors and times", "lrrrl")
    points = [[escape(name), *map(number, x.flat)] for name, x in one.points.items()]
    points[-1][0] = "result"
    count = len(points[0]) - 1
    telling = table(
        ["", *map(str, range(1, count + 1))],
        points,
        f"{op.name}: special values",
        "l" + "r" * count,
    )
    more = f"<details><summary>Special values</summary>{telling}</details>"
    return f"{start}{measured}{_curve(one)}{more}</section>"


def number_words(one: Shown) -> str:
    given = attributes_text(one.op, one.attributes)
    return f'<span class="count">with {escape(given)}</span>' if given else ""


def _curve(one: Shown) -> str:
    drawn = curves(one.op, first_attributes(one.op))
    name = one.op.outputs[0].name
    x = drawn.x.tolist()
    lines = [Line(name, x, _plain(drawn.y)), Line(f"derivative of {name}", x, _plain(drawn.slope))]
    marks = [(m.x, m.y if math.isfinite(m.y) else 0.0, f"{m.kind} at {m.x:g}") for m in drawn.marks]
    words = "".join(f", {what}" for _, _, what in marks)
    title = f"{one.op.name}{words}"
    return chart(title, lines, drawn.range, drawn.shown(), drawn.axis.python_name, marks=marks)


def _plain(values: np.ndarray) -> list[float]:
    return [float(v) for v in values]


def _refusal(demo: Demo) -> str:
    start = '<section id="refusal"><h2>A call that cannot be right is refused</h2>'
    error = demo.refusal
    if error is None:
        broken = signed("bad", "BROKEN: an output of the wrong shape was accepted")
        return f"{start}<p>{broken}</p></section>"
    status = f'<p class="count">{error.status} {error.name}</p>'
    return f"{start}<p>{escape(str(error))}</p>{status}</section>"
