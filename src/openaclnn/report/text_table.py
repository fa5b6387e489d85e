# SPDX-License-Identifier: Apache-2.0
"""Text for people: columns that line up, and colour where a terminal shows it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TextIO

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Paint:
    """`paint("ok", "green")`; plain text unless `stream` is a terminal and NO_COLOR is unset."""

    def __init__(self, stream: TextIO) -> None:
        self.on = (
            stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        )

    def __call__(self, text: str, *styles: str) -> str:
        if not self.on or not styles:
            return text
        return f"\033[{';'.join(_CODES[style] for style in styles)}m{text}\033[0m"


def columns(rows: Sequence[Sequence[str]], align: str = "", gap: int = 2) -> list[str]:
    """The rows as lines. `align` has one letter a column, l, r or c; what is missing is l."""
    width = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    place = {"l": str.ljust, "r": str.rjust, "c": str.center}
    sides = align.ljust(len(width), "l")
    return [
        (" " * gap).join(place[sides[i]](cell, width[i]) for i, cell in enumerate(row)).rstrip()
        for row in rows
    ]
