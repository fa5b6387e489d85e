# SPDX-License-Identifier: Apache-2.0
"""`openaclnn demo`: every operator on revealing inputs, compared with its reference."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TextIO

from ..report.output import unwritable, write_json, write_text
from ..report.text_table import Paint
from ..rows.schema import Op
from ..rows.table import ANY, OPS, PRODUCTS
from ..settings import config
from .arguments import WRONG_USE, WrongUse, add_operators, operator


def add_command(command: Callable[..., argparse.ArgumentParser]) -> None:
    sub = command(
        "demo",
        run,
        "run every operator and show how exact it is",
        "Runs every operator on special values (infinities, zeros, subnormals, NaN, where the\n"
        "formula switches) and on 1 Mi elements of every dtype, and compares the results with\n"
        "the reference. Prints one screen; with --all or --op, formulas and values too.\n\n"
        "Exit status: 0, 1 when a promised accuracy is not kept, 2 when nothing was run.\n\n"
        "  openaclnn demo\n"
        "  openaclnn demo --all\n"
        "  openaclnn demo --op elu,logit --html demo.html\n"
        "  OPENACLNN_NUM_THREADS=1 openaclnn demo --json -",
    )
    add = sub.add_argument
    add_operators(sub)
    add("--all", action="store_true", help="also formulas, special values and all measurements")
    add("--json", metavar="FILE", help="write the results; - for standard output")
    add("--html", metavar="FILE", help="write an HTML report; - for standard output")


def run(arguments: argparse.Namespace, paint: Paint) -> int:
    """Prints the show; 1 when a promise was broken, else 0. A document on standard output is alone
    there, and the show goes to standard error."""
    try:
        chosen = [operator(name) for name in arguments.op or ()]
        ops = [op for op in OPS if not chosen or op in chosen]
        if arguments.json == arguments.html == "-":
            raise WrongUse("--json and --html must not both be -")
    except WrongUse as error:
        print(f"openaclnn demo: {error}", file=sys.stderr)
        return WRONG_USE
    if any(unwritable("demo", f"--{n}", getattr(arguments, n)) for n in ("json", "html")):
        return WRONG_USE
    alone = "-" in (arguments.json, arguments.html)
    stream = sys.stderr if alone else sys.stdout
    return _run(arguments, ops, stream, Paint(stream) if alone else paint)


def _run(arguments: argparse.Namespace, ops: list[Op], stream: TextIO, paint: Paint) -> int:
    from ..demo.showcase import Demo, as_data, left_out, refused, show
    from ..demo.text import closing, head, refusal, summary
    from ..demo.text import operator as lines_of

    def say(lines: list[str]) -> None:
        print("\n".join(lines), file=stream, flush=True)

    product = next(p for p in (*PRODUCTS, ANY) if p.key == config()["product"])
    missing = left_out(product)
    detailed = arguments.all or bool(arguments.op)
    say(head(product, missing.items(), paint))
    shown = []
    for op in ops:
        shown.append(show(op, product, missing))
        if detailed:
            say(lines_of(shown[-1], product, paint))
    demo = Demo(product, missing, shown, refused())
    if detailed:
        say([*refusal(demo.refusal, paint), *closing(demo, paint)])
    else:
        say([*closing(demo, paint), *summary(demo, paint), *refusal(demo.refusal, paint)])
    if arguments.json:
        write_json(arguments.json, as_data(demo))
    if arguments.html:
        from ..demo.page import page

        write_text(arguments.html, page(demo))
    return 1 if demo.broken else 0
