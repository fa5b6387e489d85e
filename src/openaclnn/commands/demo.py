# SPDX-License-Identifier: Apache-2.0
"""`openaclnn demo`: every operator of the table on telling inputs, against its reference."""

from __future__ import annotations

import argparse
import textwrap
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..catalogue import formula_lines
from ..errors import AclnnError
from ..plan import plan
from ..reference import (
    FORMATS,
    REFERENCES,
    absolute_terms,
    accuracy,
    bound_of,
    compute_dtype,
    evaluate,
    numpy_dtype,
    sample,
    scaled_error,
    ulp_error,
)
from ..schema import Op, Product
from ..settings import config
from ..table import ANY, OPS, PRODUCTS
from ..text_table import Paint, columns

Array = npt.NDArray[Any]

ELEMENTS = 1 << 20
PERIOD = 65_521  # different inputs; a prime, so that each comes to lie at 16 places of a vector
REPEATS = 9
SEED = 2


def add_command(command: Callable[..., argparse.ArgumentParser]) -> None:
    command(
        "demo",
        demo,
        "run every operator and show how exact it is",
        "Runs every operator on special values (infinities, zeros, denormals, NaN, where the\n"
        "formula switches) and on 1 Mi elements of every dtype, and compares the results with\n"
        "the reference.\n\n"
        "Exit status 1 when a promised accuracy is not kept.\n\n"
        "  openaclnn demo\n"
        "  OPENACLNN_NUM_THREADS=1 openaclnn demo",
    )


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


def run(
    op: Op, inputs: list[Array], attributes: Mapping[str, Any], repeats: int = 1
) -> tuple[list[Array], float]:
    """The results, and the fastest run in seconds. The inputs are not changed."""
    own = [x.copy() if p.role == "inout" else x for x, p in zip(inputs, op.inputs_, strict=True)]
    named: dict[str, Any] = {p.name: x for p, x in zip(op.inputs_, own, strict=True)}
    made = [p for p in op.outputs if p.role == "output"]
    expected = evaluate(op, inputs, attributes)
    for p, like in zip(made, expected, strict=False):
        named[p.name] = np.empty(like.shape, inputs[0].dtype)
    planned = plan(op.name, **named, **attributes)
    seconds = float("inf")
    for _ in range(repeats):
        for x, original in zip(own, inputs, strict=True):
            if x is not original:
                x[...] = original
        start = time.perf_counter()
        planned.run()
        seconds = min(seconds, time.perf_counter() - start)
    return [named[p.name] for p in op.outputs], seconds


def measure_sums(op: Op, dtype: str) -> Measured:
    """Errors as shares of what is allowed; bits must not depend on strides."""
    attributes = REFERENCES[op.kernel].attributes[0]
    inputs = sample(op, REFERENCES[op.kernel].large, dtype, SEED, attributes)
    results, seconds = run(op, inputs, attributes, REPEATS)
    terms = absolute_terms(op, inputs, attributes)
    assert terms is not None
    expected = evaluate(op, inputs, attributes)
    small = dtype in ("FLOAT16", "BFLOAT16")
    strided, _ = run(op, [np.asarray(x, order="F") for x in inputs], attributes)
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
    attributes = REFERENCES[op.kernel].attributes[0]
    inputs = sample(op, (PERIOD,), dtype, SEED, attributes)
    (result, *_), _ = run(op, [np.resize(x, ELEMENTS) for x in inputs], attributes)
    _, seconds = run(op, ordinary_values(op, dtype), attributes, REPEATS)
    bits = result.view(f"u{result.dtype.itemsize}")
    unit, allowed = accuracy(op, compute_dtype(inputs), dtype)
    error = ulp_error(result[:PERIOD], evaluate(op, inputs, attributes)[0], unit)
    return Measured(
        dtype=dtype,
        unit=" ulp" if unit == dtype else f" ulp of {unit}",
        error=float(error.max()),
        allowed=allowed,
        same_bits=bool(np.array_equal(bits[PERIOD:], bits[:-PERIOD])),
        nanoseconds=seconds / ELEMENTS * 1e9,
    )


def ordinary_values(op: Op, dtype: str) -> list[Array]:
    """1 Mi values of the domain for each input: speed is not judged on denormals."""
    rng = np.random.default_rng(SEED)
    with np.errstate(over="ignore"):
        drawn = [
            draw(rng, PERIOD).astype(numpy_dtype(dtype)) for draw in REFERENCES[op.kernel].domain
        ]
    return [np.resize(x, ELEMENTS) for x in drawn]


def telling_points(op: Op, dtype: str) -> list[Array]:
    """Infinities, zeros, denormals, NaN, where the formula switches, and two plain numbers."""
    form = FORMATS[dtype]
    denormal = 2.0 ** (form.least - form.digits + 1)
    switches = REFERENCES[op.kernel].special(REFERENCES[op.kernel].attributes[0])
    values = [-np.inf, -2.0, *switches, -denormal, -0.0, 0.0, denormal, 1.5, np.inf, np.nan]
    distinct = list({repr(float(v)): v for v in values}.values())
    points = np.array(sorted(distinct, key=_order)).astype(numpy_dtype(dtype))
    count = len(REFERENCES[op.kernel].domain)
    return [np.roll(points, 4 * (count - 1 - i)) for i in range(count)]


def _order(value: float) -> tuple[bool, float, float]:
    return bool(np.isnan(value)), value, float(np.copysign(1, value))


def _number(value: Any) -> str:
    return f"{float(value):.3g}"


