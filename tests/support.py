# SPDX-License-Identifier: Apache-2.0
"""What the test files share: calls by row, memory layouts, the judge. Names no operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import openaclnn
from openaclnn.reference import (
    CANONICAL_NAN,
    REFERENCES,
    accuracy,
    compute_dtype,
    dtype_name,
    evaluate,
    numpy_dtype,
    special_values,
    ulp_error,
)
from openaclnn.schema import Op, Parameter
from openaclnn.table import OPS, PRODUCTS

SEED = 20240607
FLOATS = ("FLOAT", "FLOAT16", "DOUBLE", "BFLOAT16")  # in the order of aclDataType
HALVES = ("FLOAT16", "BFLOAT16")
TITLES = {product.key: product.title for product in PRODUCTS}


def text(attributes) -> str:
    return ",".join(f"{value:g}" for value in attributes.values()) or "plain"


def rows(condition=lambda op: True):
    """The rows as parameters of a test."""
    return [pytest.param(op, id=op.name) for op in OPS if condition(op)]


def cases(dtypes=FLOATS):
    """Row x dtype x attribute set as parameters of a test."""
    return [
        pytest.param(op, dtype, attributes, id=f"{op.name}-{dtype}-{text(attributes)}")
        for op in OPS
        for dtype in op.dtypes
        for attributes in REFERENCES[op.kernel].attributes
        if dtype in dtypes
    ]


# ---- calls ----


def call(op: Op, inputs, attributes, out=None):
    """The Python function of a row. An in-place one works on `out`, or else on a copy."""
    tensors = list(inputs)
    if op.inplace:
        tensors[0] = tensors[0].copy() if out is None else out
        if out is not None:
            out[...] = inputs[0]
    named = {p.python_name: x for p, x in zip(op.inputs_, tensors, strict=True)} | dict(attributes)
    if out is not None and not op.inplace:
        named["out"] = out
    return getattr(openaclnn, op.python)(**named)


def arguments(op: Op, shape=(2, 3), dtype: str | None = None) -> dict[str, Any]:
    """Good arguments of phase 1 by C name: tensors of ones and the first attribute set."""
    kind = numpy_dtype(dtype or op.dtypes[0])
    attributes = REFERENCES[op.kernel].attributes[0]
    return {
        p.name: attributes[p.python_name] if p.role == "attribute" else np.ones(shape, kind)
        for p in op.parameters
    }


def plan(op: Op, named: dict[str, Any]):
    return openaclnn.plan(op.name, *(named[p.name] for p in op.parameters))


def refusal(op: Op, named: dict[str, Any]) -> tuple[int, str]:
    """Status and sentence of a phase 1 that must fail."""
    with pytest.raises(openaclnn.AclnnError) as caught:
        plan(op, named)
    return caught.value.status, str(caught.value)


# ---- layouts: the same values elsewhere in memory ----


def _strided(x):
    wide = np.ones([2 * n + 1 for n in x.shape], x.dtype)
    wide[tuple(slice(1, None, 2) for _ in x.shape)] = x
    return wide[tuple(slice(1, None, 2) for _ in x.shape)]


def _flipped(x):
    back = tuple(slice(None, None, -1) for _ in x.shape)
    return x[back].copy()[back]


def _offset(x):
    flat = np.ones(x.size + 3, x.dtype)
    flat[3:] = x.reshape(-1)
    return flat[3:].reshape(x.shape)


def _padded(x):
    if x.ndim == 0:
        return x.copy()
    wide = np.ones((*x.shape[:-1], x.shape[-1] + 5), x.dtype)
    wide[..., 2:-3] = x
    return wide[..., 2:-3]


LAYOUTS = {
    "contiguous": lambda x: x.copy(),
    "transposed": lambda x: x.T.copy().T,
    "swapped": lambda x: x.swapaxes(0, -1).copy().swapaxes(0, -1) if x.ndim else x.copy(),
    "strided": _strided,
    "flipped": _flipped,
    "offset": _offset,
    "padded": _padded,
}


def wide_dtypes(op: Op) -> list[str]:
    """The dtypes whose results a row can round to a 16-bit output."""
    castable = op.output == "castable" and not op.inplace
    return [dtype for dtype in op.dtypes if castable and dtype not in HALVES]


def boundaries(half: str, dtype: str):
    """Where rounding to a 16-bit dtype turns: halfway between neighbours, a step to each side."""
    patterns = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(all="ignore"):
        low, high = (p.view(numpy_dtype(half)).astype(np.float64) for p in (patterns, patterns + 1))
        middle = ((low + high) / 2).astype(numpy_dtype(dtype))
    finite = middle[np.isfinite(middle)]
    return np.concatenate([finite, np.nextafter(finite, -np.inf), np.nextafter(finite, np.inf)])


# ---- the judge ----


def bits(x):
    """The bit patterns of an array, as unsigned integers."""
    return x.view(f"u{x.dtype.itemsize}")


def assert_accurate(op: Op, inputs, attributes, actual, seed=None) -> None:
    """Every element within the tolerance of its kernel; every NaN the canonical one."""
    expected = evaluate(op, inputs, attributes)
    dtype = dtype_name(actual.dtype)
    unit, limit = accuracy(op, compute_dtype(inputs), dtype)
    assert actual.shape == expected.shape
    if actual.size == 0:
        return
    error = ulp_error(actual, expected, unit)
    at = np.unravel_index(np.argmax(error), error.shape)
    given = [str(np.broadcast_to(x, expected.shape)[at]) for x in inputs]
    assert error[at] <= limit, (
        f"{op.name}({', '.join(given)}, {dict(attributes)}) must be {expected[at]!r} within "
        f"{limit} ulp, but is {actual[at]!s}, off by {error[at]:.6g} (index {at}, seed {seed})"
    )
    nans = bits(actual)[np.isnan(actual)]
    assert (nans == CANONICAL_NAN[dtype]).all(), f"{op.name}: NaN with other bits (seed {seed})"


def grid(op: Op, dtype: str, attributes):
    """Every combination of special values, one array for each input."""
    special = special_values(op, dtype, attributes)
    mesh = np.meshgrid(*[special] * len(op.inputs_), indexing="ij")
    return [x.reshape(-1) for x in mesh]


# ---- sentences ----

# The rules a row may name: attributes that break one, and what the library answers.
RULES = {
    "slope_of_result": (
        {"negativeSlope": -0.5, "selfIsResult": True},
        "negativeSlope must be at least 0 when selfIsResult is true, but got -0.5",
    ),
    "alpha_of_result": (
        {"alpha": -0.5, "isResult": True},
        "alpha must be at least 0 when isResult is true, but got -0.5",
    ),
}


def either(words) -> str:
    """`a`, `a or b`, `a, b or c`."""
    *head, last = words
    return f"{', '.join(head)} or {last}" if head else last


def dtypes_on(op: Op, parameter: Parameter, product: str) -> list[str]:
    """The dtypes that a tensor of a row may have on a product."""
    named = FLOATS if parameter.role == "output" else op.dtypes
    bfloat16 = next(p.bfloat16 for p in PRODUCTS if p.key == product)
    return [d for d in FLOATS if d in named and (bfloat16 or d != "BFLOAT16")]
