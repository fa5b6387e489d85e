# SPDX-License-Identifier: Apache-2.0
"""What tools do with the formulas: evaluate them exactly, draw inputs, measure errors.

The tests, `openaclnn demo` and the tools use it. Nothing here computes with the library; it says
what phase 1 refuses."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..rows.dtypes import DTYPES
from ..rows.schema import Op
from ..rows.shapes import shape_of
from ..rows.table import OPS
from .arrays import Array
from .formulas import Attributes as Attributes
from .formulas import Reference


def _all_references() -> dict[str, Reference]:
    """Those of formulas.py and of every formulas_<family>.py beside it."""
    found: dict[str, Reference] = {}
    for path in sorted(Path(__file__).parent.glob("formulas*.py")):
        found |= importlib.import_module(f".{path.stem}", __package__).REFERENCES
    return found


REFERENCES = _all_references()


def refused(op: Op, shapes: Sequence[Sequence[int]], attributes: Attributes) -> str | None:
    """Why phase 1 refuses these shapes of the inputs and attributes by Python name; None if it
    does not. Dtypes and products do not matter."""
    tensors = {
        p.name: ("float32", shape) for p, shape in zip(op.input_tensors, shapes, strict=True)
    }
    named = {
        p.name: bool(value) if p.kind == "bool" else value
        for p in op.attributes
        for value in (attributes[p.python_name],)
    }
    taken = tensors | named
    try:
        _core.check(OPS.index(op), *(taken.get(p.name) for p in op.parameters), everything=True)
    except ValueError as error:
        return str(error)
    return None


CANONICAL_NAN = {dtype.name: dtype.canonical_nan for dtype in DTYPES.values()}


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The NumPy dtype of FLOAT, DOUBLE, FLOAT16 or, with ml_dtypes, BFLOAT16."""
    if dtype == "BFLOAT16":
        half: np.dtype[Any] = np.dtype(importlib.import_module("ml_dtypes").bfloat16)
        return half
    return np.dtype(DTYPES[dtype].python)


def dtype_name(dtype: npt.DTypeLike) -> str:
    """The name that `numpy_dtype` takes."""
    name = np.dtype(dtype).name
    found = next((known.name for known in DTYPES.values() if known.python == name), None)
    if found is None:
        raise KeyError(name)
    return found


def compute_dtype(inputs: Sequence[Array]) -> str:
    """What the library computes in: DOUBLE when an input is, else FLOAT."""
    return "DOUBLE" if any(x.dtype == np.float64 for x in inputs) else "FLOAT"


def rounded_attributes(op: Op, attributes: Attributes, compute: str) -> Attributes:
    """Attributes as the kernel sees them: scalars rounded to fp32 unless it computes in DOUBLE."""
    if compute == "DOUBLE":
        return attributes
    scalars = {p.python_name for p in op.attributes if p.kind == "scalar"}
    return {k: float(np.float32(v)) if k in scalars else v for k, v in attributes.items()}


def evaluate(
    op: Op,
    inputs: Sequence[Array],
    attributes: Attributes,
    rounding: bool = True,
    formula: Callable[..., Any] | None = None,
) -> tuple[Array, ...]:
    """The outputs: the formula on the exact inputs, in float64, in long double for DOUBLE.
    `rounding`: of scalars, as phase 1 does. `formula`: another one."""
    compute = compute_dtype(inputs)
    wider = np.longdouble if compute == "DOUBLE" else np.float64
    with np.errstate(all="ignore"):
        exact = [x.astype(np.float64).astype(wider) for x in inputs]
        named = rounded_attributes(op, attributes, compute) if rounding else attributes
        if compute == "DOUBLE":  # products of attributes, too, are rounded to more digits
            named = {k: wider(v) if isinstance(v, float) else v for k, v in named.items()}
        found = (formula or REFERENCES[op.kernel].formula)(*exact, **named)
    return found if isinstance(found, tuple) else (found,)


