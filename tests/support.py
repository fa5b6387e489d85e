# SPDX-License-Identifier: Apache-2.0
"""What the test files share: calls by row, memory layouts, the judge. Names no operator."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import pytest

import openaclnn
from openaclnn.reference import judge
from openaclnn.reference.compare import worst_elements
from openaclnn.reference.evaluation import (
    REFERENCES,
    evaluate,
    input_shapes,
    numpy_dtype,
    sample,
    special_values,
)
from openaclnn.reference.layouts import LAYOUTS as LAYOUTS
from openaclnn.reference.standards import Standard
from openaclnn.reference.verdicts import verdict
from openaclnn.rows.gradients import sources
from openaclnn.rows.schema import Op, Parameter
from openaclnn.rows.table import OPS, PRODUCTS

SEED = int(os.environ.get("SEED", 20240607))  # tests/long_run.py gives others
AN_ARRAY = "a NumPy array, a torch tensor or a DLPack producer"
FLOATS = ("FLOAT", "FLOAT16", "DOUBLE", "BFLOAT16")  # in the order of aclDataType
HALVES = ("FLOAT16", "BFLOAT16")
TITLES = {product.key: product.title for product in PRODUCTS}
# Set by the commands for the programs that they start, or read by the tests only.
INTERNAL_VARIABLES = {
    f"OPENACLNN_{name}"
    for name in (
        "CHECK_SEEN", "REPORT", "REPORTED_NAMES", "REPORT_PRODUCTS", "TEST_SEED", "TRACE_SEEN",
        "WHEELS",
    )
}  # fmt: skip


def without_diffs(page: str) -> str:
    """A page in Markdown without its blocks of diff, whose C++ reads like links and variables."""
    return re.sub(r"^```diff\n.*?^```$", "", page, flags=re.M | re.S)


def text(attributes) -> str:
    values = (value for value in attributes.values() if value is not None)
    return ",".join(f"{value:g}" for value in values) or "plain"


def shape_for(op: Op, usual: tuple[int, ...]) -> tuple[int, ...]:
    """The usual shape, and for a row that is not pointwise the example of its reference."""
    return usual if op.pointwise else REFERENCES[op.kernel].example


def rows(condition=lambda op: True):
    """The pointwise rows."""
    return all_rows(lambda op: op.pointwise and condition(op))


def all_rows(condition=lambda op: True):
    """The rows of all families as parameters of a test."""
    return [pytest.param(op, id=op.name) for op in OPS if condition(op)]


def row_dtypes(condition=lambda op: True):
    """Row x dtype as parameters of a test."""
    return [
        pytest.param(op, dtype, id=f"{op.name}-{dtype}")
        for op in OPS
        for dtype in op.dtypes
        if condition(op)
    ]


def cases(dtypes=FLOATS, condition=lambda op: True):
    """Row x dtype x attribute set as parameters of a test."""
    return [
        pytest.param(op, dtype, attributes, id=f"{op.name}-{dtype}-{text(attributes)}")
        for op in OPS
        for dtype in op.dtypes
        for attributes in REFERENCES[op.kernel].attributes
        if dtype in dtypes and condition(op)
    ]


# ---- calls ----


def call(op: Op, inputs, attributes, out=None):
    """The Python function of a row. An in-place one works on `out`, or else on a copy."""
    tensors = list(inputs)
    if op.inplace:
        tensors[0] = tensors[0].copy() if out is None else out
        if out is not None:
            out[...] = inputs[0]
    named = {p.python_name: x for p, x in zip(op.input_tensors, tensors, strict=True)} | dict(
        attributes
    )
    if out is not None and not op.inplace:
        named["out"] = out
    return getattr(openaclnn, op.python)(**named)


def results(op: Op, inputs, attributes, out=None) -> tuple:
    """The outputs of a call, as a tuple also where there is one."""
    found = call(op, inputs, attributes, out)
    return found if isinstance(found, tuple) else (found,)


def arguments(op: Op, shape=None, dtype: str | None = None, attributes=None) -> dict[str, Any]:
    """Good arguments of phase 1 by C name: tensors of ones and, if none is given, the first
    attribute set."""
    reference = REFERENCES[op.kernel]
    kind, attributes = numpy_dtype(dtype or op.dtypes[0]), attributes or reference.attributes[0]
    shapes = input_shapes(op, shape or reference.example, attributes)
    ones = [np.ones(s, kind) for s in shapes]
    made = {p.name: x for p, x in zip(op.input_tensors, ones, strict=True)}
    outputs = [x.shape for x in evaluate(op, ones, attributes)]
    made |= {
        p.name: np.ones(s, kind)
        for p, s in zip(op.outputs, outputs, strict=True)
        if p.role == "output"
    }
    return {
        p.name: attributes[p.python_name] if p.role == "attribute" else made[p.name]
        for p in op.parameters
    }


def sampled(op: Op, dtype: str, attributes, shape=None):
    """Arguments by C name, their outputs, and the results of the Python function."""
    shape = shape or shape_for(op, (3, 41))
    inputs = sample(op, shape, dtype, SEED, attributes)
    named = arguments(op, shape, dtype, attributes)
    named |= {p.name: x.copy() for p, x in zip(op.input_tensors, inputs, strict=True)}
    named |= {p.name: attributes[p.python_name] for p in op.attributes}
    return named, [named[p.name] for p in op.outputs], results(op, inputs, attributes)


def gradient_call(op: Op, inputs, outputs, incoming, attributes) -> tuple[list, dict[str, Any]]:
    """Inputs and attributes of the gradient's row, for the gradient of that call."""
    values = {p.name: x for p, x in zip(op.input_tensors, inputs, strict=True)}
    values |= {p.name: y for p, y in zip(op.outputs, outputs, strict=True)}
    values |= {p.name: attributes[p.python_name] for p in op.attributes}
    tensors, named = [], {}
    for s in sources(op):
        if s.kind == "made":
            continue
        known = {"incoming": incoming, "constant": s.constant, "wanted": True}
        value = known[s.kind] if s.kind in known else values[s.name]
        if s.parameter.kind == "tensor":
            tensors.append(value)
        else:
            named[s.parameter.python_name] = value
    return tensors, named


