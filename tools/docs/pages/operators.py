# SPDX-License-Identifier: Apache-2.0
"""The page of an operator, from its row: signature, formula, example, plot, special values, then
parameters and dtypes."""

from __future__ import annotations

import contextlib
import io

import numpy as np
from pages.examples import attributes_of, c_example, inputs_of, python_example
from reference_pages import details, head

import openaclnn
from openaclnn.reference.arrays import Array
from openaclnn.reference.evaluation import special_values
from openaclnn.rows.catalogue import SHORT
from openaclnn.rows.schema import Op
from openaclnn.rows.table import ANY, OPS, PRODUCTS


def dtypes_by_product(op: Op) -> str:
    lines = ["| product | " + " | ".join(SHORT[d] for d in SHORT) + " |"]
    lines.append("| --- |" + " :-: |" * len(SHORT))
    for product in (*PRODUCTS, ANY):
        accepted = op.accepted(product)
        marks = " | ".join("yes" if dtype in accepted else "–" for dtype in SHORT)
        lines.append(f"| {product.key}: {product.title} | {marks} |")
    return "\n".join(lines)


def text(value: float) -> str:
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"{value:.9g}" if value != 0 else ("-0" if np.signbit(value) else "0")


def call(op: Op, inputs: list[Array]) -> list[Array]:
    """The outputs of the library; those of an in-place row are its inputs."""
    given = {p.python_name: x.copy() for p, x in zip(op.input_tensors, inputs, strict=True)}
    attributes = {k: v for k, v in attributes_of(op).items() if v is not None}
    made = getattr(openaclnn, op.python)(**given, **attributes)
    return list(made) if isinstance(made, tuple) else [made]


def base_of(op: Op) -> list[Array]:
    """What the inputs of the tables are beside the value that varies: 1, or those of the example
    where an output depends on many."""
    inputs = inputs_of(op)
    return [np.ones_like(x) for x in inputs] if op.pointwise else inputs


def without_neighbours(rows: list[Array]) -> list[Array]:
    """Of rows that hardly differ, as on both sides of a point where nothing jumps, the one with
    the shortest number."""
    kept: list[Array] = []
    for row in rows:
        alike = bool(kept) and bool(
            np.isclose(row, kept[-1], rtol=1e-5, atol=0, equal_nan=True).all()
            and (np.signbit(row) == np.signbit(kept[-1])).all()
        )
        if not alike:
            kept.append(row)
        elif len(text(row[0])) < len(text(kept[-1][0])):
            kept[-1] = row
    return kept


def edges(op: Op) -> str:
    """A table for each input: special values of its first element, and the outputs."""
    parts = []
    for i, p in enumerate(op.input_tensors):
        values = special_values(op, "FLOAT", attributes_of(op))
        values = sorted({text(v): v for v in values}.values(), key=lambda v: (np.isnan(v), v))
        names = [f"`{o.name}`" for o in op.outputs]
        first = f"`{p.name}`" if op.pointwise else f"first element of `{p.name}`"
        head = [first, *(name if op.pointwise else f"first of {name}" for name in names)]
        rows = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
        shown: list[Array] = []
        for value in values:
            inputs = base_of(op)
            inputs[i].flat[0] = value
            shown.append(np.array([value, *(y.flat[0] for y in call(op, inputs))]))
        for row in without_neighbours(shown):
            rows.append("| " + " | ".join(f"`{text(v)}`" for v in row) + " |")
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def printed(op: Op) -> str:
    """What the example in Python prints."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(python_example(op), f"{op.python}.py", "exec"), {})
    return shown.getvalue()


def page(op: Op) -> str:
    attributes = ", ".join(f"{k} = {v}" for k, v in attributes_of(op).items() if v is not None)
    others = "other inputs are 1" if op.pointwise else "the others as in the example"
    return f"""{head(op)}
## Example

In Python:

```python
{python_example(op)}```

```text
{printed(op)}```

[The same in C](#example-in-c) prints the same.

## Function and derivative

![The function and its derivative]({op.python}.svg)

Drawn from the formula in float64, with {attributes or "no attributes"}.

## Special values

FLOAT, {attributes or "no attributes"}; {others}.

{edges(op)}

{details(op)}
## Dtypes by product

{dtypes_by_product(op)}

## Example in C

`openaclnn cc {op.python}.c -o {op.python} && ./{op.python}`

```c
{c_example(op)}```
"""


def overview() -> str:
    lines = ["# Operators", "", "| operator | Python | what it does |", "| --- | --- | --- |"]
    lines += [f"| [{op.name}]({op.python}.md) | `{op.python}` | {op.doc} |" for op in OPS]
    return "\n".join(lines) + "\n"