def absolute_terms(
    op: Op, inputs: Sequence[Array], attributes: Attributes
) -> tuple[Array, ...] | None:
    """The sums of the absolute terms of each output, where results are such sums."""
    terms = REFERENCES[op.kernel].terms
    if terms is None:
        return None
    wider = np.longdouble if compute_dtype(inputs) == "DOUBLE" else np.float64
    with np.errstate(all="ignore"):
        return terms(*(x.astype(np.float64).astype(wider) for x in inputs), **attributes)


def bound_of(op: Op, dtype: str) -> float:
    """The share of the sum of absolute terms by which a result in this dtype may be off."""
    return REFERENCES[op.kernel].bound["DOUBLE" if dtype == "DOUBLE" else "FLOAT"]


def scaled_errors(op: Op, actual: Array, reference: Array, terms: Array) -> Array:
    """Each error as a share of the bound: of `bound_of` times the sum of absolute terms, beside
    the rounding to a dtype of 16 bits and what subnormals cannot hold. At most 1 is kept."""
    dtype = dtype_name(actual.dtype)
    form = DTYPES[dtype]
    with np.errstate(all="ignore"):
        step = 0.0 if form.digits >= DTYPES["FLOAT"].digits else 2.0**-form.digits
        got, due = _overflow_as_number(actual, reference, dtype)
        least = np.ldexp(due.dtype.type(1), form.least - form.digits)  # 0 in float64 for DOUBLE
        error = np.abs(got - due) / (bound_of(op, dtype) * terms + step * np.abs(due) + least)
    same = (actual.astype(np.float64) == reference) | (np.isnan(actual) & np.isnan(reference))
    return np.where(same, 0, np.where(np.isnan(error) | np.isinf(reference), np.inf, error))


def scaled_error(op: Op, actual: Array, reference: Array, terms: Array) -> float:
    """The largest of `scaled_errors`."""
    return float(scaled_errors(op, actual, reference, terms).max(initial=0))


def accuracy(op: Op, compute: str, output: str) -> tuple[str, float]:
    """How to judge an output: the coarser dtype, whose ULP counts, and how many."""
    ulp = REFERENCES[op.kernel].ulp
    if DTYPES[output].digits < DTYPES[compute].digits:
        return output, ulp["half"]
    return compute, ulp[compute]


def last_place(reference: Array, dtype: str) -> Array:
    """The unit of the last place that `dtype` has at the reference. Zero and subnormals have the
    unit of the least normal number."""
    form = DTYPES[dtype]
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(reference)  # of 0.1f * 2^exponent
        exponent = np.where(reference == 0, form.least, exponent - 1)  # frexp(0) says 0
        exponent = np.clip(exponent, form.least, form.greatest)
        return np.asarray(np.ldexp(reference.dtype.type(1), exponent - form.digits + 1))


def _overflow_as_number(actual: Array, reference: Array, dtype: str) -> tuple[Array, Array]:
    """Both in the wider type of the reference. An infinite result stands for 2^(greatest + 1), to
    which a correctly rounded overflow is within half a unit: what is due beyond it is cut there."""
    wider = np.result_type(reference, np.longdouble if dtype == "DOUBLE" else np.float64)
    expected = np.asarray(reference, wider)
    top = np.ldexp(wider.type(1), DTYPES[dtype].greatest + 1)
    got = np.asarray(actual).astype(np.float64).astype(wider)
    infinite = np.isinf(got)
    return (
        np.where(infinite, np.copysign(top, got), got),
        np.where(infinite, np.clip(expected, -top, top), expected),
    )


def ulp_error(actual: Array, reference: Array, dtype: str) -> Array:
    """|actual - reference| in units of the last place, exactly.

    Infinite where only one is NaN or only the reference an infinity, or where a zero has the wrong
    sign. For infinite results see `_overflow_as_number`.
    """
    with np.errstate(all="ignore"):
        got, due = _overflow_as_number(actual, reference, dtype)
        error = np.abs(got - due) / last_place(np.asarray(reference, due.dtype), dtype)
        exact = np.asarray(actual).astype(np.float64)
        error = np.where(np.isinf(reference), np.where(exact == reference, 0, np.inf), error)
        error = np.where((got == 0) & (np.signbit(got) != np.signbit(reference)), np.inf, error)
        both = np.isnan(got) & np.isnan(reference)
        return np.where(both, 0, np.where(np.isnan(got) | np.isnan(reference), np.inf, error))


