# SPDX-License-Identifier: Apache-2.0
"""`openaclnn bench`: how fast an operator is, with the user's shapes, dtypes and attributes."""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import AclnnError
from ..report.output import read_json, unwritable, write_json, writing
from ..report.text_table import Paint
from ..settings import config
from .arguments import (
    WRONG_USE,
    WrongUse,
    add_attributes,
    given_attributes,
    operator,
    refuse_others,
    separated,
)

if TYPE_CHECKING:
    from ..bench.cases import Case
    from ..bench.measure import Result

SHAPE = "1024x1024"
SWEEP = ("1Ki", "4Mi")
STEP = 4  # times as many elements from one size of a sweep to the next
ROUNDS = 11
BASELINES = ("torch", "compiled", "numpy", "none")


def add_command(command: Callable[..., argparse.ArgumentParser]) -> None:
    sub = command(
        "bench",
        run,
        "measure an operator with your shapes, dtypes and attributes",
        "Measures an operator beside a baseline and a copy of as many bytes. The candidates\n"
        "take turns, and a sample is repeated if another program used a core meanwhile; times\n"
        "are medians with their spread. The results are compared before the clock starts.\n\n"
        "  openaclnn bench elu_backward --shape 1024x1024 --dtype fp32 bf16 --alpha 1.5\n"
        "  openaclnn bench elu --sweep 1Ki 16Mi --out elu.svg\n"
        "  openaclnn bench group_norm_swish --shape 2x320x64x64 --num-groups 32 --json new.json\n"
        "  openaclnn bench --compare old.json new.json\n\n"
        "Exit status: 0; 1 if results differ from the baseline's or, with --compare, something is\n"
        "slower; 2 if nothing was measured.",
    )
    add = sub.add_argument
    add("op", nargs="?", metavar="OPERATOR", help="C or Python name")
    add("--shape", nargs="+", metavar="NxM", help=f"of the first input ({SHAPE})")
    add("--dtype", nargs="+", metavar="DTYPE", help="fp32 (the default), bf16, fp16, fp64")
    add(
        "--baseline",
        default="torch",
        help="torch (the default), compiled (torch.compile), numpy or none",
    )
    add("--threads", type=int, metavar="N", help="for ours and for torch (as openaclnn info shows)")
    add("--rounds", type=int, default=ROUNDS, metavar="N", help=f"samples of a median ({ROUNDS})")
    add(
        "--sweep",
        nargs="*",
        metavar="SIZE",
        help=f"measure sizes from the first to the second, not shapes ({' '.join(SWEEP)})",
    )
    add("--out", metavar="FILE", help="with --sweep: a picture, .png or .svg (needs matplotlib)")
    add("--json", metavar="FILE", help="write the results; - for standard output")
    add("--compare", nargs=2, metavar="FILE.json", help="two files of --json: before and after")
    add_attributes(sub)


def run(arguments: argparse.Namespace, paint: Paint) -> int:
    if any(unwritable("bench", f"--{n}", getattr(arguments, n)) for n in ("json", "out")):
        return WRONG_USE
    stream = sys.stdout
    if arguments.json == "-":  # the document is alone there
        stream, paint = sys.stderr, Paint(sys.stderr)
    try:
        if arguments.compare:
            if arguments.op or arguments.sweep is not None:
                raise WrongUse("--compare takes two files and measures nothing")
            return _compare(arguments, stream, paint)
        return _bench(arguments, stream, paint)
    except (WrongUse, ValueError, AclnnError) as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        print("openaclnn bench: interrupted", file=sys.stderr)
        return 130


def _refuse(sentence: str) -> int:
    print(f"openaclnn bench: {sentence}", file=sys.stderr)
    return WRONG_USE


def _bench(arguments: argparse.Namespace, stream: Any, paint: Paint) -> int:
    cases, picture = _read(arguments)
    from ..bench import report
    from ..bench.machine import busy
    from ..bench.measure import Bench

    load = os.getloadavg()[0]
    baseline = arguments.baseline
    threads = config()["threads"] if arguments.threads is None else arguments.threads
    bench = Bench(threads, arguments.rounds)
    if note := busy(load):
        print(note, file=sys.stderr)
    if bench.loops is None:
        print("no share of a copy: neither g++ nor clang++ found", file=sys.stderr)
    results: list[Result] = []
    for case in cases:
        if sys.stderr.isatty():
            done = f"[{len(results) + 1}/{len(cases)}] {case.dtype} {case.shape}"
            print(f"\r{done}\033[K", end="", file=sys.stderr, flush=True)
        results.append(bench.measure(case, [] if baseline == "none" else [baseline]))
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    print("\n".join(report.lines(results, baseline, paint)), file=stream)
    if picture is not None:
        with writing(picture):
            report.sweep_picture(results, picture)
    elif arguments.sweep is not None:
        _draw(results, stream, paint)
    if arguments.json:
        write_json(arguments.json, report.as_data(results, bench.about(load)))
    return 1 if any(one.differs for one in results) else 0


