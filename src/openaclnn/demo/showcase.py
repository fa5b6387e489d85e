# SPDX-License-Identifier: Apache-2.0
"""What `openaclnn demo` shows: every operator on revealing inputs, compared with its reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import AclnnError
from ..plan import plan
from ..reference.arrays import Array
from ..reference.dtypes import missing_module
from ..reference.evaluation import (
    REFERENCES,
    absolute_terms,
    accuracy,
    bound_of,
    compute_dtype,
    counted,
    evaluate,
    numpy_dtype,
    sample,
    scaled_error,
    ulp_error,
)
from ..reference.execute import execute
from ..rows.catalogue import formula_lines
from ..rows.dtypes import DTYPES
from ..rows.schema import Op, Product
from ..rows.table import OPS
from ..settings import config

SCHEMA = "openaclnn demo 1"

ELEMENTS = 1 << 20
PERIOD = 65_521  # different inputs; a prime, so that each comes to lie at 16 places of a vector
REPEATS = 9
SEED = 2


@dataclass(frozen=True)
class Measured:
    """One operator on 1 Mi elements of one dtype."""

    dtype: str
    unit: str  # of the errors
    error: float
    allowed: float
    same_bits: bool  # for the same input, wherever it stood
    nanoseconds: float

    @property
    def kept(self) -> bool:
        return self.error <= self.allowed and self.same_bits

    @property
    def verdict(self) -> str:
        if not self.same_bits:
            return "BROKEN: bits depend on place"
        return "kept" if self.kept else "BROKEN"


@dataclass(frozen=True)
class Shown:
    """One operator; one that the product lacks has no points and no measurements."""

    op: Op
    attributes: Mapping[str, Any]
    points: Mapping[str, Array]  # inputs by name, and the results under the name of the output
    measured: Sequence[Measured]


@dataclass(frozen=True)
class Demo:
    """All of them, and the error of a call that must be refused."""

    product: Product
    left_out: Mapping[str, str]  # dtypes, and the module that each needs
    shown: Sequence[Shown]
    refusal: AclnnError | None

    @property
    def measured(self) -> list[Measured]:
        return [m for one in self.shown for m in one.measured]

    @property
    def broken(self) -> bool:
        return self.refusal is None or not all(m.kept for m in self.measured)

    @property
    def closing(self) -> str:
        if self.broken:
            return "A promise was broken: please report this."
        if not self.measured:
            return f"{self.product.title} has none of the operators."
        if self.left_out:
            return "Every promise that could be measured was kept."
        return "Every promise was kept."


def measure_sums(op: Op, dtype: str) -> Measured:
    """Errors as shares of what is allowed; bits must not depend on strides."""
    attributes = REFERENCES[op.kernel].usual
    inputs = sample(op, REFERENCES[op.kernel].large, dtype, SEED, attributes)
    results, seconds = execute(op, inputs, attributes, REPEATS)
    terms = absolute_terms(op, inputs, attributes)
    assert terms is not None
    expected = evaluate(op, inputs, attributes)
    small = dtype in ("FLOAT16", "BFLOAT16")
    strided, _ = execute(op, [np.asarray(x, order="F") for x in inputs], attributes)
    return Measured(
        dtype=dtype,
        unit=f" of {bound_of(op, dtype):g} Σ|terms|{' + rounding' if small else ''}",
        error=max(
            scaled_error(op, *of_one) for of_one in zip(results, expected, terms, strict=True)
        ),
        allowed=1,
        same_bits=all(a.tobytes() == b.tobytes() for a, b in zip(results, strided, strict=True)),
        nanoseconds=seconds / ELEMENTS * 1e9,
    )


def measure(op: Op, dtype: str) -> Measured:
    if REFERENCES[op.kernel].terms is not None:
        return measure_sums(op, dtype)
    attributes = REFERENCES[op.kernel].usual
    inputs = sample(op, (PERIOD,), dtype, SEED, attributes)
    (result, *_), _ = execute(op, [np.resize(x, ELEMENTS) for x in inputs], attributes)
    _, seconds = execute(op, ordinary_values(op, dtype), attributes, REPEATS)
    bits = result.view(f"u{result.dtype.itemsize}")
    unit, allowed = accuracy(op, compute_dtype(inputs), dtype)
    (expected,) = evaluate(op, inputs, attributes)
    error = counted(op, ulp_error(result[:PERIOD], expected, unit), expected, unit)
    return Measured(
        dtype=dtype,
        unit=" ulp" if unit == dtype else f" ulp of {unit}",
        error=float(error.max()),
        allowed=allowed,
        same_bits=bool(np.array_equal(bits[PERIOD:], bits[:-PERIOD])),
        nanoseconds=seconds / ELEMENTS * 1e9,
    )


def ordinary_values(op: Op, dtype: str) -> list[Array]:
    """1 Mi values of the domain for each input: speed is not judged on subnormals."""
    rng = np.random.default_rng(SEED)
    with np.errstate(over="ignore"):
        drawn = [
            draw(rng, PERIOD).astype(numpy_dtype(dtype)) for draw in REFERENCES[op.kernel].domain
        ]
    return [np.resize(x, ELEMENTS) for x in drawn]


def telling_points(op: Op, dtype: str) -> list[Array]:
    """Infinities, zeros, subnormals, NaN, where the formula switches, and two plain numbers."""
    form = DTYPES[dtype]
    subnormal = 2.0 ** (form.least - form.digits + 1)
    switches = REFERENCES[op.kernel].special(REFERENCES[op.kernel].usual).values()
    values = [-np.inf, -2.0, *switches, -subnormal, -0.0, 0.0, subnormal, 1.5, np.inf, np.nan]
    distinct = list({repr(float(v)): v for v in values}.values())
    points = np.array(sorted(distinct, key=_order)).astype(numpy_dtype(dtype))
    count = len(REFERENCES[op.kernel].domain)
    return [np.roll(points, 4 * (count - 1 - i)) for i in range(count)]


def _order(value: float) -> tuple[bool, float, float]:
    return bool(np.isnan(value)), value, float(np.copysign(1, value))


def points_of(op: Op, dtype: str) -> dict[str, Array]:
    """Telling inputs by name, and the first result under the name of the output."""
    attributes = REFERENCES[op.kernel].usual
    if op.pointwise:
        inputs = telling_points(op, dtype)
    else:
        inputs = sample(op, (1, 8), dtype, SEED, attributes)
    (result, *_), _ = execute(op, inputs, attributes)
    named = zip(op.input_tensors, inputs, strict=True)
    points = {p.python_name: x for p, x in named if x.size == result.size}
    return points | {"→": result}


def refused() -> AclnnError | None:
    """The library's errors for an output of the wrong shape and for an operator it lacks."""
    product = config()["product"]
    plain = [op for op in OPS if not op.inplace]
    op = next((op for op in plain if product in op.products), plain[0])
    wrong = {
        p.name: np.ones((3, 2) if p.role == "output" else (2, 3), np.float32) for p in op.tensors
    }
    try:
        plan(op.name, **wrong, **REFERENCES[op.kernel].usual)
    except AclnnError as error:
        return error
    return None


