# SPDX-License-Identifier: Apache-2.0
"""The curve of a row as a picture: for the pages of the site, and with its error for a file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from .curves import Curves
from .errors import Errors
from .text import error_title, title

BLUE, ORANGE, RED, GREY = "#2f6fd0", "#d0702f", "#c03a3a", "#808080"  # on white and on black
SHAPES = {"pole": "x", "jump": "o", "kink": "v", "clamp edge": "s"}
SIZE = (6.4, 3.2)  # inches, of one panel


def svg(drawn: Curves) -> str:
    """The curve alone, the same text for the same row."""
    figure = Figure(figsize=SIZE, layout="constrained")
    text = io.StringIO()
    with _style(drawn):
        curve_panel(figure.add_subplot(), drawn)
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    return text.getvalue()


def save(drawn: Curves, found: Errors, path: Path) -> None:
    """The curve, and the error below it, as PNG or SVG on white."""
    figure = Figure(figsize=(SIZE[0], 1.75 * SIZE[1]), layout="constrained")
    with _style(drawn):
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        curve_panel(upper, drawn)
        upper.set_xlabel("")
        upper.set_title(title(drawn), fontsize=8, wrap=True)
        if np.isnan(found.greatest).any():  # bins without a value of the dtype
            lower.plot(found.centres, found.greatest, ".", color=RED, ms=3)
        else:
            lower.step(found.centres, found.greatest, where="mid", color=RED, lw=0.8)
        lower.axhline(found.promised, color=GREY, ls="--", lw=0.8, label="promised")
        top = 1.08 * max(found.promised, found.worst if np.isfinite(found.worst) else 0.0, 0.1)
        lower.set_ylim(-0.03 * top, top)
        lower.set_ylabel(found.unit, color=GREY)
        lower.set_xlabel(drawn.axis.name, color=GREY)
        lower.set_title(error_title(found), fontsize=8, wrap=True)
        lower.set_xlim(*drawn.range)
        _grey(lower)
        options = {"metadata": {"Date": None}} if path.suffix == ".svg" else {"dpi": 160}
        figure.savefig(path, **options)


def curve_panel(axes: Any, drawn: Curves) -> None:
    name = drawn.op.outputs[0].name
    axes.plot(drawn.x, drawn.y, color=BLUE, label=name)
    axes.plot(drawn.x, drawn.slope, color=ORANGE, ls="--", label=f"derivative of {name}")
    axes.axhline(0, color=GREY, lw=0.5)
    low, high = drawn.shown()
    for kind, shape in SHAPES.items():
        places = [m for m in drawn.marks if m.kind == kind]
        if not places:
            continue
        for mark in places:
            axes.axvline(mark.x, color=GREY, lw=0.5, ls=":")
        heights = [np.clip(m.y if np.isfinite(m.y) else 0.0, low, high) for m in places]
        axes.plot([m.x for m in places], heights, shape, color=GREY, ms=5, ls="", label=kind)
    axes.set_ylim(low, high)
    axes.set_xlabel(drawn.axis.name, color=GREY)
    _grey(axes)
    axes.legend(frameon=False, labelcolor=GREY)


def _style(drawn: Curves) -> Any:
    return mpl.rc_context({"svg.hashsalt": drawn.op.name, "svg.fonttype": "path", "font.size": 9})


def _grey(axes: Any) -> None:
    axes.tick_params(colors=GREY)
    for spine in axes.spines.values():
        spine.set_color(GREY)