def _attributes_text(op: Op, attributes: Mapping[str, Any]) -> str:
    values = {
        p.python_name: bool(v) if p.kind == "bool" else v
        for p in op.attributes
        if (v := attributes.get(p.python_name)) is not None
    }
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _points_lines(op: Op, dtype: str, paint: Paint) -> list[str]:
    attributes = REFERENCES[op.kernel].attributes[0]
    if REFERENCES[op.kernel].terms is None:
        inputs = telling_points(op, dtype)
    else:
        inputs = sample(op, (1, 8), dtype, SEED, attributes)
    (result, *_), _ = run(op, inputs, attributes)
    named = zip(op.inputs_, inputs, strict=True)
    rows = [[p.python_name, *map(_number, x.flat)] for p, x in named if x.size == result.size]
    rows.append(["→", *map(_number, result.flat)])
    lines = columns(rows, "l" + "r" * result.size)
    return [*(paint(line, "dim") for line in lines[:-1]), lines[-1]]


def _result_lines(op: Op, dtypes: list[str], paint: Paint) -> tuple[list[str], list[bool]]:
    """The lines of the table, and what was found for each dtype."""
    rows = [["dtype", "worst error", "promised", "ns/element", ""]]
    verdicts: list[bool] = []
    for dtype in dtypes:
        m = measure(op, dtype)
        verdict = "kept" if m.kept else "BROKEN" if m.same_bits else "BROKEN: bits depend on place"
        rows.append(
            [dtype, f"{m.error:.4f}{m.unit}", f"{m.allowed:.4f}", f"{m.nanoseconds:.3f}", verdict]
        )
        verdicts.append(m.kept)
    lines = columns(rows, "lrrrl", gap=4)
    shown = [paint(lines[0], "dim")]
    for line, row, kept in zip(lines[1:], rows[1:], verdicts, strict=True):
        verdict = row[-1]
        style = ("green",) if kept else ("red", "bold")
        shown.append(line.removesuffix(verdict) + paint(verdict, *style))
    return shown, verdicts


def _refused() -> AclnnError | None:
    """The library's errors for an output of the wrong shape and for an operator it lacks."""
    product = config()["product"]
    plain = [op for op in OPS if not op.inplace]
    op = next((op for op in plain if product in op.products), plain[0])
    wrong = {
        p.name: np.ones((3, 2) if p.role == "output" else (2, 3), np.float32) for p in op.tensors
    }
    try:
        plan(op.name, **wrong, **REFERENCES[op.kernel].attributes[0])
    except AclnnError as error:
        return error
    return None


def _left_out(product: Product) -> dict[str, str]:
    """The dtypes that the product has and NumPy has not, with the module that each needs."""
    if not product.bfloat16:
        return {}
    try:
        numpy_dtype("BFLOAT16")
    except ModuleNotFoundError as error:
        return {"BFLOAT16": str(error.name)}
    return {}


def _show_operator(
    op: Op, product: Product, left_out: Mapping[str, str], paint: Paint
) -> list[bool]:
    print(f"\n{paint(op.name, 'bold', 'cyan')}")
    for formula in formula_lines(op, 92):
        print(f"  {formula}")
    if not op.accepted(product):
        other = f"OPENACLNN_PRODUCT={op.products[-1]} openaclnn demo"
        print(f"  not on {product.title}; try:  {other}")
        return []
    dtypes = [d for d in op.accepted(product) if d not in left_out]
    attributes = _attributes_text(op, REFERENCES[op.kernel].attributes[0])
    if attributes:
        print(f"  with {attributes}")
    lines, verdicts = _result_lines(op, dtypes, paint)
    for line in [*_points_lines(op, dtypes[0], paint), "", *lines]:
        print(f"  {line}".rstrip(), flush=True)
    return verdicts


def _show_refusal(paint: Paint) -> list[bool]:
    print(f"\n{paint('A call that cannot be right is refused with one sentence:', 'bold')}")
    error = _refused()
    if error is None:
        print(f"  {paint('BROKEN: an output of the wrong shape was accepted', 'red', 'bold')}")
        return [False]
    print(textwrap.fill(str(error), 98, initial_indent="  ", subsequent_indent="  "))
    print(f"  {paint(f'{error.status} {error.name}', 'dim')}")
    return []


def demo(_: argparse.Namespace, paint: Paint) -> int:
    """Prints the show; 1 when a promise was broken, else 0."""
    now = config()
    product = next(p for p in (*PRODUCTS, ANY) if p.key == now["product"])
    print(f"{paint('openaclnn', 'bold')} {now['version']}, playing {product.title}")
    print(
        f"Distance  {PERIOD:,} inputs, a quarter of them special, at {ELEMENTS:,} places, from\n"
        "          the formula in float64 (DOUBLE: long double), in units of the last place\n"
        f"Time      the fastest of {REPEATS} runs on {ELEMENTS:,} ordinary values"
    )
    left_out = _left_out(product)
    for dtype, module in left_out.items():
        print(f"{dtype} is left out: it needs {module} (pip install {module})")
    verdicts: list[bool] = []
    for op in OPS:
        verdicts += _show_operator(op, product, left_out, paint)
    none = not verdicts
    verdicts += _show_refusal(paint)

    if False in verdicts:
        closing = paint("A promise was broken: please report this.", "bold", "red")
    elif none:
        closing = paint(f"{product.title} has none of the operators.", "bold")
    elif left_out:
        closing = paint("Every promise that could be measured was kept.", "bold", "green")
    else:
        closing = paint("Every promise was kept.", "bold", "green")
    threads = f"{now['threads']} thread{'s' if now['threads'] != 1 else ''}"
    print(
        f"\n{closing}\nNo NPU was used: all results were computed by openaclnn on this CPU "
        f"({now['kernels']} kernels, {threads})."
    )
    return 1 if False in verdicts else 0
