# SPDX-License-Identifier: Apache-2.0
"""`openaclnn ops`: the operators, or one in full."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Callable

from ..aten import catalogue as aten
from ..aten.prototypes import functions as aten_functions
from ..report.text_table import Paint, columns
from ..rows.catalogue import (
    SHORT,
    as_data,
    c_signatures,
    companions,
    find_operator,
    formula_lines,
    markdown,
    nearest,
    python_signature,
    role,
    shapes,
)
from ..rows.schema import Op, Parameter
from ..rows.suggestions import did_you_mean
from ..rows.table import ANY, OPS, PRODUCTS
from . import runtime_functions


def add_command(command: Callable[..., argparse.ArgumentParser]) -> None:
    ops = command(
        "ops",
        show_ops,
        "list the operators, or show one in full",
        "Lists operators, products, dtypes and formulas. With a name, C or Python, shows its\n"
        "parameters, header, prototypes and Python call.\n\n"
        "  openaclnn ops\n"
        f"  openaclnn ops {OPS[0].name}\n"
        f"  openaclnn ops {OPS[0].python} --json\n"
        "  openaclnn ops aclrtRecordEvent     a function of the runtime: prototype and header\n"
        "  openaclnn ops --aten               those that ATen computes for C and C++ programs\n"
        "  openaclnn ops --aten aclnnMatmul",
    )
    ops.add_argument(
        "--aten", action="store_true", help="the operators that ATen computes: openaclnn cc --aten"
    )
    ops.add_argument(
        "name",
        nargs="?",
        metavar="OPERATOR",
        help="C or Python name, or a function of the runtime; all operators when left out",
    )
    ops.add_argument(
        "--markdown", action="store_true", help="print the table of the README, or a page"
    )
    ops.add_argument("--json", action="store_true", help="print JSON for programs")


def _about(p: Parameter) -> str:
    return role(p) if p.default is None else f"{role(p)}, in Python {p.default} unless given"


def show_operator(op: Op, paint: Paint) -> None:
    accepted = {"dtypes": ", ".join(op.dtypes)}
    without = [p.key for p in PRODUCTS if p.key in op.products and not p.bfloat16]
    if "BFLOAT16" in op.dtypes and without:
        accepted["dtypes"] += f" (BFLOAT16 not on {', '.join(without)})"
    if not op.inplace:
        castable = op.output == "castable"
        accepted["output"] = "any float dtype" if castable else "the dtype of the first input"
        if extra := companions(op):
            accepted["output"] += f" ({extra})"
        accepted["output"] += ", rounded once"
    accepted["shapes"] = shapes(op)
    accepted["products"] = "; ".join(p.title for p in PRODUCTS if p.key in op.products)
    accepted["any"] = f"product any (OPENACLNN_PRODUCT=any): {', '.join(op.computed)}"

    print(f"{paint(op.name, 'bold', 'cyan')}\n{op.doc}\n")
    print(textwrap.indent("\n".join(formula_lines(op, 92)), "    "))
    print(f"\n{paint('Parameters', 'bold')}")
    for line in columns([[p.name, p.c_type, _about(p)] for p in op.parameters]):
        print(f"    {line}")
    print(f"\n{paint('Python', 'bold')}")
    print(textwrap.indent(python_signature(op), "    "))
    print(f'\n{paint("C", "bold")}\n    #include "aclnnop/{op.header}"')
    print(textwrap.indent("\n".join(c_signatures(op)), "    "))
    print(f"\n{paint('Accepted', 'bold')}")
    for name, text in accepted.items():
        lines = textwrap.wrap(text, 84)
        print(f"    {name:8}  " + "\n              ".join(lines))
    print("\nNaN, infinities and unusual attributes have further rules: openaclnn docs numerics")


def show_table(paint: Paint) -> None:
    head = ["operator", "Python", *(p.key for p in PRODUCTS), "dtypes", "with product any"]
    rows = [
        [
            op.name,
            op.python,
            *("yes" if p.key in op.products else "-" for p in PRODUCTS),
            " ".join(SHORT[d] for d in op.dtypes),
            " ".join(f"+{SHORT[d]}" for d in op.extra_dtypes),
        ]
        for op in OPS
    ]
    lines = columns([head, *rows], "ll" + "c" * len(PRODUCTS))
    print(paint(lines[0], "bold"))
    for line, op in zip(lines[1:], OPS, strict=True):
        print(line)
        for formula in formula_lines(op, 112):
            print(paint(f"    {formula}", "dim"))
    print()
    for product in PRODUCTS:
        half = "" if product.bfloat16 else "  (no bf16)"
        print(paint(f"{product.key:>5}  {product.title}{half}", "dim"))
    print(
        paint(
            f"{ANY.key:>5}  {ANY.title}: every operator, with all dtypes that the library computes",
            "dim",
        )
    )
    print(f"\nOne operator in full: openaclnn ops {OPS[0].name}")


def nearest_function(name: str) -> str | None:
    """Of the runtime for its names; else of the operators."""
    runtime = runtime_functions.nearest(name)
    operator = nearest(name) or aten.nearest(name)
    return runtime or operator if not name.startswith("aclnn") else operator or runtime


def show_runtime_function(name: str, arguments: argparse.Namespace, paint: Paint) -> None:
    own = runtime_functions.functions()[name]
    if arguments.json:
        print(runtime_functions.as_json(own))
    elif arguments.markdown:
        print(runtime_functions.section(own), end="")
    else:
        runtime_functions.show(own, paint)


def show_ops(arguments: argparse.Namespace, paint: Paint) -> int:
    chosen = list(OPS)
    if arguments.aten:
        return show_aten_ops(arguments, paint)
    if arguments.name is not None:
        op = find_operator(arguments.name)
        if op is None and aten.find(arguments.name) is not None:
            return show_aten_ops(arguments, paint)
        if op is None and arguments.name in runtime_functions.functions():
            show_runtime_function(arguments.name, arguments, paint)
            return 0
        if op is None:
            lists = "see:  openaclnn ops  and  openaclnn ops --aten"
            hint = did_you_mean(nearest_function(arguments.name), lists)
            print(f"openaclnn ops: there is no {arguments.name}{hint}", file=sys.stderr)
            return 2
        chosen = [op]
    if arguments.json:
        data = [as_data(op) for op in chosen]
        print(json.dumps(data if arguments.name is None else data[0], indent=2))
    elif arguments.markdown:
        print(markdown(chosen), end="")
    elif arguments.name is not None:
        show_operator(chosen[0], paint)
    else:
        show_table(paint)
    return 0


def show_aten_ops(arguments: argparse.Namespace, paint: Paint) -> int:
    known = aten_functions()
    chosen = [known[name] for name in sorted(known)]
    if arguments.name is not None:
        row = aten.find(arguments.name)
        if row is None:
            own = find_operator(arguments.name)
            hint = did_you_mean(aten.nearest(arguments.name), "see:  openaclnn ops --aten")
            if own is not None:
                hint = f": openaclnn does; see:  openaclnn ops {own.name}"
            print(f"openaclnn ops: ATen computes no {arguments.name}{hint}", file=sys.stderr)
            return 2
        chosen = [row]
    if arguments.json:
        data = [aten.as_data(row) for row in chosen]
        print(json.dumps(data if arguments.name is None else data[0], indent=2))
    elif arguments.markdown:
        whole = arguments.name is None
        print(aten.page() if whole else aten.section(chosen[0]), end="")
    elif arguments.name is not None:
        aten.show(chosen[0], paint)
    else:
        aten.show_table(paint)
    return 0
