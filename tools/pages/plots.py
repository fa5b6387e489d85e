# SPDX-License-Identifier: Apache-2.0
"""The plot of a row: its function and the derivative, as the reference has them, in float64."""

from __future__ import annotations

import io
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from openaclnn.formulas import probability
from openaclnn.gradients import gradient_row, sources
from openaclnn.reference import REFERENCES, Array, evaluate, input_shapes
from openaclnn.schema import Op, Parameter
from openaclnn.table import OPS

POINTS = 241
STEP = 1e-6
GAP = 1e-4
BLUE, ORANGE, GREY = "#2f6fd0", "#d0702f", "#808080"  # on white and on black


def varied(op: Op) -> Parameter:
    """The input on the horizontal axis; for a gradient row, an input that is not a gradient."""
    for forward in OPS:
        if gradient_row(forward) is op:
            incoming = {s.parameter.name for s in sources(forward) if s.kind == "incoming"}
            values = [p for p in op.inputs_ if p.name not in incoming]
            full = [p for p in values if p.form == op.inputs_[0].form]
            return (full or values)[0]
    return op.inputs_[0]


def curves(op: Op) -> tuple[Array, Array, Array]:
    """x, the first output, and its derivative: of each element by its own element of the input.

    The other inputs are 1, but what is added (beta) and subtracted (mean) is 0. A row with named
    sizes is drawn for one group.
    """
    reference, axis = REFERENCES[op.kernel], varied(op)
    breaks: list[float] = []
    attributes: dict[str, Any] = dict(reference.attributes[0])
    attributes |= {p.python_name: 1 for p in op.attributes if p.kind == "int64"}
    index = op.inputs_.index(axis)
    ends = (0.0, 1.0) if reference.domain[index] is probability else (-4.0, 4.0)
    x = np.linspace(*ends, POINTS + 2)[1:-1]
    for point in {0.0, *reference.special(attributes)}:  # where the formula switches, nothing joins
        if reference.terms is None and ends[0] < point < ends[1]:
            x = np.sort(np.r_[x[np.abs(x - point) > GAP], point - GAP, point, point + GAP])
            breaks.append(point)
    form = op.inputs_[0].form
    shapes = input_shapes(op, (*(1 for _ in form.sizes), x.size), attributes)
    others = [
        np.full(shape, 0.0 if p.name in ("beta", "mean") else 1.0)
        for p, shape in zip(op.inputs_, shapes, strict=True)
    ]

    def value(at: Array) -> Array:
        given = [at.reshape(s) if i == index else o
                 for i, (o, s) in enumerate(zip(others, shapes, strict=True))]  # fmt: skip
        return np.asarray(evaluate(op, given, attributes)[0], np.float64).ravel()

    if reference.terms is None:
        slope = (value(x + STEP) - value(x - STEP)) / (2 * STEP)
    else:  # an output depends on all elements
        unit = np.eye(x.size) * STEP
        slope = np.array(
            [(value(x + e)[i] - value(x - e)[i]) / (2 * STEP) for i, e in enumerate(unit)]
        )
    y = value(x)
    for curve in (y, slope):
        curve[np.isin(x, breaks)] = np.nan
    return x, y, slope


def plot(op: Op) -> str:
    """SVG, the same text for the same row."""
    x, y, slope = curves(op)
    with mpl.rc_context({"svg.hashsalt": op.name, "svg.fonttype": "path", "font.size": 9}):
        figure = Figure(figsize=(6.4, 3.2), layout="constrained")
        axes = figure.add_subplot()
        name = f"{op.outputs[0].name}"
        axes.plot(x, y, color=BLUE, label=name)
        axes.plot(x, slope, color=ORANGE, ls="--", label=f"derivative of {name}")
        axes.axhline(0, color=GREY, lw=0.5)
        shown = np.r_[y, slope][np.isfinite(np.r_[y, slope])]
        low, high = np.percentile(shown, [2, 98])  # poles leave the picture
        axes.set_ylim(low - 0.2 * (high - low) - 0.1, high + 0.3 * (high - low) + 0.1)
        axes.set_xlabel(varied(op).name, color=GREY)
        axes.tick_params(colors=GREY)
        for spine in axes.spines.values():
            spine.set_color(GREY)
        axes.legend(frameon=False, labelcolor=GREY)
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    return text.getvalue()
