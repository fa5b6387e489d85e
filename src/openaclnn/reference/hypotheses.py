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
    dtype_name,
    evaluate,
    rounded,
    rounded_attributes,
    ulp_error,
)
from .judge import NARROWER, Output, wide


@dataclass(frozen=True)
class Hypothesis:
    """`text` follows "as if"."""

    text: str
    inputs: Sequence[Array]
    attributes: Mapping[str, Any]
    rounding: bool = True  # of scalars to FLOAT
    zeros_tell: bool = False  # also a zero or an infinity is hardly made by another mistake

    def error(self, output: Output) -> Array:
        """How far results are from those it makes, in ULP."""
        (due,) = evaluate(output.op, self.inputs, self.attributes, self.rounding)
        return np.asarray(ulp_error(output.got, due, output.unit))

    def tolerance(self, output: Output, few: float) -> float:
        """The error up to which a result is one of these: scalars that are not rounded make a
        difference in the last digits."""
        return few if self.rounding or output.promised is None else output.promised


def hypotheses(output: Output) -> Iterator[Hypothesis]:
    """The formula must be one of single elements."""
    op, inputs, given = output.op, output.inputs, output.attributes
    if not _is_of_elements(op) or not inputs:
        return
    names = [p.python_name for p in op.input_tensors]
    for dtype in NARROWER.get(dtype_name(inputs[0].dtype), ()):
        narrow = [rounded(wide(x), dtype).astype(x.dtype) for x in inputs]
        yield Hypothesis(f"inputs were rounded to {dtype}", narrow, given)
        for i in range(len(inputs) if len(inputs) > 1 else 0):
            one = [*inputs[:i], narrow[i], *inputs[i + 1 :]]
            yield Hypothesis(f"{names[i]} were rounded to {dtype}", one, given)
    compute = compute_dtype(inputs)
    if rounded_attributes(op, given, compute) != given:
        yield Hypothesis("scalars were not rounded to FLOAT", inputs, given, rounding=False)
    for i, k in combinations(range(len(inputs)), 2):
        if inputs[i].dtype == inputs[k].dtype:
            swapped = list(inputs)
            swapped[i], swapped[k] = inputs[k], inputs[i]
            yield Hypothesis(
                f"{names[i]} and {names[k]} were swapped", swapped, given, zeros_tell=True
            )
    for text, attributes in _constant(op, given):
        yield Hypothesis(text, inputs, attributes)
    for text, attributes in _changed(given, compute):
        yield Hypothesis(text, inputs, attributes, zeros_tell=True)


def with_usual(output: Output) -> Iterator[Hypothesis]:
    """Of each attribute that is not what it usually is: a kernel ignores it."""
    op, given = output.op, output.attributes
    if not _is_of_elements(op) or not output.inputs:
        return
    for name, usual in REFERENCES[op.kernel].attributes[0].items():
        if given[name] != usual:
            yield Hypothesis(_were(name, usual), output.inputs, {**given, name: usual})


def _is_of_elements(op: Op) -> bool:
    return bool(op.pointwise and op.kernel)


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


def _changed(given: Mapping[str, Any], compute: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Swapped, inverted, and in narrower dtypes."""
    numbers = [n for n, v in given.items() if isinstance(v, int | float) and v is not bool(v)]
    for one, other in combinations(numbers, 2):
        if given[one] != given[other]:
            text = f"{one} and {other} were swapped"
            yield text, {**given, one: given[other], other: given[one]}
    for n, v in given.items():
        if n not in numbers:
            yield f"{n} were inverted", {**given, n: not v}
    for dtype in NARROWER[compute]:
        narrow = {n: float(rounded(np.array(float(given[n])), dtype)) for n in numbers}
        changed = [n for n in numbers if narrow[n] != given[n]]
        if len(changed) > 1:
            yield f"attributes were rounded to {dtype}", {**given, **narrow}
        for n in changed:
            yield f"{n} were rounded to {dtype}", {**given, n: narrow[n]}
