# SPDX-License-Identifier: Apache-2.0
"""What a kernel computes that mistakes its arguments: the formula with others, for comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ..rows.schema import Op
from .evaluation import (
    REFERENCES,
    Array,
    compute_dtype,
    evaluate,
    rounded,
    rounded_attributes,
    ulp_error,
)
from .judge import NARROWER, Output


@dataclass(frozen=True)
class Hypothesis:
    """`text` follows "as if"."""

    text: str
    error: Array  # how far results are from those it makes, in ULP
    is_rare: bool = False  # zeros and infinities, too, are not made by chance


SCALARS = "scalars were not rounded to FLOAT"


def hypotheses(output: Output) -> Iterator[Hypothesis]:
    """The formula must be one of single elements."""
    op, inputs, given = output.op, output.inputs, output.attributes
    if not (op.pointwise and op.kernel):
        return
    compute = compute_dtype(inputs)

    def distance(inputs: Sequence[Array], attributes: Mapping[str, Any], **how: bool) -> Array:
        (due,) = evaluate(op, inputs, attributes, **how)
        return np.asarray(ulp_error(output.got, due, output.unit))

    names = [p.python_name for p in op.input_tensors]
    for dtype in NARROWER.get(output.dtype, ()):
        narrow = [rounded(x.astype(np.float64), dtype).astype(x.dtype) for x in inputs]
        yield Hypothesis(f"inputs were rounded to {dtype}", distance(narrow, given))
        for i in range(len(inputs) if len(inputs) > 1 else 0):
            one = [*inputs[:i], narrow[i], *inputs[i + 1 :]]
            yield Hypothesis(f"{names[i]} were rounded to {dtype}", distance(one, given))
    if rounded_attributes(op, given, compute) != given:
        yield Hypothesis(SCALARS, distance(inputs, given, rounding=False))
    for i, k in combinations(range(len(inputs)), 2):
        if inputs[i].dtype == inputs[k].dtype:
            swapped = list(inputs)
            swapped[i], swapped[k] = inputs[k], inputs[i]
            text = f"{names[i]} and {names[k]} were swapped"
            yield Hypothesis(text, distance(swapped, given), is_rare=True)
    for text, attributes in _constant(op, given):
        yield Hypothesis(text, distance(inputs, attributes))
    for text, attributes in _of_attributes(given):
        yield Hypothesis(text, distance(inputs, attributes), is_rare=True)


def with_usual(output: Output) -> Iterator[tuple[str, Array]]:
    """A text and the distance for each attribute that is not what it usually is, but taken to be:
    a kernel ignores it."""
    op, given = output.op, output.attributes
    if not (op.pointwise and op.kernel):
        return
    for name, usual in REFERENCES[op.kernel].attributes[0].items():
        value = not given[name] if isinstance(usual, bool) else usual
        if value != given[name]:
            (due,) = evaluate(op, output.inputs, {**given, name: value})
            yield _were(name, value), np.asarray(ulp_error(output.got, due, output.unit))


def _were(name: str, value: Any) -> str:
    return f"{name} were {value:g}" if isinstance(value, float) else f"{name} were {value}"


def _constant(op: Op, given: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """An attribute with another than its usual value."""
    usual, *others = REFERENCES[op.kernel].attributes
    for name, value in given.items():
        known = dict.fromkeys(a[name] for a in others if isinstance(a[name], float))
        for v in known:
            if v not in (value, usual[name]) and v == v:
                yield _were(name, v), {**given, name: v}


def _of_attributes(given: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    numbers = [n for n, v in given.items() if isinstance(v, float)]
    for one, other in combinations(numbers, 2):
        if given[one] != given[other]:
            yield f"{one} and {other} were swapped", {
                **given, one: given[other], other: given[one],
            }  # fmt: skip
    for n, v in given.items():
        if isinstance(v, bool):
            yield f"{n} were inverted", {**given, n: not v}
    for dtype in ("FLOAT16", "BFLOAT16"):
        narrow = {n: float(rounded(np.array(given[n]), dtype)) for n in numbers}
        changed = [n for n in numbers if narrow[n] != given[n]]
        if len(changed) > 1:
            yield f"attributes were rounded to {dtype}", {**given, **narrow}
        for n in changed:
            yield f"{n} were rounded to {dtype}", {**given, n: narrow[n]}