def counted(op: Op, error: Array, reference: Array, dtype: str) -> Array:
    """The part of such errors that the promise limits: `lost` of a FLOAT result is subtracted."""
    lost = REFERENCES[op.kernel].lost
    if dtype != "FLOAT" or lost == 0:
        return error
    return np.maximum(error - lost / last_place(reference, dtype), 0)


def rounded(values: Array, dtype: str) -> Array:
    """Float64 values in `dtype`, rounded once, to nearest even."""
    form = DTYPES[dtype]
    with np.errstate(all="ignore"):
        exponent = np.clip(np.frexp(values)[1] - 1, form.least, form.greatest)
        unit = np.ldexp(1.0, exponent - form.digits + 1)
        nearest = np.where(np.isfinite(values), np.rint(values / unit) * unit, values)
        over = np.abs(nearest) >= np.ldexp(np.longdouble(1), form.greatest + 1)
        return np.where(over, np.copysign(np.inf, nearest), nearest).astype(numpy_dtype(dtype))


def special_values(op: Op, dtype: str, attributes: Attributes) -> Array:
    """Zeros, infinities, NaNs, the ends of the range, the special points and their neighbours."""
    kind, form = numpy_dtype(dtype), DTYPES[dtype]
    tiny, least = math.ldexp(1, form.least - form.digits + 1), math.ldexp(1, form.least)
    largest = math.ldexp(2 - math.ldexp(1, 1 - form.digits), form.greatest)
    values = [0.0, 1.0, tiny, least, largest, math.inf]
    for point in REFERENCES[op.kernel].special(attributes).values():
        if math.isfinite(point) and point != 0:
            step = math.ldexp(1, max(math.frexp(point)[1] - 1, form.least) - form.digits + 1)
            values += [point - step, point, point + step]
    with np.errstate(all="ignore"):
        points = np.array(values).astype(kind)
    nans = np.copysign(np.array([math.nan, math.nan]), [1, -1]).astype(kind)
    return np.concatenate([points, -points, nans])


def input_shapes(
    op: Op, shape: tuple[int, ...], attributes: Attributes
) -> tuple[tuple[int, ...], ...]:
    """The shape of each input when that of the first is `shape`."""
    known = op.known_sizes({op.input_tensors[0].name: shape}, attributes)
    forms = (p.form for p in op.input_tensors)
    return tuple(shape if form.broadcast else shape_of(form, known) for form in forms)


def sample(
    op: Op,
    shape: tuple[int, ...],
    dtype: str,
    seed: int,
    attributes: Attributes | None = None,
    companion: str | None = None,
) -> list[Array]:
    """One array for each input: ordinary values of its domain. In a pointwise row a quarter of them
    are special; elsewhere one infinity would leave nothing to see. `companion` is the dtype of the
    inputs that may have another."""
    rng = np.random.default_rng(seed)
    reference = REFERENCES[op.kernel]
    chosen_attributes = attributes or reference.usual
    shapes = input_shapes(op, shape, chosen_attributes)
    inputs = []
    for p, draw, own in zip(op.input_tensors, reference.domain, shapes, strict=True):
        kind = companion if companion is not None and p.companion else dtype
        n = math.prod(own)
        with np.errstate(all="ignore"):
            values = draw(rng, n).astype(numpy_dtype(kind))
        if op.pointwise:
            special = special_values(op, kind, chosen_attributes)
            chosen = rng.random(n) < 0.25
            values[chosen] = rng.choice(special, np.count_nonzero(chosen))
        inputs.append(values.reshape(own))
    return inputs
