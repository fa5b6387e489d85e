# SPDX-License-Identifier: Apache-2.0
"""Curves as text: eight dots to a character where the encoding has braille, else one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..reference.arrays import Array
from ..report.text_table import Paint

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row and column of a cell


def has_braille(encoding: str | None) -> bool:
    try:
        "⣿┤".encode(encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


class Canvas:
    """Cells for `columns` × `rows` characters; later layers lie on top."""

    def __init__(
        self, columns: int, rows: int, x: tuple[float, float], y: tuple[float, float], braille: bool
    ) -> None:
        self.columns, self.rows, self.braille = columns, rows, braille
        self.across, self.down = (2, 4) if braille else (1, 1)
        self.x, self.y = x, y
        self._dots = [[0] * columns for _ in range(rows)]
        self._text = [[" "] * columns for _ in range(rows)]
        self._style: list[list[tuple[str, ...]]] = [[()] * columns for _ in range(rows)]

    def place(self, x: float, y: float) -> tuple[int, int]:
        """The dot for a point, which need not lie inside."""
        (x0, x1), (y0, y1) = self.x, self.y
        right = (x - x0) / (x1 - x0) * (self.columns * self.across - 1)
        down = (y1 - y) / (y1 - y0) * (self.rows * self.down - 1)
        return round(right), round(down)

    def dot(self, right: int, down: int, letter: str, style: tuple[str, ...]) -> None:
        column, row = right // self.across, down // self.down
        if not (0 <= column < self.columns and 0 <= row < self.rows):
            return
        self._text[row][column] = letter
        self._style[row][column] = style
        self._dots[row][column] |= _DOTS[down % 4][right % 2] if self.braille else 1

    def put(self, x: float, y: float, letter: str, style: tuple[str, ...]) -> None:
        """One character, which nothing later covers by dots of its cell."""
        right, down = self.place(x, y)
        column, row = right // self.across, down // self.down
        if 0 <= column < self.columns and 0 <= row < self.rows:
            self._text[row][column], self._dots[row][column] = letter, -1
            self._style[row][column] = style

    def line(
        self, x: Array, y: Array, letter: str, style: tuple[str, ...] = (), dashed: bool = False
    ) -> None:
        """Joins the points whose neighbours are finite."""
        bottom = self.rows * self.down
        for i in range(len(x) - 1):
            if not (math.isfinite(y[i]) and math.isfinite(y[i + 1])):
                continue
            steep = 4 * (self.y[1] - self.y[0])  # what lies far outside is not drawn dot by dot
            limits = self.y[0] - steep, self.y[1] + steep
            a = self.place(float(x[i]), float(np.clip(y[i], *limits)))
            b = self.place(float(x[i + 1]), float(np.clip(y[i + 1], *limits)))
            count = max(abs(b[0] - a[0]), abs(b[1] - a[1]), 1)
            for k in range(count + 1):
                right = round(a[0] + (b[0] - a[0]) * k / count)
                down = round(a[1] + (b[1] - a[1]) * k / count)
                along = down if a[0] == b[0] else right
                gap = dashed and (along // 2 if self.braille else along) % 2
                if 0 <= down < bottom and not gap:
                    self.dot(right, down, letter, style)

    def text(self, paint: Paint) -> list[str]:
        return [
            "".join(self._cell(row, column, paint) for column in range(self.columns))
            for row in range(self.rows)
        ]

    def _cell(self, row: int, column: int, paint: Paint) -> str:
        dots, style = self._dots[row][column], self._style[row][column]
        if dots == 0:
            return " "
        whole = dots < 0 or not self.braille
        return paint(self._text[row][column] if whole else chr(0x2800 + dots), *style)


def framed(
    canvas: Canvas, paint: Paint, height: Callable[[float], str] = "{:.3g}".format
) -> list[str]:
    """The canvas with the values at its top, middle and bottom, and at both ends below."""
    (low, high), rows = canvas.y, canvas.rows
    middle = high - (high - low) * (rows // 2) / (rows - 1)
    labels = {0: high, rows // 2: middle, rows - 1: low}
    wide = max(len(height(v)) for v in labels.values())
    bar, tick, corner, along = ("│", "┤", "└", "─") if canvas.braille else ("|", "+", "+", "-")
    lines = []
    for i, line in enumerate(canvas.text(paint)):
        label = height(labels[i]) if i in labels else ""
        lines.append(f"{label:>{wide}} {tick if i in labels else bar}{line}".rstrip())
    left, right = (f"{v:.3g}" for v in canvas.x)
    centre = f"{(canvas.x[0] + canvas.x[1]) / 2:.3g}"
    lines.append(f"{'':>{wide}} {corner}{along * canvas.columns}")
    lines.append(f"{'':>{wide}}  {spread([left, centre, right], canvas.columns)}")
    return lines


def spread(words: Sequence[str], width: int) -> str:
    """Three words: at the left, in the middle and at the right."""
    left, middle, right = words
    text = left + middle.rjust((width + len(middle)) // 2 - len(left))
    return text + right.rjust(width - len(text))
