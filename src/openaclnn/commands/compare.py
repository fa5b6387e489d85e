# SPDX-License-Identifier: Apache-2.0
"""`openaclnn compare`: compares results in .npy files with what the operator should have made."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..report.output import unwritable, write_text
from ..report.text_table import Paint
from ..rows.schema import Op
from .arguments import WRONG_USE as WRONG_USE
from .arguments import WrongUse, add_attributes, given_attributes, operator


def add_command(command: Callable[..., argparse.ArgumentParser]) -> None:
    sub = command(
        "compare",
        run,
        "compare results in .npy files with what an operator should make",
        "Compares what a kernel computed with the operator's formula in float64: a histogram of\n"
        "distances in ulp, the worst elements with their inputs and bits, and a verdict. The\n"
        "files are the results, then the inputs, in the order of the Python function; - stands\n"
        "for a result that was not computed.\n\n"
        "  openaclnn compare mine.npy x.npy --op elu --alpha 1.5\n"
        "  openaclnn compare mine.npy g.npy x.npy --op elu_backward --alpha 1 --scale 1 \\\n"
        "      --input-scale 1 --is-result false\n"
        "  openaclnn compare mine.npy x.npy --op logit --eps -1e-3 --dtype bf16 --ulp 2\n\n"
        "Exit status: 0 if the results meet the standard, 1 if not, 2 if nothing was compared.",
    )
    sub.add_argument("files", nargs="+", metavar="FILE.npy", help="results, then inputs")
    add = sub.add_argument
    add("--op", required=True, metavar="OPERATOR", help="C or Python name")
    add_standard(sub)
    add(
        "--benchmark",
        action="append",
        metavar="FILE.npy",
        help="for --standard double, either or peer: results of the other implementation",
    )
    add("--dtype", help="of raw bits, and of results in a wider array: fp16, bf16, fp32, fp64")
    add("--worst", type=int, default=5, metavar="N", help="worst elements to show (5)")
    add("--json", action="store_true", help="print JSON instead of text (takes no FILE)")
    add("--html", metavar="FILE", help="the same as HTML, which needs no other file")
    add_attributes(sub)


def add_standard(sub: argparse.ArgumentParser) -> None:
    """The options that choose a standard; `standard_of` reads them."""
    add = sub.add_argument
    add(
        "--standard",
        default="ours",
        help="ours (the default), single, double, either, allclose, peer",
    )
    add("--ulp", type=float, help="limit for ours instead of its promise, or for peer instead of 0")
    add("--level", default="L1", help="for --standard double or either: L0, L1 (the default) or L2")
    add("--rtol", type=float, help="for --standard allclose")
    add("--atol", type=float, help="for --standard allclose")


def standard_of(arguments: argparse.Namespace) -> Any:
    from ..reference.standards import Standard

    a = arguments
    return Standard(a.standard, a.ulp, a.level, a.rtol, a.atol)


def load(path: str) -> Any:
    """The array of a file; None for -."""
    if path == "-":
        return None
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise WrongUse(f"{path} is not a .npy file: {error}") from None
    except (ValueError, EOFError) as error:
        with Path(path).open("rb") as file:
            is_one = file.read(6) == b"\x93NUMPY"
        why = error if is_one else "it does not begin as one"  # NumPy takes it for a pickle
        raise WrongUse(f"{path} is not a .npy file: {why}") from None
    if not isinstance(array, np.ndarray):
        raise WrongUse(f"{path} is an archive; pass a .npy file with one array")
    return array


def _sorted(op: Op, files: Sequence[str]) -> tuple[Any, list[Any]]:
    """What compare takes: the results, as a tuple where there are several, and the inputs."""
    outputs, inputs = len(op.outputs), len(op.input_tensors)
    if len(files) != outputs + inputs:
        names = [p.result_name for p in op.outputs] + [p.python_name for p in op.input_tensors]
        raise WrongUse(
            f"{op.python} takes {outputs + inputs} files ({', '.join(names)}), but got {len(files)}"
        )
    for p, path in zip(op.input_tensors, files[outputs:], strict=True):
        if path == "-":
            raise WrongUse(
                f"{p.python_name} must be a file, but is -, which stands for a result that was not "
                "computed"
            )
    arrays = [load(path) for path in files]
    mine = arrays[0] if outputs == 1 else tuple(arrays[:outputs])
    return mine, arrays[outputs:]


def run(arguments: argparse.Namespace, _: Paint) -> int:
    from ..reference.compare import compare  # needs the references; other commands do not
    from .compare_page import page

    if unwritable("compare", "--html", arguments.html):
        return WRONG_USE
    try:
        op = operator(arguments.op)
        mine, inputs = _sorted(op, arguments.files)
        benchmark = None
        if arguments.benchmark is not None:
            loaded = [load(path) for path in arguments.benchmark]
            benchmark = loaded[0] if len(op.outputs) == 1 else tuple(loaded)
        named = dict(zip((p.python_name for p in op.input_tensors), inputs, strict=True))
        named |= given_attributes(arguments)
        options = ("standard", "ulp", "level", "rtol", "atol", "dtype", "worst")
        chosen = {name: getattr(arguments, name) for name in options}
        found = compare(mine, op.python, benchmark=benchmark, **chosen, **named)
    except (WrongUse, TypeError, ValueError) as error:
        print(f"openaclnn compare: {str(error).removeprefix('compare: ')}", file=sys.stderr)
        return WRONG_USE
    shown = json.dumps(found.as_data(), indent=2) if arguments.json else found
    print(shown, file=sys.stderr if arguments.html == "-" else sys.stdout)
    if arguments.html:
        write_text(arguments.html, page(found))
    if found.is_empty:
        return WRONG_USE
    return 0 if found else 1
