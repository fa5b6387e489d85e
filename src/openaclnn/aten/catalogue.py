# SPDX-License-Identifier: Apache-2.0
"""The operators that ATen computes as people read them: `openaclnn ops --aten`, and a page."""

from __future__ import annotations

import textwrap
from typing import Any

from ..report.text_table import Paint, columns
from ..rows.suggestions import near
from . import Row, products
from .products import text as product_text
from .prototypes import PLAIN, functions, gathered, headers, prototypes

GENERAL = (
    "shapes and dtypes are those that ATen takes on a CPU, as far as the product accepts them, "
    "tensors of any strides; phase 1 refuses "
    "missing arguments, numbers out of range and shapes that do not fit, phase 2 what depends on "
    "the data, such as indices out of range"
)
LEGEND = (
    "[N, C]: a name is the same size wherever it stands; N? may be missing, then everywhere; * are "
    "any further dims, the same everywhere, ... any dims; the name of an argument is its number, "
    "its list or its shape; what is not listed is left to ATen"
)
COMPUTED = {
    "as_given": "",
    "in_float": "16-bit floats are computed in float",
    "promoted": "tensors of several dtypes are computed in the one that holds them all and out",
    "moved": "",
}
_PACKED = "INT8, INT4, or INT32 with eight 4-bit integers in each"
# What the functions of core/torch/aten/composites refuse by name, or leave out.
REFUSED = {
    **dict.fromkeys(
        (
            "flash_attention_grad",
            "flash_attention_grad_v2",
            "flash_attention_grad_v3",
            "var_len_attention_grad",
            "var_len_attention_grad_v2",
            "var_len_attention_grad_v3",
            "var_len_attention_grad_v4",
            "var_len_attention_grad_v5",
        ),
        "leaves dpse as it is",
    ),
    **dict.fromkeys(
        ("infer_attention", "infer_attention_v2", "infer_attention_v3", "infer_attention_v4"),
        "keys and values of 16 bits, FLOAT, INT8 and INT4",
    ),
    "infer_attention_v5": (
        "keys and values of 16 bits, FLOAT, INT8 and INT4; pseType 0, no start indices"
    ),
    **dict.fromkeys(
        ("scatter_pa_cache", "scatter_pa_kv_cache"), "cacheMode Norm and PA_NZ; nothing compressed"
    ),
    "flat_quant": "the clip ratio multiplies the divisor: quantScale is max / (7 clipRatio)",
    "flat_quant_v2": "the clip ratio multiplies the divisor: quantScale is max / (7 clipRatio)",
    "max_pool": "autoPad 0",
    "max_pool2d_mask": "the mask is zero: the backward function finds the positions again",
    "moe_finalize_routing_v4": "no zero, copy or constant experts",
    "moe_gating_top_k_v2": "normType 2, sqrt(softplus(x)), is not divided by the sum of the chosen",
    "moe_init_routing_v3": "quantMode -1, 0, 1, 13; others belong to Ascend 950",
    "trans_matmul_weight": "leaves the weight as it is: order in memory does not matter on a CPU",
    **{
        f"weight_quant_matmul{form}": f"weights of {_PACKED}; y is INT8 where quantScale is given"
        for form in ("", "_v3", "_tiles")
    },
    **{
        f"grouped_matmul{form}": f"x of floats with weights of the same dtype or of {_PACKED}, or "
        "both of such integers"
        for form in ("", "_v2", "_v3", "_v4", "_v5", "_tiles")
    },
}


def computed_by(row: Row) -> str:
    if row.overload is None:
        return f"openaclnn's {row.op}, of ATen's operators"
    return f"aten::{row.op}" + (f".{row.overload}" if row.overload else "")


def own_limits(row: Row) -> list[str]:
    """Beside those of all."""
    refused = REFUSED.get(row.op, "") if row.overload is None else ""
    return [text for text in (refused, COMPUTED[row.computed]) if text]


def accepted(row: Row) -> list[list[str]]:
    """The parameters that have limits beyond those of all, and the limits."""
    return [[p.name, p.accepts] for p in row.given if p.accepts]


def limits(row: Row) -> str:
    return "; ".join([*own_limits(row), GENERAL])


def header(name: str) -> str:
    """The first of the headers that declare it, those that programs include before others."""
    for key, names in gathered().items():
        if name in names:
            return f"aclnn_{key}.h"
    return next(file for file, names in headers().items() if name in names)


