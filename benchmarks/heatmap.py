# SPDX-License-Identifier: Apache-2.0
"""One picture of a run: how many times faster than torch, a row for each operator."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from cells import AFTER_TORCH, ATTRIBUTES, BROADCAST, MIXES, STRIDED
from matplotlib.colors import LogNorm
from report import Result, compared, worst_cells

matplotlib.use("Agg")

# What a column is of, in the order of the picture.
GROUPS = {
    "first attributes": lambda r: r.layout == "contiguous",
    "all attributes": lambda r: r.layout == ATTRIBUTES,
    "0.1% special": lambda r: r.layout == MIXES and r.mix.startswith("0.1%"),
    "20% special": lambda r: r.layout == MIXES and r.mix.startswith("20%"),
    "transposed": lambda r: r.layout in STRIDED,
    "broadcast": lambda r: r.layout in BROADCAST,
    "after torch": lambda r: r.layout == AFTER_TORCH,
}


def draw(results: list[Result], stem: Path) -> None:
    """Writes stem.png and stem.svg."""
    found = compared(results)
    ops, dtypes = (list(dict.fromkeys(getattr(r, key) for r in found)) for key in ("op", "dtype"))
    columns = [
        (name, dtype)
        for name, member in GROUPS.items()
        for dtype in dtypes
        if any(member(r) and r.dtype == dtype for r in found)
    ]
    worst = np.full((len(ops), len(columns)), np.nan)
    for i, op in enumerate(ops):
        for k, (name, dtype) in enumerate(columns):
            own = [r for r in found if (r.op, r.dtype) == (op, dtype) and GROUPS[name](r)]
            worst[i, k] = min((r.ratios["torch"] for r in own), default=np.nan)
    # the same bytes for the same results
    matplotlib.rcParams |= {"svg.hashsalt": stem.name, "svg.fonttype": "none"}
    figure, axis = plt.subplots(
        figsize=(2.2 + 0.52 * len(columns), 1.9 + 0.36 * len(ops)), layout="constrained"
    )
    axis.imshow(worst, cmap="RdYlGn", norm=LogNorm(1 / 4, 4), aspect="auto")
    for (i, k), ratio in np.ndenumerate(worst):
        if not np.isnan(ratio):
            weight = "bold" if ratio < 0.95 else "normal"
            text = f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"
            axis.text(k, i, text, ha="center", va="center", fontsize=7.5, fontweight=weight)
    axis.set_yticks(range(len(ops)), ops, fontsize=8.5)
    axis.set_xticks(range(len(columns)), [dtype for _, dtype in columns], fontsize=7)
    groups = list(dict.fromkeys(name for name, _ in columns))
    for group in groups:
        own = [k for k, (name, _) in enumerate(columns) if name == group]
        axis.text(np.mean(own), -0.75, group, ha="center", va="bottom", fontsize=8)
        axis.axvline(own[-1] + 0.5, color="white", linewidth=3)
    axis.tick_params(length=0)
    for side in axis.spines.values():
        side.set_visible(False)
    title = "Times faster than torch; each field is the worst of its cells (green: faster)"
    figure.suptitle(title, fontsize=10)
    figure.supxlabel("slowest: " + "\n".join(worst_cells(results)), fontsize=7, ha="center")
    figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(stem.with_suffix(".png"), dpi=150, metadata={"Software": None})
    plt.close(figure)
