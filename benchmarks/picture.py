# SPDX-License-Identifier: Apache-2.0
"""The heat map of docs/reference/performance.md."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from record import Case


def save(figure: Figure, stem: Path) -> None:
    """stem.svg and stem.png: the same bytes for the same results."""
    stem.parent.mkdir(exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": stem.name, "svg.fonttype": "none"}):
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
        figure.savefig(stem.with_suffix(".png"), dpi=150, metadata={"Software": None})


def draw(found: list[Case], slowest: list[str], stem: Path) -> None:
    """The slowest case of each operator, group and dtype."""
    worst: dict[tuple[str, tuple[str, str]], float] = {}
    for ratio, _, op, column in found:
        worst[op, column] = min(ratio, worst.get((op, column), ratio))
    ops, columns = (list(dict.fromkeys(key)) for key in zip(*worst, strict=True))
    grid = np.array([[worst.get((op, c), np.nan) for c in columns] for op in ops])
    size = 2.2 + 0.52 * len(columns), 1.9 + 0.36 * len(ops)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(grid, cmap="RdYlGn", norm=LogNorm(1 / 4, 4), aspect="auto")
    for (i, k), ratio in np.ndenumerate(grid):
        if not np.isnan(ratio):
            weight = "bold" if ratio < 0.95 else "normal"
            text = f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"
            red, green, blue, _ = image.cmap(image.norm(ratio))
            dark = 0.3 * red + 0.6 * green + 0.1 * blue < 0.5
            axes.text(
                k, i, text, ha="center", va="center", fontsize=8.5, fontweight=weight,
                color="white" if dark else "black",
            )  # fmt: skip
    axes.set_yticks(range(len(ops)), ops, fontsize=8.5)
    axes.set_xticks(range(len(columns)), [dtype for _, dtype in columns], fontsize=7)
    for title in dict.fromkeys(title for title, _ in columns):
        own = [k for k, (name, _) in enumerate(columns) if name == title]
        axes.text(np.mean(own), -0.75, title, ha="center", va="bottom", fontsize=8)
        axes.axvline(own[-1] + 0.5, color="white", linewidth=3)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    title = "Times faster than torch; each field is its slowest case (green: faster)"
    figure.suptitle(title, fontsize=10)
    figure.supxlabel("slowest: " + "\n".join(slowest), fontsize=7, ha="center")
    save(figure, stem)