def same(found, expected) -> bool:
    return all((bits(a) == bits(b)).all() for a, b in zip(found, expected, strict=True))


def plan(op: Op, named: dict[str, Any]):
    return openaclnn.plan(op.name, *(named[p.name] for p in op.parameters))


def refusal(op: Op, named: dict[str, Any]) -> tuple[int | type, str]:
    """Status and sentence of a phase 1 that must fail; TypeError for what is no array."""
    return refusal_of(lambda: plan(op, named))


def refusal_of(call) -> tuple[int | type, str]:
    with pytest.raises((openaclnn.AclnnError, TypeError)) as caught:
        call()
    return getattr(caught.value, "status", TypeError), str(caught.value)


def wide_dtypes(op: Op) -> list[str]:
    """The dtypes whose results a row can round to a 16-bit output."""
    castable = op.output == "castable" and not op.inplace
    return [dtype for dtype in op.dtypes if castable and dtype not in HALVES]


def boundaries(half: str, dtype: str):
    """Where rounding to 16 bits changes: halfway between neighbours, and a step to each side."""
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
    """Asserts that every element is within what its kernel promises and every NaN is canonical."""
    got = actual if isinstance(actual, (tuple, list)) else (actual,)
    for output in judge.outputs(op, inputs, attributes, got):
        found = verdict(output, Standard())
        where = f"{op.name}, {output.name}, {dict(attributes)}, seed {seed}"
        assert found.passed, f"{where}: {found.reason}; {worst_elements(output, found, 1)}"
        assert output.other_nans == 0, f"{where}: NaN with other bits"


def grid(op: Op, dtype: str, attributes):
    """Every combination of special values, one array for each input."""
    special = special_values(op, dtype, attributes)
    mesh = np.meshgrid(*[special] * len(op.input_tensors), indexing="ij")
    return [x.reshape(-1) for x in mesh]


# ---- sentences ----

# The rules a row may name: attributes that break one, and the library's sentence.
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
    free = parameter.role == "output" and op.output == "castable"
    named = FLOATS if free else op.dtypes
    bfloat16 = next(p.bfloat16 for p in PRODUCTS if p.key == product)
    return [d for d in FLOATS if d in named and (bfloat16 or d != "BFLOAT16")]
