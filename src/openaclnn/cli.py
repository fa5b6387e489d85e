# SPDX-License-Identifier: Apache-2.0
"""The `openaclnn` command."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
import textwrap
from typing import Any

from .schema import Op, Parameter
from .settings import config, home
from .table import OPS, PRODUCTS
from .text_table import Paint, columns

SHORT = {"FLOAT": "fp32", "FLOAT16": "fp16", "BFLOAT16": "bf16", "DOUBLE": "fp64"}
PHASE2 = "void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream"

# The environment variable behind a value of config().
VARIABLES = {
    "product": "OPENACLNN_PRODUCT",
    "kernels": "OPENACLNN_ISA",
    "threads": "OPENACLNN_NUM_THREADS",
    "streaming_bytes": "OPENACLNN_STREAMING_BYTES",
}


# ---- home, info ----


def show_home(_: argparse.Namespace, paint: Paint) -> int:
    print(home())
    return 0


def show_info(arguments: argparse.Namespace, paint: Paint) -> int:
    values = config()
    if arguments.json:
        print(json.dumps(values, indent=2))
        return 0
    titles = {p.key: f"{p.key}, {p.title}" for p in PRODUCTS}
    shown = {**values, "product": titles[values["product"]]}
    rows = [
        [name, f"{value:,}" if isinstance(value, int) else str(value), VARIABLES.get(name, "")]
        for name, value in shown.items()
    ]
    wide = max(len(value) for _, value, variable in rows if variable)
    for name, value, variable in rows:
        text = f"{value:{wide}}  {paint(variable, 'dim')}" if variable else value
        print(f"{paint(f'{name:{max(map(len, shown))}}', 'bold')}  {text}")
    return 0


# ---- ops ----


def as_data(op: Op) -> dict[str, Any]:
    return {
        "name": op.name,
        "python": op.python,
        "header": f"aclnnop/{op.header}",
        "formula": op.formula,
        "doc": op.doc,
        "products": list(op.products),
        "dtypes": list(op.dtypes),
        "parameters": [
            {
                "name": p.name,
                "python": p.python_name,
                "c_type": p.c_type,
                "role": p.role,
                "required": p.required,
                "default": p.default,
            }
            for p in op.parameters
        ],
    }


def c_signatures(op: Op) -> list[str]:
    phase1 = [p.c_declaration for p in op.parameters]
    phase1 += ["uint64_t* workspaceSize", "aclOpExecutor** executor"]
    return [
        _wrapped(f"aclnnStatus {op.name}GetWorkspaceSize(", phase1, end=");"),
        _wrapped(f"aclnnStatus {op.name}(", PHASE2.split(", "), end=");"),
    ]


def _wrapped(head: str, parameters: list[str], end: str, width: int = 94) -> str:
    """A prototype over as many lines as it needs."""
    lines = [head]
    for i, parameter in enumerate(parameters):
        text = parameter + (end if i + 1 == len(parameters) else ", ")
        if len(lines[-1]) + len(text.rstrip()) > width:
            lines.append("    ")
        lines[-1] += text
    return "\n".join(line.rstrip() for line in lines)


def python_signature(op: Op) -> str:
    given = [p for p in op.parameters if p.role != "output"]
    arguments = [
        p.python_name if p.default is None else f"{p.python_name}={p.default}" for p in given
    ]
    if not op.inplace:
        arguments += ["*", "out=None"]
    return _wrapped(f"openaclnn.{op.python}(", arguments, end=")")


def _about(p: Parameter) -> str:
    role = {"inout": "input and output"}.get(p.role, p.role)
    role = role if p.required or p.kind not in ("tensor", "scalar") else f"{role}, may be NULL"
    return role if p.default is None else f"{role}, in Python {p.default} unless given"


def show_operator(op: Op, paint: Paint) -> None:
    accepted = {"dtypes": ", ".join(op.dtypes)}
    if "BFLOAT16" in op.dtypes:
        accepted["dtypes"] += " (BFLOAT16 where the product has it)"
    if not op.inplace:
        castable = op.output == "castable"
        accepted["output"] = "any float dtype" if castable else "the dtype of the inputs"
        accepted["output"] += ", rounded once"
    if len(op.inputs_) > 1:
        accepted["shapes"] = "broadcast" if op.shapes == "broadcast" else "all equal"
    accepted["products"] = "; ".join(p.title for p in PRODUCTS if p.key in op.products)

    print(f"{paint(op.name, 'bold', 'cyan')}\n{op.doc}\n\n    {op.formula}")
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


def show_table(paint: Paint) -> None:
    head = ["operator", "Python", *(p.key for p in PRODUCTS), "dtypes"]
    rows = [
        [
            op.name,
            op.python,
            *("yes" if p.key in op.products else "-" for p in PRODUCTS),
            " ".join(SHORT[d] for d in op.dtypes),
        ]
        for op in OPS
    ]
    lines = columns([head, *rows], "ll" + "c" * len(PRODUCTS))
    print(paint(lines[0], "bold"))
    for line, op in zip(lines[1:], OPS, strict=True):
        print(line)
        print(paint(f"    {op.formula}", "dim"))
    print()
    for product in PRODUCTS:
        half = "" if product.bfloat16 else "  (no bf16)"
        print(paint(f"{product.key:>5}  {product.title}{half}", "dim"))
    print(f"\nOne operator in full: openaclnn ops {OPS[0].name}")


def find_operator(name: str) -> Op | None:
    """By C name, with or without GetWorkspaceSize, or by Python name, in any case."""
    wanted = name.removesuffix("GetWorkspaceSize").lower()
    for op in OPS:
        if wanted in (op.name.lower(), op.name.lower().removeprefix("aclnn"), op.python):
            return op
    return None


def nearest(name: str) -> str:
    """The operator that was probably meant."""
    known = {spelling.lower(): op.name for op in OPS for spelling in (op.name, op.python)}
    wanted = name.lower()
    near = [
        *difflib.get_close_matches(wanted, known, 1),
        *difflib.get_close_matches(f"aclnn{wanted}", known, 1),
    ]
    return f"did you mean {known[near[0]]}?" if near else "see:  openaclnn ops"


def show_ops(arguments: argparse.Namespace, paint: Paint) -> int:
    chosen = list(OPS)
    if arguments.name is not None:
        op = find_operator(arguments.name)
        if op is None:
            name = arguments.name
            print(f"openaclnn ops: there is no {name}; {nearest(name)}", file=sys.stderr)
            return 2
        chosen = [op]
    if arguments.json:
        data = [as_data(op) for op in chosen]
        print(json.dumps(data if arguments.name is None else data[0], indent=2))
    elif arguments.name is not None:
        show_operator(chosen[0], paint)
    else:
        show_table(paint)
    return 0


# ---- demo ----


def show_demo(_: argparse.Namespace, paint: Paint) -> int:
    from .demo import demo  # needs the references; the other commands do not

    return demo(paint)


# ---- the command line ----


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="openaclnn",
        description="The aclnn operator API without the NPU: on any CPU, from Python, C and C++.",
        epilog="Examples:\n"
        "  openaclnn demo\n"
        f"  openaclnn ops {OPS[0].name}\n"
        "  source $(openaclnn home)/set_env.sh",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"openaclnn {config()['version']}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: Any, summary: str, detail: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name,
            help=summary,
            description=detail,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.set_defaults(run=run)
        return sub

    command(
        "demo",
        show_demo,
        "run every operator and show how exact it is",
        "Runs every operator on special values (infinities, zeros, denormals, NaN, where the\n"
        "formula switches) and on 1 Mi elements of every dtype, and compares the results with\n"
        "the reference.\n\n"
        "Exit status 1 when a promised accuracy is not kept.\n\n"
        "  openaclnn demo\n"
        "  OPENACLNN_NUM_THREADS=1 openaclnn demo",
    )
    command(
        "home",
        show_home,
        "print the installation directory for C and C++",
        "Prints the directory that is laid out like a CANN installation: include/, lib64/ and\n"
        "set_env.sh, which sets ASCEND_HOME_PATH, LD_LIBRARY_PATH and their like.\n\n"
        "  source $(openaclnn home)/set_env.sh\n"
        "  H=$ASCEND_HOME_PATH\n"
        "  g++ prog.cpp -I$H/include -I$H/include/aclnn -I$H/include/aclnnop \\\n"
        "      -L$H/lib64 -lopapi_nn -lopapi_math -lascendcl -lnnopbase -o prog",
    )
    info = command(
        "info",
        show_info,
        "show the choices in force: product, kernels, threads, ...",
        "Shows the product being played, the kernels chosen for this CPU, threads and paths, each\n"
        "with the environment variable that changes it.\n\n"
        "  openaclnn info\n"
        "  OPENACLNN_ISA=v2 openaclnn info --json",
    )
    ops = command(
        "ops",
        show_ops,
        "list the operators, or show one in full",
        "Lists operators, products, dtypes and formulas. With a name, C or Python, shows its\n"
        "parameters, header, prototypes and Python call.\n\n"
        "  openaclnn ops\n"
        f"  openaclnn ops {OPS[0].name}\n"
        f"  openaclnn ops {OPS[0].python} --json",
    )
    ops.add_argument(
        "name", nargs="?", metavar="OPERATOR", help="C or Python name; all operators when left out"
    )
    for sub in (info, ops):
        sub.add_argument("--json", action="store_true", help="print JSON for programs")
    return top


def main(argv: list[str] | None = None) -> int:
    given = sys.argv[1:] if argv is None else argv
    arguments = parser().parse_args(given or ["--help"])
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")  # → on a terminal that has none
    try:
        status: int = arguments.run(arguments, Paint(sys.stdout))
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader, head or less, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
