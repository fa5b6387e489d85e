# SPDX-License-Identifier: Apache-2.0
"""`openaclnn compare`: compares results in files with what the operator should have made."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..aten import Row
from ..aten import catalogue as aten
from ..compiled import BuildError
from ..report.output import unwritable, write_text
from ..report.text_table import Paint
from ..rows.catalogue import find_operator, nearest
from ..rows.schema import Op
from ..rows.suggestions import did_you_mean
from .arguments import WRONG_USE as WRONG_USE
from .arguments import WrongUse, add_attributes, given_attributes
from .compare_files import of_function, of_operator, results

if TYPE_CHECKING:
    from ..reference.comparison import Comparison


def add_command(command: Callable[..., argparse.ArgumentParser]) -> None:
    sub = command(
        "compare",
        run,
        "compare results in files with what an operator should make",
        "Compares what a kernel computed with the operator's formula in float64: a histogram of\n"
        "distances in ulp, the worst elements with their inputs and bits, what the wrong elements\n"
        "have in common, and a verdict. The files are the results, then the inputs, in the order\n"
        "of the Python function; - stands for a result not to be judged.\n\n"
        "  openaclnn compare mine.npy x.npy --op elu --alpha 1.5\n"
        "  openaclnn compare mine.npy g.npy x.npy --op elu_backward --alpha 1 --scale 1 \\\n"
        "      --input-scale 1 --is-result false\n"
        "  openaclnn compare mine.npy x.npy --op logit --eps -1e-3 --dtype bf16 --ulp 2\n\n"
        "A function that ATen computes (openaclnn ops --aten) takes the results, then all other\n"
        "arguments of C, in their order or as NAME=WORD: files, [a.npy,b.npy], numbers, [1,2],\n"
        "true, texts, dtypes; - is NULL. It is judged against the same function in float64.\n\n"
        "  openaclnn compare mine.npy x.pt 1 --op aclnnSoftmax\n"
        "  openaclnn compare mine.npy [x.npy,y.npy] dim=0 --op aclnnCat\n\n"
        "Exit status: 0 if the results meet the standard, 1 if not, 2 if nothing was compared.",
    )
    sub.add_argument("files", nargs="+", metavar="FILE", help="results, then inputs")
    add = sub.add_argument
    add("--op", required=True, metavar="OPERATOR", help="C or Python name")
    add_standard(sub)
    add(
        "--benchmark",
        action="append",
        metavar="FILE",
        help="for --standard double, either or peer: results of the other implementation",
    )
    add("--dtype", help="of raw bits, and of results in a wider array: fp16, bf16, fp32, fp64")
    add("--worst", type=int, default=5, metavar="N", help="worst elements to show (5)")
    add("--json", action="store_true", help="print JSON instead of text (takes no FILE)")
    add("--html", metavar="FILE", help="the same as HTML, which needs no other file")
    add_attributes(sub)


def add_standard(sub: argparse.ArgumentParser) -> None:
    """The options that choose a standard; `standard_options` reads them."""
    add = sub.add_argument
    add(
        "--standard",
        help="ours (the default), float (computed in FLOAT), single, double, "
        "either, allclose, peer",
    )
    add("--ulp", type=float, help="limit for ours instead of its promise, or for peer instead of 0")
    add("--level", help="for --standard double or either: L0, L1 (the default) or L2")
    add("--rtol", type=float, help="for --standard allclose")
    add("--atol", type=float, help="for --standard allclose")


def standard_options(arguments: argparse.Namespace) -> dict[str, Any]:
    from ..reference.standards import ASKED

    return {name: getattr(arguments, name) for name in ASKED}


def _operator(name: str) -> Op | Row:
    """One of openaclnn's, or a function that ATen computes."""
    if (own := find_operator(name)) is not None:
        return own
    if (row := aten.find(name)) is not None:
        return row
    hint = did_you_mean(nearest(name) or aten.nearest(name), "see:  openaclnn ops")
    raise WrongUse(f"there is no operator {name}{hint}")


def _own(arguments: argparse.Namespace, op: Op) -> Comparison:
    from ..reference.compare import compare  # needs the references; other commands do not

    mine, inputs = of_operator(op, arguments.files)
    benchmark = _benchmark(arguments, [p.result_name for p in op.outputs])
    options = standard_options(arguments) | {"dtype": arguments.dtype, "worst": arguments.worst}
    named = inputs | given_attributes(arguments)
    return compare(mine, op.python, benchmark=benchmark, **options, **named)


def _function(arguments: argparse.Namespace, row: Row) -> Comparison:
    from ..golden.compare import compare_function
    from ..golden.judging import standard_of
    from ..reference.dtypes import dtype_of

    mine, given = of_function(row, arguments.files)
    benchmark = _benchmark(arguments, [p.name for p in row.given if p.written])
    dtype = None if arguments.dtype is None else dtype_of(arguments.dtype)
    named = given | given_attributes(arguments)
    standard = standard_of(**standard_options(arguments), benchmark=benchmark is not None)
    return compare_function(mine, row, (), named, standard, benchmark, dtype, arguments.worst)


def _benchmark(arguments: argparse.Namespace, outputs: Sequence[str]) -> Any:
    files = arguments.benchmark
    if files is None:
        return None
    if len(files) != len(outputs):
        raise WrongUse(
            f"--benchmark must be given for each of {', '.join(outputs)}, but is given "
            f"{len(files)} times"
        )
    return results(outputs, files)


def run(arguments: argparse.Namespace, _: Paint) -> int:
    from .compare_page import page

    if unwritable("compare", "--html", arguments.html):
        return WRONG_USE
    try:
        op = _operator(arguments.op)
        found = _function(arguments, op) if isinstance(op, Row) else _own(arguments, op)
    except (WrongUse, BuildError, TypeError, ValueError) as error:
        print(f"openaclnn compare: {str(error).removeprefix('compare: ')}", file=sys.stderr)
        return WRONG_USE
    shown = json.dumps(found.as_data(), indent=2) if arguments.json else found
    to = sys.stderr if arguments.html == "-" else sys.stdout
    print(shown, file=to)
    if arguments.html:
        write_text(arguments.html, page(found))
    if found.is_empty:
        return WRONG_USE
    if not (found or arguments.json or isinstance(op, Row)) and _passes_in_float(arguments, op):
        from ..reference.in_float import ADVICE

        print(f"{ADVICE}: it passes", file=to)
    return 0 if found else 1


def _passes_in_float(arguments: argparse.Namespace, op: Op) -> bool:
    """What failed by openaclnn's own standard."""
    if any(value is not None for value in standard_options(arguments).values()):
        return False
    try:
        return bool(_own(argparse.Namespace(**{**vars(arguments), "standard": "float"}), op))
    except ValueError:  # DOUBLE
        return False