def left_out(product: Product) -> dict[str, str]:
    """The dtypes that the product has and NumPy has not, with the module that each needs."""
    module = missing_module("BFLOAT16") if product.bfloat16 else ""
    return {"BFLOAT16": module} if module else {}


def show(op: Op, product: Product, missing: Mapping[str, str]) -> Shown:
    attributes = REFERENCES[op.kernel].usual
    dtypes = [d for d in op.accepted(product) if d not in missing]
    if not dtypes:
        return Shown(op, attributes, {}, [])
    return Shown(op, attributes, points_of(op, dtypes[0]), [measure(op, d) for d in dtypes])


# ---- for programs ----


def _json_number(value: Any) -> float | str:
    """JSON has neither NaN nor infinities."""
    number = float(value)
    return number if np.isfinite(number) else repr(number)


def as_data(demo: Demo) -> dict[str, Any]:
    now = config()
    return {
        "schema": SCHEMA,
        "openaclnn": now["version"],
        "product": demo.product.key,
        "kernels": now["kernels"],
        "threads": now["threads"],
        "kept": not demo.broken,
        "left_out": dict(demo.left_out),
        "operators": [_shown_data(one) for one in demo.shown],
        "refusal": demo.refusal
        and {
            "status": demo.refusal.status,
            "name": demo.refusal.name,
            "sentence": str(demo.refusal),
        },
    }


def _shown_data(one: Shown) -> dict[str, Any]:
    return {
        "name": one.op.name,
        "python": one.op.python,
        "formula": formula_lines(one.op, 1000),
        "attributes": {
            name: _json_number(v) if isinstance(v, float) else v
            for name, v in one.attributes.items()
        },
        "points": {
            "result" if name == "→" else name: [_json_number(v) for v in x.flat]
            for name, x in one.points.items()
        },
        "dtypes": {
            m.dtype: {
                "error": _json_number(m.error),
                "unit": m.unit.strip(),
                "promised": m.allowed,
                "same_bits": m.same_bits,
                "kept": m.kept,
                "ns_per_element": m.nanoseconds,
            }
            for m in one.measured
        },
    }
