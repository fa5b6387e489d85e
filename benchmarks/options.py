# SPDX-License-Identifier: Apache-2.0
"""What bench.py is asked to do: the options, and the cells that follow from them."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cells import (
    AFTER_TORCH,
    ATTRIBUTES,
    BROADCAST,
    DTYPES,
    LAYOUTS,
    MIXES,
    STRIDED,
    flags_of,
)
from mixes import Mix, attribute_sets, mixes_of, mixes_of_flags

import openaclnn
from openaclnn.rows.schema import Op

SIZES = ["4Ki", "64Ki", "1Mi", "16Mi", "64Mi"]
STRIDED_SIZES = ["1Mi", "16Mi"]  # of layouts other than contiguous, unless --sizes is given
STRIDED_DTYPES = ["fp32", "bf16"]  # the same for --dtypes
EVERY_SIZES = ["64Ki", "1Mi", "16Mi"]  # with every set of attributes, and with special values
AFTER_TORCH_SIZES = ["64Ki", "256Ki", "1Mi", "4Mi"]
EVERY_DTYPES = ["fp32", "bf16", "fp16"]
BACKENDS = {"ours": None, "torch": "torch", "compiled": "torch", "jax": "jax", "numpy": None}
UNITS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20}


class Todo(NamedTuple):
    """One cell. Its attributes are a whole set, or those that differ from the first set."""

    op: Op
    layout: str
    dtype: str
    elements: int
    attributes: dict[str, Any]
    mix: Mix


def cells(options: argparse.Namespace) -> Iterator[Todo]:
    for layout in options.layouts or LAYOUTS:
        if layout == AFTER_TORCH and not {"ours", "torch"} <= set(options.backends):
            continue
        dtypes, sizes = dtypes_and_sizes(layout, options)
        for op in openaclnn.OPS:
            named = op.python in (options.ops or ()) or op.name in (options.ops or ())
            if not op.pointwise or (options.ops and not named):
                continue
            if op.inplace and not (named and layout == "contiguous"):
                continue
            if layout in BROADCAST and op.shapes != "broadcast":
                continue
            if layout in STRIDED and not named and len(op.inputs_) == 1:
                continue  # the gradients stand for all
            for dtype in dtypes:
                for size in sizes if DTYPES[dtype] in op.dtypes else ():
                    for attributes, mix in variants(op, layout, dtype):
                        yield Todo(op, layout, dtype, count(size), attributes, mix)


def dtypes_and_sizes(layout: str, options: argparse.Namespace) -> tuple[list[str], list[str]]:
    if layout in (ATTRIBUTES, MIXES):
        if options.quick:
            return options.dtypes[:1], options.sizes[:1]
        return options.dtypes or EVERY_DTYPES, options.sizes if options.given else EVERY_SIZES
    plain = layout == "contiguous" or options.layouts
    if layout == AFTER_TORCH and not options.given:
        return options.dtypes or STRIDED_DTYPES, AFTER_TORCH_SIZES
    dtypes = options.dtypes or (EVERY_DTYPES if plain else STRIDED_DTYPES)
    return dtypes, options.sizes if plain or options.given else STRIDED_SIZES


def variants(op: Op, layout: str, dtype: str) -> list[tuple[dict[str, Any], Mix]]:
    """Attributes that differ from the first set, and data."""
    if layout == ATTRIBUTES:
        return [(attributes, Mix()) for attributes in attribute_sets(op)]
    if layout == MIXES:
        first, flags = attribute_sets(op)[0], flags_of(op)[1:]
        beside = [(first | flag, mix) for flag in flags for mix in mixes_of_flags()]
        return [(first, mix) for mix in mixes_of(op, dtype)] + beside
    return [(flags, Mix()) for flags in (flags_of(op) if layout == AFTER_TORCH else [{}])]


def size_text(elements: int) -> str:
    """64Ki for 65,536: what count reads."""
    units = [unit for unit, size in UNITS.items() if elements % size == 0]
    return f"{elements // UNITS[units[-1]]}{units[-1]}"


def count(text: str) -> int:
    match = re.fullmatch(r"([1-9]\d*)(Ki|Mi|)", text)
    if match is None:
        raise ValueError(f"a size is a number, or one with Ki or Mi, but got {text}")
    return int(match[1]) * UNITS[match[2]]


def options_from(arguments: list[str] | None, description: str | None) -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=form)
    rows = [op for op in openaclnn.OPS if op.pointwise]
    names = sorted(op.python for op in rows)
    known = {name for op in rows for name in (op.python, op.name)}
    add = parser.add_argument
    add("--ops", nargs="+", metavar="OP", help=f"default all but in-place rows: {', '.join(names)}")
    add("--dtypes", nargs="+", choices=DTYPES, help="default fp32 bf16 fp16")
    add("--sizes", nargs="+", metavar="N", help=f"elements; default {' '.join(SIZES)}")
    add("--layouts", nargs="+", choices=LAYOUTS, help="default all")
    add("--backends", nargs="+", choices=BACKENDS, default=["ours", "torch"])
    add("--threads", type=int, default=2, help="of ours and of torch, default 2; NumPy has one")
    add("--rounds", type=int, help="samples a median is of, default 11")
    add("--runs", type=int, default=1, help="how many times all cells are measured, default 1")
    add("--shortest", type=int, metavar="N", help="time N single calls instead, for busy machines")
    add("--out", type=Path, help="write the results as JSON")
    add("--quick", action="store_true", help="defaults become 4Ki 1Mi, fp32 bf16, 2 rounds")
    options = parser.parse_args(arguments)
    quick = options.quick
    options.given = bool(options.sizes) or quick
    options.sizes = options.sizes or (["4Ki", "1Mi"] if quick else SIZES)
    options.dtypes = options.dtypes or (["fp32", "bf16"] if quick else None)
    if options.rounds is None:
        options.rounds = 2 if quick else 11
    for name in set(options.ops or ()) - known:
        parser.error(f"no operator {name}; there are {', '.join(names)}")
    if options.runs < 1 or options.rounds < 1:
        parser.error("--runs and --rounds take a number from 1 on")
    try:
        options.elements = [count(size) for size in options.sizes]
    except ValueError as error:
        parser.error(str(error))
    return options


def load_modules(options: argparse.Namespace) -> None:
    """Those the backends need; a backend whose module is not installed is left out and named."""
    options.modules, options.absent = {}, []
    for backend in list(options.backends):
        module = BACKENDS[backend]
        if module and importlib.util.find_spec(module) is None:
            options.backends.remove(backend)
            options.absent.append(backend)
            print(f"{module} is not installed: no column {backend}", file=sys.stderr)
        elif module:
            options.modules[module] = importlib.import_module(module)
    if "torch" in options.modules:
        options.modules["torch"].set_num_threads(options.threads)
    openaclnn.set_num_threads(options.threads)
