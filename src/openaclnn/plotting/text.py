# SPDX-License-Identifier: Apache-2.0
"""The curve of a row, its marks and its error, in the terminal."""

from __future__ import annotations

import numpy as np

from ..report.text_table import Paint
from ..rows.catalogue import attributes_text
from .canvas import Canvas, framed
from .curves import Curves
from .errors import Errors

CURVE_ROWS, ERROR_ROWS = 17, 6
SIGNS = {"pole": "x", "jump": "o", "kink": "v", "clamp edge": "["}


def title(drawn: Curves) -> str:
    given = attributes_text(drawn.op, drawn.attributes)
    return drawn.op.name + (f" with {given}" if given else "")


def error_title(found: Errors) -> str:
    which = f"every value of {found.dtype}" if found.every else f"{found.count:,} values"
    return (
        f"error in {found.dtype}, {found.unit}: at most {found.worst:.4g} at {found.worst_at:.6g} "
        f"(promised {found.promised:.4g}; {which} in the range)"
    )


def marks_text(drawn: Curves) -> str:
    return ", ".join(f"{m.kind} at {m.x:.6g}" for m in drawn.marks)


def curve_canvas(drawn: Curves, columns: int, braille: bool) -> Canvas:
    canvas = Canvas(columns, CURVE_ROWS, drawn.range, drawn.shown(), braille)
    low, high = canvas.y
    ends = np.array(drawn.range)
    if low < 0 < high:
        canvas.line(ends, np.zeros(2), "-", ("dim",), dashed=True)
    for mark in drawn.marks:
        canvas.line(np.full(2, mark.x), np.array([low, high]), ":", ("dim",), dashed=True)
    canvas.line(drawn.x, drawn.slope, ".", ("yellow",), dashed=True)
    canvas.line(drawn.x, drawn.y, "*", ("cyan",))
    for mark in drawn.marks:
        at = mark.y if np.isfinite(mark.y) else 0.0
        canvas.put(mark.x, min(max(at, low), high), SIGNS[mark.kind], ("bold",))
    return canvas


def error_canvas(found: Errors, drawn: Curves, columns: int, braille: bool) -> Canvas:
    finite = found.greatest[np.isfinite(found.greatest)]
    top = 1.1 * max(found.promised, float(finite.max(initial=0.0)), 1e-3)
    canvas = Canvas(columns, ERROR_ROWS, drawn.range, (0.0, top), braille)
    canvas.line(np.array(drawn.range), np.full(2, found.promised), "-", ("dim",), dashed=True)
    there = np.isfinite(found.greatest)
    canvas.line(found.centres[there], found.greatest[there], "*", ("red",))
    return canvas


def drawing(drawn: Curves, found: Errors, paint: Paint, width: int, braille: bool) -> str:
    """What `openaclnn plot` prints."""
    columns = max(24, width - 12)
    name = drawn.op.outputs[0].name
    signs = sorted({(SIGNS[m.kind], m.kind) for m in drawn.marks})
    legend = [paint(f"{'⠒⠒' if braille else '**'} {name}", "cyan")]
    legend += [paint(f"{'⠂⠂' if braille else '..'} derivative of {name}", "yellow")]
    legend += [f"{sign} {kind}" for sign, kind in signs]
    lines = [paint(title(drawn), "bold"), "   ".join(legend), ""]
    lines += framed(curve_canvas(drawn, columns, braille), paint)
    lines += [f"over {drawn.axis.python_name}" + (f"; {marks_text(drawn)}" if signs else ""), ""]
    lines += [paint(error_title(found), "bold" if found.kept else "red")]
    lines += framed(error_canvas(found, drawn, columns, braille), paint)
    return "\n".join(lines)