def find(name: str) -> Row | None:
    """By C name, with or without aclnn and GetWorkspaceSize, in any case."""
    wanted = name.removesuffix("GetWorkspaceSize").lower().removeprefix("aclnn")
    known = {own.lower().removeprefix("aclnn"): row for own, row in functions().items()}
    return known.get(wanted)


def nearest(name: str) -> str | None:
    known = {own.lower().removeprefix("aclnn"): own for own in functions()}
    meant = near(name.lower().removeprefix("aclnn"), known)
    return known[meant] if meant else None


def as_data(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "header": f"aclnnop/{header(row.name)}",
        "prototypes": [" ".join(text.split()) for text in prototypes(row)],
        "computed_by": computed_by(row),
        "arguments": {p.name: p.accepts for p in row.given if p.accepts},
        "limits": limits(row),
        "product_rules": product_text.as_data(entry) if (entry := products.entry_of(row)) else None,
    }


def on_products(row: Row) -> list[list[str]]:
    """What products accept: facts with a name each; none where nothing is known."""
    entry = products.entry_of(row)
    if entry is None:
        return []
    return [
        ["products", product_text.products_text(entry)],
        *([name, product_text.readable(rule)] for name, rule in entry.rules.items()),
        ["results", product_text.determinism_text(entry)],
    ]


def show(row: Row, paint: Paint) -> None:
    print(f"{paint(row.name, 'bold', 'cyan')}\nComputed by {computed_by(row)}.\n")
    print(f"{paint('C', 'bold')}, of `openaclnn home --aten`")
    print(f'    #include "aclnnop/{header(row.name)}"')
    for prototype in prototypes(row):
        print(textwrap.indent(prototype, "    "))
    if arguments := accepted(row):
        print(f"\n{paint('Arguments', 'bold')}")
        print(textwrap.indent("\n".join(columns(arguments)), "    "))
        print(textwrap.indent(textwrap.fill(LEGEND, 90), "    "))
    if facts := on_products(row):
        print(f"\n{paint('Products', 'bold')}")
        print(textwrap.indent("\n".join(columns(facts)), "    "))
        print(textwrap.indent(textwrap.fill(product_text.LEGEND, 90), "    "))
    print(f"\n{paint('Limits', 'bold')}")
    print(textwrap.indent(textwrap.fill(limits(row), 90), "    "))


def show_table(paint: Paint) -> None:
    found = [functions()[name] for name in sorted(functions())]
    table = [["operator", "arguments", "computed by"]]
    for row in found:
        arguments = ", ".join(p.name for p in row.given)
        table.append(
            [row.name, textwrap.shorten(arguments, 70, placeholder=" ..."), computed_by(row)]
        )
    lines = columns(table)
    print(paint(lines[0], "bold"))
    print("\n".join(lines[1:]))
    plain = ", ".join(name for names in PLAIN.values() for name in names)
    print(f"\n{len(found)} operators; beside them, of one phase: {plain}.")
    print("One in full, with its limits: openaclnn ops --aten aclnnMatmul")


def page() -> str:
    """All of them, as a page of the reference."""
    text = (
        "# Operators that ATen computes\n\n"
        "For C and C++ programs that are built with `openaclnn cc --aten` "
        "([how](../../docs/howto/aten_programs.md)), and for the device `npu`. "
        f"Everywhere {GENERAL}. In shapes, {LEGEND}. The tables of products say what a product "
        f"accepts; dtypes by sets are {product_text.LEGEND}.\n"
    )
    return text + "".join(f"\n{section(functions()[name])}" for name in sorted(functions()))


def section(row: Row) -> str:
    """One of them, as a section of that page."""
    own = "; ".join(own_limits(row))
    text = f"## {row.name}\n\nComputed by {computed_by(row)}" + (f"; {own}" if own else "")
    text += f'.\n\n```c\n#include "aclnnop/{header(row.name)}"\n'
    text += "\n".join(prototypes(row)) + "\n```\n"
    if arguments := accepted(row):
        lines = "".join(f"| `{name}` | {accepts} |\n" for name, accepts in arguments)
        text += f"\n| argument | accepts |\n| --- | --- |\n{lines}"
    if facts := on_products(row):
        lines = "".join(f"| {name} | {fact} |\n" for name, fact in facts)
        text += f"\n| product rules | |\n| --- | --- |\n{lines}"
    return text