def _draw(results: list[Result], stream: Any, paint: Paint) -> None:
    from ..bench.report import sweep_lines
    from ..plotting.canvas import has_braille

    width = min(shutil.get_terminal_size((80, 24)).columns, 110)
    braille = os.environ.get("TERM") != "dumb" and has_braille(stream.encoding)
    for dtype in dict.fromkeys(one.case.dtype for one in results):
        print(f"\n{sweep_lines(results, dtype, width, braille, paint)}", file=stream)


def _read(arguments: argparse.Namespace) -> tuple[list[Case], Path | None]:
    from ..bench.cases import Case
    from ..plotting.curves import default_attributes
    from ..reference.dtypes import dtype_of

    if arguments.op is None:
        raise WrongUse("an operator must be named, or --compare; see:  openaclnn ops")
    op = operator(arguments.op)
    given = given_attributes(arguments)
    refuse_others(op, given)
    if arguments.baseline not in BASELINES:
        names = f"{', '.join(BASELINES[:-1])} or {BASELINES[-1]}"
        raise WrongUse(f"--baseline must be {names}, but is {arguments.baseline}")
    for name in ("threads", "rounds"):
        value = getattr(arguments, name)
        if value is not None and value < 1:
            raise WrongUse(f"--{name} must be at least 1, but is {value}")
    words = [word for one in arguments.dtype or ["fp32"] for word in separated(one)]
    dtypes = list(dict.fromkeys(dtype_of(word, "--dtype") for word in words))
    if arguments.sweep is None:
        if arguments.out:
            raise WrongUse("--out must come with --sweep")
        shapes = [_shape(word) for word in arguments.shape or [SHAPE]]
    elif arguments.shape:
        raise WrongUse("--shape and --sweep must not both be given")
    elif op.shapes == "named":
        raise WrongUse(f"--sweep needs an operator that takes any shape; {op.python} needs --shape")
    else:
        shapes = _sizes(arguments.sweep)
    attributes = default_attributes(op) | given
    shapes = list(dict.fromkeys(shapes))
    cases = [Case(op, dtype, shape, attributes) for dtype in dtypes for shape in shapes]
    return cases, _picture(arguments.out)


def _shape(word: str) -> tuple[int, ...]:
    sizes = re.findall(r"\d+", word)
    if not re.fullmatch(r"[1-9]\d*([x,][1-9]\d*)*", word):
        raise WrongUse(f"--shape must be sizes such as 1024x1024, but is {word}")
    return tuple(map(int, sizes))


def _sizes(words: list[str]) -> list[tuple[int, ...]]:
    if len(words) not in (0, 2):
        raise WrongUse(f"--sweep takes two sizes or none, but got {len(words)}")
    from ..bench.cases import count

    low, high = (count(word) for word in words or SWEEP)
    if low >= high:
        raise WrongUse(f"--sweep must have the lower size first, but is {' '.join(words)}")
    found = []
    while low < high:
        found.append((low,))
        low *= STEP
    return [*found, (high,)]


def _picture(out: str | None) -> Path | None:
    if out is None:
        return None
    if Path(out).suffix not in (".png", ".svg"):
        raise WrongUse(f"--out must be a .png or .svg file, but is {out}")
    if importlib.util.find_spec("matplotlib") is None:
        raise WrongUse("--out needs matplotlib: pip install matplotlib; text needs nothing")
    return Path(out)


def _compare(arguments: argparse.Namespace, stream: Any, paint: Paint) -> int:
    from ..bench import compare_records

    old, new = (_load(path) for path in arguments.compare)
    found = compare_records.compare(old, new)
    for note in compare_records.notes(arguments.compare, (old, new)):
        print(note, file=sys.stderr)
    print("\n".join(compare_records.compared_lines(found, paint)), file=stream)
    if arguments.json:
        write_json(arguments.json, {"op": new["op"], "files": arguments.compare, "rows": found})
    return 1 if any(one["verdict"] == "slower" for one in found) else 0


def _load(path: str) -> dict[str, Any]:
    from ..bench.measure import SCHEMA

    try:
        return read_json(path, SCHEMA)
    except ValueError as error:
        raise WrongUse(f"{error}; --json writes such files") from None
