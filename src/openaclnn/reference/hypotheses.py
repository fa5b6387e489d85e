# SPDX-License-Identifier: Apache-2.0
"""What wrong kernels compute, for comparison: other arguments, other outputs, other formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np

from ..rows.schema import Op
from .arrays import Array
from .evaluation import (
    REFERENCES,
    compute_dtype,
    dtype_name,
    evaluate,
    refused,
    rounded,
    rounded_attributes,
    scaled_errors,
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
    formula: Callable[..., Any] | None = None  # instead of the reference's
    wrong: tuple[str, ...] = ()  # outputs that this mistake must change

    def results(self, output: Output) -> Array:
        """What it makes of the elements of an output."""
        op = output.op
        made = evaluate(op, self.inputs, self.attributes, self.rounding, self.formula)
        due = made[[p.result_name for p in op.outputs].index(output.name)]
        if output.terms is None:
            return due
        if due.shape != (output.part.shape if output.part else output.got.shape):
            return np.full(output.got.shape, np.nan)  # mean of another number of groups
        return due.reshape(-1)[output.part.at] if output.part else due

    def error(self, output: Output, due: Array) -> Array:
        """How far an output is from these results: in ULP, of sums as a share of the bound."""
        op = output.op
        if output.terms is None:
            return np.asarray(ulp_error(output.got, due, output.unit))
        with np.errstate(invalid="ignore"):
            terms = np.fmax(output.terms, np.abs(due))
        return scaled_errors(op, output.got, due, terms)

    def tolerance(self, output: Output, few: float) -> float:
        """The error up to which a result is one of these: scalars that are not rounded make a
        difference in the last digits."""
        return few if self.rounding or output.promised is None else output.promised


def right(output: Output) -> Array:
    """The results of the formula, also where a peer's are expected."""
    return Hypothesis("", output.inputs, output.attributes).results(output)


def hypotheses(output: Output) -> Iterator[Hypothesis]:
    """None of sums whose inputs are not at hand."""
    op, inputs, given = output.op, output.inputs, output.attributes
    if not op.kernel or not inputs:
        return
    yield from _outputs_swapped(output)
    shapes = [x.shape for x in inputs]
    for text, attributes in _constant(op, given):
        if op.pointwise or refused(op, shapes, attributes) is None:
            yield Hypothesis(text, inputs, attributes)
    yield Hypothesis("its sign were inverted", inputs, given, formula=_inverted(op))
    for text, formula in REFERENCES[op.kernel].mistakes.items():
        yield Hypothesis(text, inputs, given, formula=formula)
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
        if inputs[i].dtype == inputs[k].dtype and inputs[i].shape == inputs[k].shape:
            swapped = list(inputs)
            swapped[i], swapped[k] = inputs[k], inputs[i]
            yield Hypothesis(f"{names[i]} and {names[k]} were swapped", swapped, given)
    for i in range(len(inputs) if len(inputs) > 1 else 0):
        value = REFERENCES[op.kernel].neutral.get(names[i], 1.0)
        ones = [*inputs[:i], np.full_like(inputs[i], value), *inputs[i + 1 :]]
        yield Hypothesis(_were(names[i], value), ones, given)
    own = dtype_name(inputs[0].dtype)
    for text, attributes in chain(_changed(given, compute), _of_own_dtype(given, own, names[0])):
        if op.pointwise or refused(op, shapes, attributes) is None:
            yield Hypothesis(text, inputs, attributes)


def _inverted(op: Op) -> Callable[..., Any]:
    def formula(*inputs: Array, **a: Any) -> tuple[Array, ...]:
        made = REFERENCES[op.kernel].formula(*inputs, **a)
        every = made if isinstance(made, tuple) else (made,)
        return tuple(np.where(x == 0, x, -x) for x in every)  # 0 may be another branch

    return formula


def _outputs_swapped(output: Output) -> Iterator[Hypothesis]:
    op, formula = output.op, REFERENCES[output.op.kernel].formula
    names = [p.result_name for p in op.outputs]
    shapes = [p.form for p in op.outputs]
    for i, k in combinations(range(len(names)), 2):
        if shapes[i] == shapes[k] and output.name in (names[i], names[k]):
            order = list(range(len(names)))
            order[i], order[k] = k, i
            yield Hypothesis(
                f"{names[i]} and {names[k]} were swapped",
                output.inputs,
                output.attributes,
                formula=lambda *x, order=order, **a: tuple(formula(*x, **a)[n] for n in order),
                wrong=(names[i], names[k]),
            )


def _were(name: str, value: Any) -> str:
    return f"{name} were {value:g}" if isinstance(value, float) else f"{name} were {value}"


def _constant(op: Op, given: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """An attribute ignored, which is one with its usual value; or with another that cases have, a
    tenth or ten times the usual one, or 0."""
    for name, value in given.items():
        known = [
            a[name] for a in REFERENCES[op.kernel].attributes if isinstance(a[name], int | float)
        ]
        if isinstance(value, float):
            usual = REFERENCES[op.kernel].usual[name]
            known += [usual / 10, usual * 10, 0.0]
        for v in dict.fromkeys(known):
            if v != value and v == v:
                yield _were(name, v), {**given, name: v}


def _of_own_dtype(
    given: Mapping[str, Any], dtype: str, first: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Rounded to the dtype of the inputs, whichever of 16 bits that is."""
    if dtype in NARROWER["FLOAT"]:
        for n, v in given.items():
            if isinstance(v, float) and (narrow := float(rounded(np.array(v), dtype))) != v:
                yield f"{n} were rounded to the dtype of {first}", {**given, n: narrow}


def _changed(given: Mapping[str, Any], compute: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Swapped, inverted, and in narrower dtypes."""
    numbers = [n for n, v in given.items() if isinstance(v, float)]
    for one, other in combinations(numbers, 2):
        if given[one] != given[other]:
            text = f"{one} and {other} were swapped"
            yield text, {**given, one: given[other], other: given[one]}
    for n, v in given.items():
        if isinstance(v, bool):
            yield f"{n} were inverted", {**given, n: not v}
        elif isinstance(v, int | float) and v < 0:
            yield f"{n} were |{n}|", {**given, n: -v}
    for dtype in NARROWER[compute]:
        narrow = {n: float(rounded(np.array(float(given[n])), dtype)) for n in numbers}
        changed = [n for n in numbers if narrow[n] != given[n]]
        if len(changed) > 1:
            yield f"attributes were rounded to {dtype}", {**given, **narrow}
        for n in changed:
            yield f"{n} were rounded to {dtype}", {**given, n: narrow[n]}
