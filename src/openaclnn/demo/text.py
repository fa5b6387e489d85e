# SPDX-License-Identifier: Apache-2.0
"""What `openaclnn demo` prints."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

from ..errors import AclnnError
from ..report.text_table import Paint, columns
from ..rows.catalogue import SHORT, attributes_text, formula_lines
from ..rows.schema import Product
from ..settings import config
from .showcase import ELEMENTS, PERIOD, REPEATS, Demo, Shown


def head(product: Product, left_out: Iterable[tuple[str, str]], paint: Paint) -> list[str]:
    lines = [
        f"{paint('openaclnn', 'bold')} {config()['version']} as {product.title}",
        f"Distance  {PERIOD:,} inputs, a quarter of them special, at {ELEMENTS:,} places, from",
        "          the formula in float64 (DOUBLE: long double), in units of the last place",
        f"Time      the fastest of {REPEATS} runs on {ELEMENTS:,} ordinary values",
    ]
    return lines + [
        f"{dtype} is left out: it needs {module} (pip install {module})"
        for dtype, module in left_out
    ]


def operator(one: Shown, product: Product, paint: Paint) -> list[str]:
    op = one.op
    lines = ["", paint(op.name, "bold", "cyan")]
    lines += [f"  {formula}" for formula in formula_lines(op, 92)]
    if not op.accepted(product):
        other = f"OPENACLNN_PRODUCT={op.products[-1]} openaclnn demo"
        return [*lines, f"  not on {product.title}; try:  {other}"]
    attributes = attributes_text(op, one.attributes)
    lines += [f"  with {attributes}"] if attributes else []
    return lines + [
        f"  {line}".rstrip() for line in [*_points(one, paint), "", *_results(one, paint)]
    ]


def number(value: Any) -> str:
    return f"{float(value):.3g}"


def _points(one: Shown, paint: Paint) -> list[str]:
    rows = [[name, *map(number, x.flat)] for name, x in one.points.items()]
    lines = columns(rows, "l" + "r" * (len(rows[0]) - 1))
    return [*(paint(line, "dim") for line in lines[:-1]), lines[-1]]


def _results(one: Shown, paint: Paint) -> list[str]:
    rows = [["dtype", "worst error", "promised", "ns/element", ""]]
    rows += [
        [m.dtype, f"{m.error:.4f}{m.unit}", f"{m.allowed:.4f}", f"{m.nanoseconds:.3f}", m.verdict]
        for m in one.measured
    ]
    lines = columns(rows, "lrrrl", gap=4)
    shown = [paint(lines[0], "dim")]
    for line, m in zip(lines[1:], one.measured, strict=True):
        style = ("green",) if m.kept else ("red", "bold")
        shown.append(line.removesuffix(m.verdict) + paint(m.verdict, *style))
    return shown


def summary(demo: Demo, paint: Paint) -> list[str]:
    """A line for each operator: the worst error of each dtype, the time of the first."""
    dtypes = list(dict.fromkeys(m.dtype for m in demo.measured))
    rows = [["worst error", *(SHORT[d] for d in dtypes), "ns/element" if dtypes else "", ""]]
    for one in demo.shown:
        found = {m.dtype: m for m in one.measured}
        if not found:
            rows.append([one.op.name, *("" for _ in dtypes), "", f"not on {demo.product.title}"])
            continue
        errors = [f"{found[d].error:.2f}" if d in found else "" for d in dtypes]
        broken = [m.verdict for m in one.measured if not m.kept]
        time = f"{one.measured[0].nanoseconds:.2f}"
        rows.append([one.op.name, *errors, time, broken[0] if broken else "kept"])
    lines = columns(rows, "l" + "r" * len(dtypes) + "rl", gap=3)
    for i, (line, row) in enumerate(zip(lines[1:], rows[1:], strict=True), start=1):
        if row[-1] == "kept" or row[-1].startswith("BROKEN"):
            style = ("green",) if row[-1] == "kept" else ("red", "bold")
            lines[i] = line.removesuffix(row[-1]) + paint(row[-1], *style)
    return [
        "",
        paint(lines[0].rstrip(), "dim"),
        *lines[1:],
        "",
        "Errors in units of the last place; those of group norm as shares of what is promised.",
        "More:  openaclnn demo --all,  openaclnn demo --op elu,  openaclnn docs",
    ]


def refusal(error: AclnnError | None, paint: Paint) -> list[str]:
    lines = ["", paint("A call that cannot be right is refused with one sentence:", "bold")]
    if error is None:
        broken = paint("BROKEN: an output of the wrong shape was accepted", "red", "bold")
        return [*lines, f"  {broken}"]
    lines.append(textwrap.fill(str(error), 98, initial_indent="  ", subsequent_indent="  "))
    return [*lines, f"  {paint(f'{error.status} {error.name}', 'dim')}"]


def closing(demo: Demo, paint: Paint) -> list[str]:
    colours = ("bold", "red") if demo.broken else ("bold", "green") if demo.measured else ("bold",)
    now = config()
    threads = f"{now['threads']} thread{'s' if now['threads'] != 1 else ''}"
    return [
        "",
        paint(demo.closing, *colours),
        f"No NPU was used: all results were computed by openaclnn on this CPU "
        f"({now['kernels']} kernels, {threads}).",
    ]
