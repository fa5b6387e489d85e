# SPDX-License-Identifier: Apache-2.0
"""The curve of a row and its derivative, as the reference has them, and where they break."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..reference.arrays import Array
from ..reference.evaluation import REFERENCES, evaluate, input_shapes
from ..rows.gradients import gradient_row, sources
from ..rows.schema import Op, Parameter
from ..rows.table import OPS

POINTS = 241
WIDTH = 8.0  # of the usual range, -4 to 4
STEP, GAP = 1e-6 / WIDTH, 1e-4 / WIDTH  # of a difference, and around a break: shares of the range
FLAT = 1e-3  # slopes that differ by less than this share are one slope
EPSILON = np.finfo(np.float64).eps
SIGNS = (-1, 1)
Range = tuple[float, float]


@dataclass(frozen=True)
class Mark:
    """A place where the function is not smooth."""

    x: float
    kind: str  # pole, jump, clamp edge (beyond it the function is constant) or kink
    y: float  # finite, of the side that the point belongs to; NaN at a pole


@dataclass(frozen=True)
class Curves:
    """The first output over one input; the derivative is by that input, element by element."""

    op: Op
    axis: Parameter
    attributes: Mapping[str, Any]
    x: Array
    y: Array
    slope: Array
    marks: tuple[Mark, ...]
    range: Range

    def shown(self) -> Range:
        """The values to show: poles leave the picture."""
        both = np.r_[self.y, self.slope]
        seen = both[np.isfinite(both)]
        if not seen.size:
            return -1.0, 1.0
        part = 12 if any(mark.kind == "pole" for mark in self.marks) else 2
        low, high = np.percentile(seen, [part, 100 - part])
        return low - 0.2 * (high - low) - 0.1, high + 0.3 * (high - low) + 0.1


def varied(op: Op) -> Parameter:
    """The input on the horizontal axis; for a gradient row, an input that is not a gradient."""
    for forward in OPS:
        if gradient_row(forward) is op:
            incoming = {s.parameter.name for s in sources(forward) if s.kind == "incoming"}
            values = [p for p in op.input_tensors if p.name not in incoming]
            full = [p for p in values if p.form == op.input_tensors[0].form]
            return (full or values)[0]
    return op.input_tensors[0]


def first_attributes(op: Op) -> dict[str, Any]:
    """The first set of the tests, with which the site draws curves; sizes (of groups) are 1."""
    return dict(REFERENCES[op.kernel].usual) | _sizes_of_one(op)


def default_attributes(op: Op) -> dict[str, Any]:
    """The defaults of the Python function, and where it has none those of the first set."""
    defaults = {p.python_name: p.default for p in op.attributes if p.default is not None}
    return first_attributes(op) | defaults | _sizes_of_one(op)


def _sizes_of_one(op: Op) -> dict[str, int]:
    return {p.python_name: 1 for p in op.attributes if p.name in op.sizes}


def inputs_along(op: Op, x: Array, attributes: Mapping[str, Any]) -> list[Array]:
    """x as the input on the axis; the other inputs are what its reference calls neutral, or 1. The
    named sizes are 1."""
    form = op.input_tensors[0].form
    shapes = input_shapes(op, (*(1 for _ in form.sizes), x.size), attributes)
    axis, neutral = varied(op), REFERENCES[op.kernel].neutral
    return [
        x.reshape(shape) if p is axis else np.full(shape, neutral.get(p.python_name, 1.0), x.dtype)
        for p, shape in zip(op.input_tensors, shapes, strict=True)
    ]


def curves(op: Op, attributes: Mapping[str, Any], ends: Range | None = None) -> Curves:
    """Over the given range; without one over the domain's interval, or from -4 to 4 and wider where
    the function breaks beyond. A row with named sizes is drawn for one group."""
    reference, axis = REFERENCES[op.kernel], varied(op)
    interval = reference.domain[op.input_tensors.index(axis)].interval

    def value(at: Array) -> Array:
        given = inputs_along(op, at, attributes)
        return np.asarray(evaluate(op, given, attributes)[0], np.float64).ravel()

    found: list[Mark] = []
    if op.pointwise:
        at = {p for p in (0.0, *reference.special(attributes).values()) if math.isfinite(p)}
        found = marks(value, sorted({*at, *(-p for p in at), *(interval or ())}))
    low, high = ends or interval or (-WIDTH / 2, WIDTH / 2)
    if ends is None and interval is None:
        for mark in found:
            low, high = min(low, 1.25 * mark.x), max(high, 1.25 * mark.x)
    found = [mark for mark in found if low <= mark.x <= high]
    step, gap = (share * (high - low) for share in (STEP, GAP))
    x = np.linspace(low, high, POINTS + 2)
    x = x[1:-1] if ends is None else x
    for mark in found:
        x = np.sort(np.r_[x[np.abs(x - mark.x) > gap], mark.x - gap, mark.x, mark.x + gap])
    x = x[(x >= low) & (x <= high)]
    with np.errstate(all="ignore"):
        if op.pointwise:
            slope = (value(x + step) - value(x - step)) / (2 * step)
        else:  # an output depends on all elements
            unit = np.eye(x.size) * step
            slope = np.array(
                [(value(x + e)[i] - value(x - e)[i]) / (2 * step) for i, e in enumerate(unit)]
            )
    y = value(x)
    y[np.isin(x, [m.x for m in found if m.kind in ("pole", "jump")])] = np.nan
    slope[np.isin(x, [m.x for m in found])] = np.nan
    return Curves(op, axis, attributes, x, y, slope, tuple(found), (low, high))


def marks(value: Callable[[Array], Array], points: list[float]) -> list[Mark]:
    """Those of the points where the function is not smooth."""
    found = []
    for point in points:
        distances = [abs(point - other) for other in points if other != point]
        unit = min([1e-3, *(d / 2 for d in distances)])
        kind = _kind(value, point, unit)
        if kind:
            with np.errstate(all="ignore"):
                y = value(np.array([point]))[0]
            found.append(Mark(point, kind, float(y) if kind != "pole" else math.nan))
    return found


def _kind(value: Callable[[Array], Array], point: float, unit: float) -> str:
    """Empty where the function is smooth. It is looked at from both sides, at distances of `unit`
    and shares of it: what shrinks with the distance is the curvature of a smooth function."""
    steps = np.array([1.0, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6]) * unit
    with np.errstate(all="ignore"):
        left, right = sides = [value(point + sign * steps) for sign in SIGNS]
        noise = [16 * EPSILON * abs(side[1]) for side in sides]
        for side, least in zip(sides, noise, strict=True):
            # A function with a slope changes 1/100 as much over 1/100 of the way; ln and 1/x more.
            near, far = abs(side[5] - side[1]), abs(side[1] - side[0])
            if near > far / 2 and near > 1e3 * least:
                return "pole"
        if not all(np.isfinite(side).all() for side in sides):
            return "" if _same(left, right) else "jump"
        # Slopes towards the right: from far, and a hundred times nearer.
        wide = [
            s * (y[1] - y[2]) / (steps[1] - steps[2]) for s, y in zip(SIGNS, sides, strict=True)
        ]
        close = [
            s * (y[3] - y[4]) / (steps[3] - steps[4]) for s, y in zip(SIGNS, sides, strict=True)
        ]
        step = abs(right[5] - left[5])
        if step > sum(noise) + FLAT * unit * max(map(abs, wide)):
            return "jump"
        bend = abs(close[1] - close[0])
        least = [n / (steps[3] - steps[4]) for n in noise]
        if bend > abs(wide[1] - wide[0]) / 2 and bend > sum(least) + FLAT * max(map(abs, close)):
            flat = any(abs(k) <= n for k, n in zip(close, least, strict=True))
            return "clamp edge" if flat else "kink"
    return ""


def _same(left: Array, right: Array) -> bool:
    return bool(np.array_equal(np.isnan(left), np.isnan(right)) and left[5] == right[5]) or bool(
        np.isnan(left).all() and np.isnan(right).all()
    )
