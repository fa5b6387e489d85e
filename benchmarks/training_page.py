# SPDX-License-Identifier: Apache-2.0
"""Writes docs/training.md and its plot from what training.py measured.

pip install '.[bench]' && python benchmarks/training_page.py
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from page import ROOT, save
from record import RECORDS, markdown, read

RECORD = RECORDS / "training.jsonl"
PAGE = ROOT / "docs" / "training.md"
PLOT = ROOT / "docs" / "training" / "unet"  # .png and .svg
MIB = 1 << 20
COLOURS = {"torch": "#e69f00", "replaced": "#0072b2"}

TEXT = """\
<!-- SPDX-License-Identifier: Apache-2.0 -->
# A training step

On a small diffusion UNet, `openaclnn.torch.replace(model)` cuts the peak memory of a training step by {less} and its \
time by {shorter}.

![losses, time and peak memory of both](training/unet.svg)

{table}
* `times as fast` is the median of the ratios of pairs of steps, with the quartiles. Both models take turns in one \
process. `if free` is the limit: how many times as fast a step would be if GroupNorm and SiLU, which take {share} of \
torch's steps by the profiler, took no time. Most of the rest is convolutions, which both sides leave to oneDNN.
* `MiB` is the peak memory during a step, gradients included, minus what the process held before it: the median of \
three processes. `with weights` adds the weights and AdamW's moments on both sides, as in a whole training run. \
`replace` saves memory that autograd keeps: torch keeps the inputs of GroupNorm and of SiLU, openaclnn the input of the \
pair and the statistics.
* `losses differ by` is the largest distance between the two loss curves at a step, relative to the loss. The two \
models round in different places: torch rounds once more between GroupNorm and SiLU, and adds in another order.

The UNet ([benchmarks/unet.py](../benchmarks/unet.py)) has residual blocks, attention and {weights:.1f} million \
weights; it gets batches of {batch} random images of {size} x {size}. A step is forward, backward and AdamW. \
`{command}` measured the figures, and `python benchmarks/training_page.py` wrote the page from them; the first script \
explains its method. Measured on {date:.10}, {cpu}, {clock}, load {load_average_before:.1f} before; torch {torch}, \
openaclnn {openaclnn} ({kernels} kernels).
"""  # noqa: E501


def less(case: dict[str, Any], held: float = 0) -> float:
    """The share of the peak that `replace` saves; `held` counts on both sides."""
    return 1 - (case["peak"]["replaced"] + held) / (case["peak"]["torch"] + held)


def distance(case: dict[str, Any]) -> float:
    """The largest between the two loss curves, relative to the loss."""
    pairs = zip(case["losses"]["torch"], case["losses"]["replaced"], strict=True)
    return max(abs(a - b) / a for a, b in pairs)


def limit(case: dict[str, Any]) -> float:
    """How many times as fast a step would be if GroupNorm and SiLU took no time."""
    return float(1 / (1 - case["share"]))


def span(values: list[float]) -> str:
    return f"{min(values):.0%} to {max(values):.0%}"


def table(cases: Sequence[dict[str, Any]], weights: int) -> str:
    head = ["dtype", "layout", "ms, torch", "replaced", "times as fast", "if free"]
    head += ["MiB, torch", "replaced", "less", "with weights", "losses differ by"]
    rows = []
    for c in cases:
        low, _, high = c["quartiles"]
        row = [c["dtype"], c["layout"], *(f"{1e3 * s:.0f}" for s in c["seconds"].values())]
        row += [f"{c['faster']:.2f} ({low:.2f} to {high:.2f})", f"{limit(c):.2f}"]
        row += [*(f"{p / MIB:.0f}" for p in c["peak"].values()), f"{less(c):.0%}"]
        row += [f"{less(c, 3 * weights):.0%}", f"{distance(c):.1e}"]  # AdamW holds two moments
        rows.append(row)
    return markdown(head, rows, 2)


def page(about: dict[str, Any], *cases: dict[str, Any]) -> str:
    one = about["threads"] == 1
    facts = about | {
        "less": span([less(c) for c in cases]),
        "shorter": span([1 - 1 / c["faster"] for c in cases]),
        "share": span([c["share"] for c in cases]),
        "table": table(cases, about["weights"]),
        "weights": about["weights"] / 4e6,
        "clock": "one thread, in CPU time" if one else f"{about['threads']} threads",
    }
    return TEXT.format(**facts)


def draw(cases: Sequence[dict[str, Any]], stem: Path) -> None:
    """Losses above, time and memory below."""
    from matplotlib.figure import Figure

    names = [f"{c['dtype']}\n{c['layout']}" for c in cases]
    figure = Figure(figsize=(10, 5.5), layout="constrained")
    axes = figure.subplot_mosaic("abcd;eeff")
    for key, name, case in zip("abcd", names, cases, strict=True):
        for kind, style in (("torch", "-"), ("replaced", "--")):
            axes[key].plot(case["losses"][kind], style, color=COLOURS[kind], label=kind)
        axes[key].set_title(name.replace("\n", ", "), fontsize=9, loc="left")
        axes[key].set_xlabel("step", fontsize=8)
        axes[key].sharey(axes["a"])
    axes["a"].set_ylabel("loss", fontsize=9)
    bars = (("e", "ms of a step", "seconds", 1e3), ("f", "MiB, peak of a step", "peak", 1 / MIB))
    for key, title, what, unit in bars:
        for side, kind in ((-0.2, "torch"), (0.2, "replaced")):
            values = [c[what][kind] * unit for c in cases]
            places = [i + side for i in range(len(cases))]
            drawn = axes[key].bar(places, values, 0.38, color=COLOURS[kind], label=kind)
            axes[key].bar_label(drawn, fmt="%.0f", fontsize=8)
        axes[key].set_xticks(range(len(cases)), names, fontsize=8)
        axes[key].margins(y=0.1)
        axes[key].set_title(title, fontsize=9, loc="left")
    lines = axes["a"].get_legend_handles_labels()
    figure.legend(*lines, loc="outside upper center", ncols=2, fontsize=9, frameon=False)
    save(figure, stem)


if __name__ == "__main__":
    about, *cases = read(RECORD)
    draw(cases, PLOT)
    PAGE.write_text(page(about, *cases))
