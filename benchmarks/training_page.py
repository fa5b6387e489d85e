# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/training.md and its plot from what training.py measured.

pip install '.[bench]' && python benchmarks/training_page.py
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from record import RECORDS, ROOT, markdown, read

RECORD = RECORDS / "training.jsonl"
PAGE = ROOT / "docs" / "reference" / "training.md"
PLOT = PAGE.with_suffix("") / "unet"  # .png and .svg
MIB = 1 << 20
COLOURS = {"torch": "#e69f00", "replaced": "#0072b2"}

TEXT = """\
<!-- SPDX-License-Identifier: Apache-2.0 -->
# A training step

`openaclnn.torch.replace(model)` makes one call of each GroupNorm and the SiLU after it \
([what it finds](../howto/pytorch.md#in-an-existing-model)). On a CPU with one thread, a training step gains most in bf16 with \
channels_last; in fp32 expect less memory rather than speed. A compiled \
step of UNet2DModel gains speed; of memory a small UNet needs less and diffusers' UNets more. [On a GPU](performance_gpu.md) large models gain memory. It depends on how much \
of a step the two are:

{summary}
![losses of a small UNet, time and peak memory of all](training/unet.svg)

{table}
* `ms` and `MiB` are torch → replaced. `times as fast` is the median of the ratios of pairs of steps, with the quartiles. Both models take turns in one \
process. `if both took no time` is the limit: how many times as fast a step would be if GroupNorm and SiLU, which take {share} of \
torch's steps by the profiler, took no time. Most of the rest is convolutions and attention, which both sides leave to \
oneDNN.
* `MiB` is the peak memory during a step, gradients included, minus what the process held before it, in a process that \
measures nothing else. `with weights` adds the weights and AdamW's moments on both sides, as in a whole training run. \
`replace` saves memory that autograd keeps: torch keeps the inputs of GroupNorm and of SiLU, openaclnn the input of the \
pair and the statistics.
* Compiled, both sides compute the result of GroupNorm and SiLU again in the backward pass, openaclnn by a checkpoint. Peaks \
in MiB, channels_last: UNet 42 → 32 in fp32 and 27 → 20 in bf16; UNet2DModel 126 → 139 in fp32, because in that large \
graph Inductor holds the gradients of the inputs until the backward pass ends. Before the checkpoint a compiled step was \
1.00 to 1.13 times as fast; it was not timed again.
* `losses differ by` is the largest distance between the two loss curves at a step, relative to the loss. The two \
models round in different places: torch rounds once more between GroupNorm and SiLU, and adds in another order.

`UNet` ([benchmarks/unet.py](../../benchmarks/unet.py)) has residual blocks and attention; the other models are diffusers', \
with their default blocks and fewer channels ([benchmarks/models.py](../../benchmarks/models.py)). In \
UNet2DConditionModel, attention and feed-forward layers at the full resolution take most of the time and memory: \
in bf16, contiguous, attention takes 64% of a step's time and the pairs 1.3%, of which `replace` saves two fifths, \
so that its ratios there are noise around 1.01. A step \
is forward, backward and AdamW, in CPU time if there is one thread.

{measured}
`python benchmarks/training_page.py` wrote the page from these; `training.py` explains its method. Measured on {cpu}, \
{clock}, load {load_average_before:.1f} before; torch {torch}, openaclnn {openaclnn} ({kernels} kernels).
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


def span(values: list[float], form: str = ".0%") -> str:
    low, high = f"{min(values):{form}}", f"{max(values):{form}}"
    return low if low == high else f"{low} to {high}"


def by_model(cases: Sequence[dict[str, Any]]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for c in cases:
        groups.setdefault((c["model"], c["way"]), []).append(c)
    return groups


def summary(cases: Sequence[dict[str, Any]]) -> str:
    head = ["model", "", "peak memory", "times as fast", "if both took no time"]
    rows = []
    for (model, way), own in by_model(cases).items():
        saved = [less(c) for c in own]
        memory = f"{span(saved)} less" if min(saved) > 0 else f"{span([-x for x in saved])} more"
        faster = span([c["faster"] for c in own], ".2f")
        rows.append([model, way, memory, faster, span([limit(c) for c in own], ".2f")])
    return markdown(head, rows, 2)


def measured(cases: Sequence[dict[str, Any]]) -> str:
    head = ["measured by", "on", "million weights", "images in a batch", "processes for memory"]
    rows = {}
    for c in cases:
        images = f"{c['batch']} of {c['size']} x {c['size']}"
        row = [f"`{c['command']}`", c["date"][:10], f"{c['weights'] / 4e6:.1f}", images]
        rows[c["command"], c["model"]] = [*row, str(c["processes"])]
    return markdown(head, list(rows.values()), 2)


def table(cases: Sequence[dict[str, Any]]) -> str:
    head = ["model", "dtype", "layout", "ms", "times as fast"]
    head += ["MiB", "less", "with weights", "losses differ by"]
    rows = []
    for c in cases:
        low, _, high = c["quartiles"]
        row = [f"{c['model']}, {c['way']}", c["dtype"], c["layout"]]
        row += [" → ".join(f"{1e3 * s:.0f}" for s in c["seconds"].values())]
        row.append(f"{c['faster']:.2f} ({low:.2f}–{high:.2f})")
        row += [" → ".join(f"{p / MIB:.0f}" for p in c["peak"].values()), f"{less(c):.0%}"]
        row += [f"{less(c, 3 * c['weights']):.0%}", f"{distance(c):.1e}"]
        rows.append(row)
    return markdown(head, rows, 3)


def page(about: dict[str, Any], *cases: dict[str, Any]) -> str:
    one = about["threads"] == 1
    facts = about | {
        "summary": summary(cases),
        "share": span([c["share"] for c in cases]),
        "table": table(cases),
        "measured": measured(cases),
        "clock": "one thread" if one else f"{about['threads']} threads",
    }
    return TEXT.format(**facts)


def draw(cases: Sequence[dict[str, Any]], stem: Path) -> None:
    """Losses of the first model above, time and memory of all below."""
    import picture
    from matplotlib.figure import Figure

    names = [f"{c['model']}, {c['way']}, {c['dtype']}, {c['layout']}" for c in cases]
    figure = Figure(figsize=(11, 10), layout="constrained")
    axes = figure.subplot_mosaic("abcd;eeff", height_ratios=(1, 4))
    for key, case in zip("abcd", cases, strict=False):
        name = f"{case['model']}, {case['dtype']}, {case['layout']}"
        for kind, style in (("torch", "-"), ("replaced", "--")):
            axes[key].plot(case["losses"][kind], style, color=COLOURS[kind], label=kind)
        axes[key].set_title(name, fontsize=8, loc="left")
        axes[key].set_xlabel("step", fontsize=8)
        axes[key].sharey(axes["a"])
    axes["a"].set_ylabel("loss", fontsize=9)
    bars = (("e", "ms of a step", "seconds", 1e3), ("f", "MiB, peak of a step", "peak", 1 / MIB))
    for key, title, what, unit in bars:
        for side, kind in ((-0.2, "torch"), (0.2, "replaced")):
            values = [c[what][kind] * unit for c in cases]
            places = [i + side for i in range(len(cases))]
            drawn = axes[key].barh(places, values, 0.38, color=COLOURS[kind], label=kind)
            axes[key].bar_label(drawn, fmt="%.0f", fontsize=8, padding=2)
        axes[key].set_yticks(range(len(cases)), names if key == "e" else [], fontsize=8)
        axes[key].margins(x=0.1, y=0.01)
        axes[key].invert_yaxis()
        axes[key].set_title(title, fontsize=9, loc="left")
    lines = axes["a"].get_legend_handles_labels()
    figure.legend(*lines, loc="outside upper center", ncols=2, fontsize=9, frameon=False)
    picture.save(figure, stem)


if __name__ == "__main__":
    about, *cases = read(RECORD)
    draw(cases, PLOT)
    PAGE.write_text(page(about, *cases))
