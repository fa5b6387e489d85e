# SPDX-License-Identifier: Apache-2.0
"""`openaclnn compare`: compares results in .npy files with what the operator should have made."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..catalogue import find_operator, nearest
from ..schema import Op, Parameter
from ..table import OPS
from ..text_table import Paint

WRONG_USE = 2


class _WrongUse(Exception):
    """One sentence."""


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
        "  openaclnn compare mine.npy x.npy --op logit --eps=-1e-3 --dtype bf16 --ulp 2\n\n"
        "Exit status: 0 if the results keep the standard, 1 if not, 2 if nothing was compared.",
    )
    sub.add_argument("files", nargs="+", metavar="FILE.npy", help="results, then inputs")
    add = sub.add_argument
    add("--op", required=True, metavar="OPERATOR", help="C or Python name")
    add_standard(sub)
    add(
        "--benchmark",
        action="append",
        metavar="FILE.npy",
        help="for --standard double: results of the other implementation",
    )
    add("--dtype", help="what raw bits are, and mine if its array is wider: fp16, bf16, fp32, fp64")
    add("--worst", type=int, default=5, metavar="N", help="elements to show (5)")
    add("--json", action="store_true", help="print JSON for programs")
    attributes = sub.add_argument_group("attributes of the operators")
    for name, (parameter, rows) in _attributes().items():
        attributes.add_argument(
            f"--{name.replace('_', '-')}",
            dest=f"attribute_{name}",
            type=_reader(parameter),
            metavar=parameter.kind,
            help=f"of {', '.join(rows)}",
        )


def add_standard(sub: argparse.ArgumentParser) -> None:
    """The options that choose a standard; `standard_of` reads them."""
    add = sub.add_argument
    add("--standard", default="ours", help="ours (the default), single, double or allclose")
    add("--ulp", type=float, help="the distance that ours allows, in place of the promised one")
    add("--level", default="L1", help="for --standard double: L0, L1 (the default) or L2")
    add("--rtol", type=float, help="for --standard allclose")
    add("--atol", type=float, help="for --standard allclose")


def standard_of(arguments: argparse.Namespace) -> Any:
    from ..standards import Standard

    a = arguments
    return Standard(a.standard, a.ulp, a.level, a.rtol, a.atol)


def _attributes() -> dict[str, tuple[Parameter, list[str]]]:
    """By Python name: the parameter, and the rows that have it."""
    found: dict[str, tuple[Parameter, list[str]]] = {}
    for op in OPS:
        for p in op.attributes:
            found.setdefault(p.python_name, (p, []))[1].append(op.python)
    return found


def _reader(parameter: Parameter) -> Callable[[str], Any]:
    """Turns a word into a value of the kind of the parameter."""

    def flag(word: str) -> bool:
        if word.lower() not in ("true", "false", "1", "0"):
            raise argparse.ArgumentTypeError(f"must be true or false, but is {word!r}")
        return word.lower() in ("true", "1")

    readers: dict[str, Callable[[str], Any]] = {"bool": flag, "int64": int, "text": str}
    return readers.get(parameter.kind, float)


def load(path: str) -> Any:
    """The array of a file; None for -."""
    if path == "-":
        return None
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise _WrongUse(f"{path} must be a .npy file, but: {error}") from None
    if not isinstance(array, np.ndarray):
        raise _WrongUse(f"{path} must be a .npy file with one array, but is an archive")
    return array


def _operator(name: str) -> Op:
    op = find_operator(name)
    if op is None:
        meant = nearest(name)
        hint = f"did you mean {meant}?" if meant else "see:  openaclnn ops"
        raise _WrongUse(f"there is no operator {name}; {hint}")
    return op


def _sorted(op: Op, files: Sequence[str]) -> tuple[Any, list[Any]]:
    """What compare takes: the results, as a tuple where there are several, and the inputs."""
    outputs, inputs = len(op.outputs), len(op.inputs_)
    if len(files) != outputs + inputs:
        names = [p.result_name for p in op.outputs] + [p.python_name for p in op.inputs_]
        raise _WrongUse(
            f"{op.python} takes {outputs + inputs} files ({', '.join(names)}), but got {len(files)}"
        )
    arrays = [load(path) for path in files]
    mine = arrays[0] if outputs == 1 else tuple(arrays[:outputs])
    return mine, arrays[outputs:]


def run(arguments: argparse.Namespace, _: Paint) -> int:
    from ..comparing import compare  # needs the references; other commands do not

    try:
        op = _operator(arguments.op)
        mine, inputs = _sorted(op, arguments.files)
        benchmark = None
        if arguments.benchmark is not None:
            loaded = [load(path) for path in arguments.benchmark]
            benchmark = loaded[0] if len(op.outputs) == 1 else tuple(loaded)
        given = {
            name.removeprefix("attribute_"): value
            for name, value in vars(arguments).items()
            if name.startswith("attribute_") and value is not None
        }
        named = dict(zip((p.python_name for p in op.inputs_), inputs, strict=True)) | given
        options = ("standard", "ulp", "level", "rtol", "atol", "dtype", "worst")
        chosen = {name: getattr(arguments, name) for name in options}
        found = compare(mine, op.python, benchmark=benchmark, **chosen, **named)
    except (_WrongUse, TypeError, ValueError) as error:
        print(f"openaclnn compare: {str(error).removeprefix('compare: ')}", file=sys.stderr)
        return WRONG_USE
    print(json.dumps(found.as_data(), indent=2) if arguments.json else found)
    return 0 if found else 1
