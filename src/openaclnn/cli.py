# SPDX-License-Identifier: Apache-2.0
"""The `openaclnn` command."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from . import pages, programs, watch
from .catalogue import as_data, find_operator, markdown, nearest, show_operator, show_table
from .settings import config, home
from .table import ANY, OPS, PRODUCTS
from .text_table import Paint
from .torch_npu import command as npu

# The environment variable behind a value of config().
VARIABLES = {
    "product": "OPENACLNN_PRODUCT",
    "kernels": "OPENACLNN_ISA",
    "threads": "OPENACLNN_NUM_THREADS",
    "torch_threads": "OPENACLNN_TORCH_THREADS",
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
    titles = {p.key: f"{p.key}, {p.title}" for p in (*PRODUCTS, ANY)}
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


def show_ops(arguments: argparse.Namespace, paint: Paint) -> int:
    chosen = list(OPS)
    if arguments.name is not None:
        op = find_operator(arguments.name)
        if op is None:
            meant = nearest(arguments.name)
            hint = f"did you mean {meant}?" if meant else "see:  openaclnn ops"
            print(f"openaclnn ops: there is no {arguments.name}; {hint}", file=sys.stderr)
            return 2
        chosen = [op]
    if arguments.json:
        data = [as_data(op) for op in chosen]
        print(json.dumps(data if arguments.name is None else data[0], indent=2))
    elif arguments.markdown:
        print(markdown(), end="")
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


class Command(argparse.ArgumentParser):
    """Refuses the words it does not know itself, so that its own usage is shown."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


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
    commands = top.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=Command
    )

    def command(
        name: str, run: Any, summary: str, detail: str, forwards: str | None = None
    ) -> argparse.ArgumentParser:
        """`forwards`: all words after the name, options too, are for somebody else."""
        theirs: dict[str, Any] = {
            "prefix_chars": "\0",
            "add_help": False,
            "usage": f"openaclnn {name} {forwards}",
        }
        sub = commands.add_parser(
            name,
            help=summary,
            description=detail,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            **(theirs if forwards is not None else {}),
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
        "      -L$H/lib64 -lopapi_nn -lopapi_math -lascendcl -lnnopbase -o prog\n\n"
        "The same in one: openaclnn cc prog.cpp -o prog",
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
    ops.add_argument("--markdown", action="store_true", help="print the table of the README")
    programs.add_commands(command)
    watch.add_commands(command)
    npu.add_commands(command)
    pages.add_commands(command)
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
