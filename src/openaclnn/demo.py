# SPDX-License-Identifier: Apache-2.0
"""`openaclnn demo`: every operator of the table on telling inputs, against its reference."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import AclnnError
from .plan import plan
from .reference import (
    FORMATS,
    REFERENCES,
    accuracy,
    compute_dtype,
    evaluate,
    numpy_dtype,
    sample,
    ulp_error,
)
from .schema import Op, Product
from .settings import config
from .table import OPS, PRODUCTS
from .text_table import Paint, columns

Array = npt.NDArray[Any]
Verdict = bool | None  # whether a promise was kept; None: it could not be measured

ELEMENTS = 1 << 20
PERIOD = 65_521  # different inputs; a prime, so that each comes to lie at 16 places of a vector
REPEATS = 9
SEED = 2


@dataclass(frozen=True)
class Measured:
    """One operator on 1 Mi elements of one dtype."""

    dtype: str
    unit: str  # the dtype whose last place counts
    error: float
    allowed: float
    same_bits: bool  # for the same input, wherever it stood
    nanoseconds: float

    @property
    def kept(self) -> bool:
        return self.error <= self.allowed and self.same_bits


def run(
    op: Op, inputs: list[Array], attributes: Mapping[str, Any], repeats: int = 1
) -> tuple[Array, float]:
    """The result, and the fastest run in seconds. The inputs are not changed."""
    own = [x.copy() if p.role == "inout" else x for x, p in zip(inputs, op.inputs_, strict=True)]
    named: dict[str, Any] = {p.name: x for p, x in zip(op.inputs_, own, strict=True)}
    named |= {p.name: np.empty_like(inputs[0]) for p in op.outputs if p.role == "output"}
    planned = plan(op.name, **named, **attributes)
    seconds = float("inf")
    for _ in range(repeats):
        for x, original in zip(own, inputs, strict=True):
            if x is not original:
                x[...] = original
        start = time.perf_counter()
        planned.run()
        seconds = min(seconds, time.perf_counter() - start)
    result: Array = named[op.outputs[0].name]
    return result, seconds


def measure(op: Op, dtype: str) -> Measured:
    attributes = REFERENCES[op.kernel].attributes[0]
    inputs = sample(op, (PERIOD,), dtype, SEED, attributes)
    result, _ = run(op, [np.resize(x, ELEMENTS) for x in inputs], attributes)
    _, seconds = run(op, ordinary_values(op, dtype), attributes, REPEATS)
    bits = result.view(f"u{result.dtype.itemsize}")
    unit, allowed = accuracy(op, compute_dtype(inputs), dtype)
    error = ulp_error(result[:PERIOD], evaluate(op, inputs, attributes), unit)
    return Measured(
        dtype=dtype,
        unit=unit,
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
    inputs = telling_points(op, dtype)
    attributes = REFERENCES[op.kernel].attributes[0]
    result, _ = run(op, inputs, attributes)
    named = zip(op.inputs_, inputs, strict=True)
    rows = [[p.python_name, *map(_number, x)] for p, x in named]
    rows.append(["→", *map(_number, result)])
    lines = columns(rows, "l" + "r" * result.size)
    return [*(paint(line, "dim") for line in lines[:-1]), lines[-1]]


def _result_lines(op: Op, dtypes: list[str], paint: Paint) -> tuple[list[str], list[Verdict]]:
    """The lines of the table, and what was found for each dtype."""
    rows = [["dtype", "worst error", "promised", "ns/element", ""]]
    verdicts: list[Verdict] = []
    for dtype in dtypes:
        try:
            m = measure(op, dtype)
        except ModuleNotFoundError as error:
            rows.append([dtype, "-", "-", "-", f"needs {error.name}: pip install {error.name}"])
            verdicts.append(None)
            continue
        unit = "" if m.unit == dtype else f" of {m.unit}"
        verdict = "kept" if m.kept else "BROKEN" if m.same_bits else "BROKEN: bits depend on place"
        rows.append(
            [dtype, f"{m.error:.4f} ulp{unit}", f"{m.allowed:.4f}", f"{m.nanoseconds:.3f}", verdict]
        )
        verdicts.append(m.kept)
    lines = columns(rows, "lrrrl", gap=4)
    shown = [paint(lines[0], "dim")]
    for line, row, kept in zip(lines[1:], rows[1:], verdicts, strict=True):
        verdict = row[-1]
        style = ("dim",) if kept is None else ("green",) if kept else ("red", "bold")
        shown.append(line.removesuffix(verdict) + paint(verdict, *style))
    return shown, verdicts


def _refused() -> AclnnError | None:
    """What the library answers to an output of the wrong shape, or of an operator it lacks."""
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


def _show_operator(op: Op, product: Product, paint: Paint) -> list[Verdict]:
    print(f"\n{paint(op.name, 'bold', 'cyan')}  {op.formula}")
    if product.key not in op.products:
        other = f"OPENACLNN_PRODUCT={op.products[-1]} openaclnn demo"
        print(f"  not on {product.title}; try:  {other}")
        return []
    dtypes = [d for d in op.dtypes if d != "BFLOAT16" or product.bfloat16]
    attributes = _attributes_text(op, REFERENCES[op.kernel].attributes[0])
    if attributes:
        print(f"  with {attributes}")
    lines, verdicts = _result_lines(op, dtypes, paint)
    for line in [*_points_lines(op, dtypes[0], paint), "", *lines]:
        print(f"  {line}".rstrip(), flush=True)
    return verdicts


def _show_refusal(paint: Paint) -> list[Verdict]:
    print(f"\n{paint('A call that cannot be right is refused with one sentence:', 'bold')}")
    error = _refused()
    if error is None:
        print(f"  {paint('BROKEN: an output of the wrong shape was accepted', 'red', 'bold')}")
        return [False]
    print(textwrap.fill(str(error), 98, initial_indent="  ", subsequent_indent="  "))
    print(f"  {paint(f'{error.status} {error.name}', 'dim')}")
    return []


def demo(paint: Paint) -> int:
    """Prints the show; 1 when a promise was broken, else 0."""
    now = config()
    product = next(p for p in PRODUCTS if p.key == now["product"])
    print(f"{paint('openaclnn', 'bold')} {now['version']}, playing {product.title}")
    print(
        f"Distance  {PERIOD:,} inputs, a quarter of them special, at {ELEMENTS:,} places, from\n"
        "          the formula in float64 (DOUBLE: long double), in units of the last place\n"
        f"Time      the fastest of {REPEATS} runs on {ELEMENTS:,} ordinary values"
    )
    verdicts: list[Verdict] = []
    for op in OPS:
        verdicts += _show_operator(op, product, paint)
    none = not verdicts
    verdicts += _show_refusal(paint)

    if False in verdicts:
        closing = paint("A promise was broken: please report this.", "bold", "red")
    elif none:
        closing = paint(f"{product.title} has none of the operators.", "bold")
    elif None in verdicts:
        closing = paint("Every promise that could be measured was kept.", "bold", "green")
    else:
        closing = paint("Every promise was kept.", "bold", "green")
    threads = f"{now['threads']} thread{'s' if now['threads'] != 1 else ''}"
    print(
        f"\n{closing}\nNo NPU was used: all results were computed by openaclnn on this CPU "
        f"({now['kernels']} kernels, {threads})."
    )
    return 1 if False in verdicts else 0
