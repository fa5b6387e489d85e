# SPDX-License-Identifier: Apache-2.0
"""`openaclnn plot`: the curve of an operator, its derivative and its error."""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import AclnnError
from ..report.output import unwritable, writing
from ..report.text_table import Paint
from ..rows.schema import Op
from .arguments import (
    WRONG_USE,
    WrongUse,
    add_attributes,
    given_attributes,
    operator,
    refuse_others,
)

if TYPE_CHECKING:
    from ..plotting.curves import Curves

SUFFIXES = (".png", ".svg")
WIDEST = 110  # columns


def add_command(command: Callable[..., argparse.ArgumentParser]) -> None:
    sub = command(
        "plot",
        run,
        "draw an operator's curve, its derivative and its error",
        "Draws the first output of an operator and its derivative over its input, with the places\n"
        "where the function is not smooth (poles, jumps, kinks, clamp edges), and below it the\n"
        "error of this library against the formula in float64 (DOUBLE: long double). Other inputs\n"
        "are 1. A group norm is drawn for one group, whose elements are on the axis.\n\n"
        "  openaclnn plot elu --alpha 1.5\n"
        "  openaclnn plot logit --eps 0.1 --dtype bf16 --range 0.05 0.2\n"
        "  openaclnn plot hardshrink --lambd 2 --out hardshrink.svg\n\n"
        "Exit status: 0, 1 if the error exceeds what is promised, 2 if nothing was drawn.",
    )
    add = sub.add_argument
    add("op", metavar="OPERATOR", help="C or Python name")
    add("--dtype", default="fp32", help="of the error: fp16, bf16, fp32 (the default), fp64")
    add("--range", nargs=2, type=float, metavar=("LOW", "HIGH"), help="of the input")
    add("--out", metavar="FILE", help="write a picture, .png or .svg (needs matplotlib)")
    add("--ascii", action="store_true", help="draw with ASCII characters alone")
    add_attributes(sub)


def run(arguments: argparse.Namespace, paint: Paint) -> int:
    from ..plotting.curves import curves, default_attributes
    from ..plotting.errors import errors
    from ..plotting.text import drawing, error_title
    from ..reference.dtypes import dtype_of

    try:
        op = operator(arguments.op)
        given = given_attributes(arguments)
        refuse_others(op, given)
        _refuse_groups(op, given)
        dtype = dtype_of(arguments.dtype, "--dtype")
        ends = _ends(arguments.range)
        path = _path(arguments.out)
        drawn = curves(op, default_attributes(op) | given, ends)
        found = errors(drawn, dtype)
    except (WrongUse, ValueError, AclnnError) as error:
        print(f"openaclnn plot: {error}", file=sys.stderr)
        return WRONG_USE
    if path is not None:
        if unwritable("plot", "--out", arguments.out):
            return WRONG_USE
        from ..plotting.picture import save

        with writing(path):
            save(drawn, found, path)
        print(f"{path}: {_summary(drawn)}{error_title(found)}")
    else:
        from ..plotting.canvas import has_braille

        width = min(shutil.get_terminal_size((80, 24)).columns, WIDEST)
        dumb = arguments.ascii or os.environ.get("TERM") == "dumb"
        braille = not dumb and has_braille(sys.stdout.encoding)
        print(drawing(drawn, found, paint, width, braille))
    return 0 if found.kept else 1


def _summary(drawn: Curves) -> str:
    from ..plotting.text import marks_text

    return f"{marks_text(drawn)}; " if drawn.marks else ""


def _ends(given: list[float] | None) -> tuple[float, float] | None:
    if given is None:
        return None
    low, high = given
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise WrongUse(
            f"--range must be two finite numbers, the lower first, but is {low:g} {high:g}"
        )
    return low, high


def _path(out: str | None) -> Path | None:
    if out is None:
        return None
    path = Path(out)
    if path.suffix not in SUFFIXES:
        raise WrongUse(f"--out must be a .png or .svg file, but is {out}")
    if importlib.util.find_spec("matplotlib") is None:
        raise WrongUse("--out needs matplotlib: pip install matplotlib; text needs nothing")
    return path


def _refuse_groups(op: Op, given: dict[str, object]) -> None:
    """One group is drawn, for which the curve is one curve: attributes that are sizes are 1."""
    for p in op.attributes:
        if p.name in op.sizes and given.get(p.python_name, 1) != 1:
            value = given[p.python_name]
            raise WrongUse(
                f"{p.python_name} must be 1 for a plot, which draws one group, but is {value}"
            )
