# SPDX-License-Identifier: Apache-2.0
"""The plot of a run: achieved bandwidth against size, a panel for each operator and dtype."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from report import Result

matplotlib.use("Agg")

# name, how it is drawn; colours that the colour-blind tell apart
CURVES: dict[str, tuple[str, dict[str, Any]]] = {
    "ordinary": ("hand-written loop", {"color": "#999999", "linestyle": "--", "linewidth": 1}),
    "streaming": ("streaming loop", {"color": "#666666", "linestyle": ":", "linewidth": 1.3}),
    "copy": ("memcpy", {"color": "#bbbbbb", "linestyle": "-.", "linewidth": 1}),
    "jax": ("JAX", {"color": "#009e73", "marker": "v", "linewidth": 1}),
    "compiled": ("torch.compile", {"color": "#cc79a7", "marker": "^", "linewidth": 1}),
    "torch": ("torch", {"color": "#e69f00", "marker": "s", "linewidth": 1.4}),
    "ours": ("openaclnn", {"color": "#0072b2", "marker": "o", "linewidth": 1.8}),
}


def size_text(elements: float) -> str:
    for unit, name in ((1 << 20, "Mi"), (1 << 10, "Ki")):
        if elements >= unit:
            return f"{elements / unit:g} {name}"
    return f"{elements:g}"


def draw(about: dict[str, Any], results: list[Result], stem: Path) -> None:
    """Writes stem.png and stem.svg."""
    plain = [r for r in results if r.layout == "contiguous"]
    ops, dtypes = (list(dict.fromkeys(getattr(r, key) for r in plain)) for key in ("op", "dtype"))
    sizes = sorted({r.elements for r in plain})
    columns = len(dtypes) if len(ops) > 1 else min(3, len(dtypes))
    figure, axes = plt.subplots(
        len(ops), columns, figsize=(1 + 2.7 * columns, 1 + 1.75 * len(ops)),
        sharex=True, sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    for i, op in enumerate(ops):
        for k, dtype in enumerate(dtypes):
            panel(axes[i][k], [r for r in plain if (r.op, r.dtype) == (op, dtype)], sizes)
            axes[i][k].set_title(f"{op}, {dtype}", fontsize=8, loc="left", pad=3)
    figure.supxlabel("elements", fontsize=9)
    figure.supylabel("GB/s of least traffic", fontsize=9)
    lines = {line.get_label(): line for axis in axes.flat for line in axis.get_lines()}
    names = [name for name, _ in reversed(CURVES.values()) if name in lines]
    figure.legend(
        [lines[name] for name in names], names, loc="outside upper center", fontsize=8,
        ncols=len(names), frameon=False,
        title=f"{about['cpu']}, {about['threads']} threads, {about['date'][:10]}", title_fontsize=8,
    )  # fmt: skip
    # the same bytes for the same results
    matplotlib.rcParams |= {"svg.hashsalt": stem.name, "svg.fonttype": "none"}
    figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(stem.with_suffix(".png"), dpi=150, metadata={"Software": None})
    plt.close(figure)


def panel(axis: Any, results: list[Result], sizes: list[int]) -> None:
    for key, (name, style) in CURVES.items():
        points = [(r.elements, r.gbps(key)) for r in results if key in r.seconds]
        if points:
            axis.plot(*zip(*sorted(points), strict=True), label=name, markersize=3.5, **style)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.xaxis.set_major_locator(FixedLocator(sizes))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: size_text(x)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axis.tick_params(labelsize=7)
    axis.grid(color="#eeeeee", linewidth=0.6)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
