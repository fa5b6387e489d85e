# SPDX-License-Identifier: Apache-2.0
"""The reference page of an operator, as tools/build/generate.py writes it with --docs."""

from __future__ import annotations

from rows import PRODUCTS, c_signatures, catalogue, load


def head(op) -> str:
    """What it does, how it is called, and the formula."""
    formula = "\n".join(catalogue.formula_lines(op, 94))
    prototypes = "\n".join(c_signatures(op))
    return (
        f"# {op.name}\n\n{op.doc}\n\nC, header `aclnnop/{op.header}`:\n\n"
        f"```c\n{prototypes}\n```\n\n"
        f"Python:\n\n```python\n{catalogue.python_signature(op)}\n```\n\n"
        f"## Formula\n\n```text\n{formula}\n```\n"
    )


def details(op) -> str:
    """Parameters, products, dtypes and shapes."""
    rows = "".join(
        f"| `{p.name}` | `{p.c_type}` | {catalogue.role(p)} | "
        f"{'' if p.default is None else p.default} |\n"
        for p in op.parameters
    )
    titles = ", ".join(p.title for p in PRODUCTS if p.key in op.products)
    output = "any float dtype" if op.output == "castable" else "that of the first input"
    if extra := catalogue.companions(op):
        output += f"; {extra}"
    optional = "".join(
        f"* `{p.name}` is neither needed nor touched when `{p.condition}` is false.\n"
        for p in op.outputs
        if p.condition
    )
    return (
        "## Parameters\n\n"
        f"| parameter | C type | role | default in Python |\n| --- | --- | --- | --- |\n{rows}\n"
        f"* Products: {titles}.\n"
        f"* Dtypes of the inputs: {', '.join(op.dtypes)} (BFLOAT16 where the product has it).\n"
        f"* Shapes: {catalogue.shapes(op)}; any strides and offset.\n"
        f"* Dtype of the output: {output}.\n{optional}"
    )


def page(op) -> str:
    return f"{head(op)}\n{details(op)}"


def aten_page() -> str:
    """All operators that ATen computes, on one page."""
    text: str = load("aten.catalogue").page()
    return text
