# SPDX-License-Identifier: Apache-2.0
"""Lines over a horizontal axis, as SVG inside a page: its colours are those of the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 720, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 10, 28
PAD = 4  # beyond the axes, for dots
CLASSES = ("first", "second", "third", "fourth")


@dataclass(frozen=True)
class Line:
    """Points that are not finite break it."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    dots: bool = False
    limit: bool = False  # a bound: grey and dashed


def chart(
    title: str,
    lines: Sequence[Line],
    x_ends: tuple[float, float],
    y_ends: tuple[float, float],
    x_name: str,
    x_ticks: Iterable[tuple[float, str]] | None = None,
    marks: Iterable[tuple[float, float, str]] = (),
    y_log: bool = False,
) -> str:
    """A figure with its legend. `marks` are x, y and what a reader hears of the place."""
    (x0, x1), (y0, y1) = x_ends, y_ends

    def across(x: float) -> float:
        return LEFT + (x - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT)

    def down(y: float) -> float:
        if y_log:
            share = math.log(max(y, y0 / 10) / y0) / math.log(y1 / y0)
        else:
            share = (y - y0) / (y1 - y0)
        return HEIGHT - BOTTOM - min(max(share, -1.0), 2.0) * (HEIGHT - TOP - BOTTOM)

    parts = []
    for value in log_ticks(y0, y1) if y_log else ticks(y0, y1):
        at = f"{down(value):.1f}"
        ends = f'x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at}" y2="{at}"'
        parts.append(f'<line class="grid" {ends}/>')
        parts.append(f'<text x="{LEFT - 8}" y="{at}" dy="4" text-anchor="end">{value:g}</text>')
    for value, word in x_ticks or [(v, f"{v:g}") for v in ticks(x0, x1)]:
        at = f'x="{across(value):.1f}" y="{HEIGHT - 8}"'
        parts.append(f'<text {at} text-anchor="middle">{escape(word)}</text>')
    shown, legend = [], []
    colours = iter(CLASSES * (1 + len(lines) // len(CLASSES)))
    for line in lines:
        name = "limit" if line.limit else next(colours)
        places = [
            (across(x), down(y)) if math.isfinite(y) else None
            for x, y in zip(line.x, line.y, strict=True)
        ]
        shown.append(f'<path class="{name}" d="{path(places)}"/>')
        for dot in places if line.dots else ():
            if dot is not None:
                at = f'cx="{dot[0]:.1f}" cy="{dot[1]:.1f}"'
                shown.append(f'<circle class="{name}" {at} r="3"/>')
        legend.append(f'<span class="key {name}">{escape(line.name)}</span>')
    for x, y, what in marks:
        inside = min(max(y, y0), y1) if math.isfinite(y) else y0
        at = f'cx="{across(x):.1f}" cy="{down(inside):.1f}" r="4"'
        shown.append(f'<circle class="mark" {at}><title>{escape(what)}</title></circle>')
    size = WIDTH - LEFT - RIGHT + 2 * PAD, HEIGHT - TOP - BOTTOM + 2 * PAD
    box = LEFT - PAD, TOP - PAD, *size
    place = 'x="{}" y="{}" width="{}" height="{}"'.format(*box)
    clipped = f'<svg {place} viewBox="{" ".join(map(str, box))}">{"".join(shown)}</svg>'
    heard = f'role="img" aria-label="{escape(title, quote=True)}"'
    return (
        f'<figure class="lines"><figcaption>{escape(title)}: {" ".join(legend)} over '
        f'{escape(x_name)}</figcaption><div class="chart">'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" {heard}>{"".join(parts)}{clipped}</svg>'
        "</div></figure>"
    )


def path(points: Iterable[tuple[float, float] | None]) -> str:
    words, joined = [], False
    for point in points:
        if point is not None:
            words.append(f"{'L' if joined else 'M'}{point[0]:.1f} {point[1]:.1f}")
        joined = point is not None
    return "".join(words)


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers between the two."""
    raw = (high - low) / wanted
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * k for k in (1, 2, 5, 10) if size * k >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    found = [
        m * 10.0**e
        for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for m in (1, 2, 5)
    ]
    inside = [v for v in found if low <= v <= high]
    tens = [v for v in inside if math.log10(v) % 1 in (0.0, 1.0)]
    return tens if len(tens) > 3 else inside
