# SPDX-License-Identifier: Apache-2.0
"""Writes docs/training.md and its plot from what training.py measured.

pip install '.[bench]' && python benchmarks/training_page.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from page import markdown

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "training" / "unet.json"
PAGE = ROOT / "docs" / "training.md"
PLOT = ROOT / "docs" / "training" / "unet"
FASTER, LESS = 1.15, 0.15  # the goal is to reach one of the two
MIB = 1 << 20

HEAD = """\
<!-- SPDX-License-Identifier: Apache-2.0 -->
# A training step

This page compares a training step of a small diffusion UNet in torch.nn with a step of the same model after \
`openaclnn.torch.replace(model)`. The UNet ([benchmarks/unet.py](../benchmarks/unet.py)) has residual blocks, \
attention and {weights:.1f} million weights; it gets batches of {batch} random images of {size} x {size}. A step is \
forward, backward and AdamW. `{command}` measured the figures, and `python benchmarks/training_page.py` wrote the \
page from them; the first script explains its method. Measured on {date}, {cpu}, {threads}, load {load:.1f} before; \
torch {torch}, openaclnn {version} ({kernels} kernels).

![losses, time and peak memory of both](training/unet.svg)

"""  # noqa: E501


def less(cell: dict[str, Any], held: float = 0) -> float:
    """The share of the peak that `replace` saves; `held` counts on both sides."""
    return 1 - (cell["peak"]["replaced"] + held) / (cell["peak"]["torch"] + held)


def is_met(cell: dict[str, Any]) -> bool:
    return bool(cell["faster"] >= FASTER or less(cell) >= LESS)


def apart(cell: dict[str, Any]) -> float:
    """The largest distance between the two loss curves, relative to the loss."""
    pairs = zip(cell["losses"]["torch"], cell["losses"]["replaced"], strict=True)
    return max(abs(a - b) / a for a, b in pairs)


def ceiling(cell: dict[str, Any]) -> float:
    """How much faster a step would be if GroupNorm and SiLU took no time."""
    return float(1 / (1 - cell["share"]))


def table(about: dict[str, Any], cells: list[dict[str, Any]]) -> str:
    held = 3 * about["weights"]  # with the two moments of AdamW
    rows = []
    for c in cells:
        low, _, high = c["quartiles"]
        ms = [f"{c['seconds'][k] * 1e3:.0f}" for k in ("torch", "replaced")]
        mib = [f"{c['peak'][k] / MIB:.0f}" for k in ("torch", "replaced")]
        rows.append(
            [
                c["dtype"],
                c["layout"],
                *ms,
                f"{c['faster']:.2f} ({low:.2f} to {high:.2f})",
                f"{ceiling(c):.2f}",
                *mib,
                f"{less(c):.0%}",
                f"{less(c, held):.0%}",
                f"{apart(c):.1e}",
            ]
        )
    head = ["dtype", "layout", "ms, torch", "replaced", "times as fast", "if free"]
    head += ["MiB, torch", "replaced", "less", "with weights", "losses differ by"]
    return markdown(head, rows, 2)


def verdict(cells: list[dict[str, Any]], held: float) -> str:
    """Says whether the goal is met, and what stands in the way of more."""
    names = [f"{c['dtype']} {c['layout']}" for c in cells]
    fast = [n for n, c in zip(names, cells, strict=True) if c["faster"] >= FASTER]
    small = [n for n, c in zip(names, cells, strict=True) if less(c) >= LESS]
    missed = [n for n, c in zip(names, cells, strict=True) if not is_met(c)]
    text = "The goal that we set for `replace` is a step that is "
    text += f"{FASTER:.2f} times as fast, or that takes {LESS:.0%} less peak memory. "
    text += f"It is met in {len(cells) - len(missed)} of {len(cells)} cases"
    text += f", and missed in {', '.join(missed)}. " if missed else ". "
    text += f"Memory meets it in {', '.join(small) or 'no case'}; "
    text += f"time meets it in {', '.join(fast) or 'no case'}. "
    heavy = [n for n, c in zip(names, cells, strict=True) if less(c) >= LESS > less(c, held)]
    if heavy:
        text += "If weights and optimizer state, which no operator changes, are counted too, the "
        text += f"memory of {', '.join(heavy)} misses it. "
    text = text.rstrip() + "\n\n"
    share = [c["share"] for c in cells]
    return text + (
        "The rest of the step limits the speed: by the profiler, GroupNorm and SiLU take "
        f"{min(share):.0%} to {max(share):.0%} of torch's steps. Most of the rest is convolutions, "
        "which both sides leave to oneDNN. The column `if free` shows how many times as fast a "
        "step would be if the two operators took no time.\n"
    )


NOTES = """
* `times as fast` is the median of the ratios of pairs of steps, with the quartiles. Both models take turns in one process.
* `MiB` is the peak memory during a step, gradients included, minus what the process held before it: the median of three processes. `with weights` adds the weights and AdamW's moments on both sides, as in a whole training run. `replace` saves memory that autograd keeps: torch keeps the inputs of GroupNorm and of SiLU, openaclnn the input of the pair and the statistics.
* `losses differ by` is the largest distance between the two loss curves at a step, relative to the loss. The two models round in different places: torch rounds once more between GroupNorm and SiLU, and adds in another order.
"""  # noqa: E501


def page() -> str:
    data = json.loads(RESULT.read_text())
    about, cells = data["about"], data["cells"]
    facts = about | {"weights": about["weights"] / 4e6, "load": about["load_average_before"]}
    facts |= {"date": about["date"][:10], "version": about["config"]["version"]}
    facts |= {"kernels": about["config"]["kernels"]}
    one = about["threads"] == 1
    facts["threads"] = (
        "one thread, in CPU time of the process" if one else f"{about['threads']} threads"
    )
    return (
        HEAD.format(**facts)
        + table(about, cells)
        + "\n"
        + verdict(cells, 3 * about["weights"])
        + NOTES
    )


def draw(data: dict[str, Any], stem: Path) -> None:
    """Writes stem.png and stem.svg: losses above, time and memory below."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    cells, colours = data["cells"], {"torch": "#e69f00", "replaced": "#0072b2"}
    names = [f"{c['dtype']}\n{c['layout']}" for c in cells]
    figure, axes = plt.subplot_mosaic("abcd;eeff", figsize=(10, 5.5), layout="constrained")
    for key, name, cell in zip("abcd", names, cells, strict=True):
        for kind, style in (("torch", "-"), ("replaced", "--")):
            axes[key].plot(cell["losses"][kind], style, color=colours[kind], label=kind)
        axes[key].set_title(name.replace("\n", ", "), fontsize=9, loc="left")
        axes[key].set_xlabel("step", fontsize=8)
        axes[key].sharey(axes["a"])
    axes["a"].set_ylabel("loss", fontsize=9)
    bars = (("e", "ms of a step", "seconds", 1e3), ("f", "MiB, peak of a step", "peak", 1 / MIB))
    for key, title, what, unit in bars:
        for side, kind in ((-0.2, "torch"), (0.2, "replaced")):
            values = [c[what][kind] * unit for c in cells]
            places = [i + side for i in range(len(cells))]
            drawn = axes[key].bar(places, values, 0.38, color=colours[kind], label=kind)
            axes[key].bar_label(drawn, fmt="%.0f", fontsize=8)
        axes[key].set_xticks(range(len(cells)), names, fontsize=8)
        axes[key].margins(y=0.1)
        axes[key].set_title(title, fontsize=9, loc="left")
    lines = axes["a"].get_legend_handles_labels()
    figure.legend(*lines, loc="outside upper center", ncols=2, fontsize=9, frameon=False)
    # the same bytes for the same results
    matplotlib.rcParams |= {"svg.hashsalt": stem.name, "svg.fonttype": "none"}
    stem.parent.mkdir(exist_ok=True)
    figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(stem.with_suffix(".png"), dpi=150, metadata={"Software": None})
    plt.close(figure)


def main() -> None:
    draw(json.loads(RESULT.read_text()), PLOT)
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
