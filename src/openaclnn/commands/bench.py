# SPDX-License-Identifier: Apache-2.0
"""`openaclnn bench`: how fast an operator is, with the user's shapes, dtypes and attributes."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import AclnnError
from ..report.output import unwritable, write_json, write_text, writing
from ..report.text_table import Paint
from ..settings import config
from .arguments import (
    WRONG_USE,
    WrongUse,
    add_attributes,
    given_attributes,
    operator,
    refuse_others,
)

if TYPE_CHECKING:
    from ..bench.running import Row, Setting

SHAPE = "1024x1024"
SWEEP = ("1Ki", "4Mi")
STEP = 4  # times as many elements from one size of a sweep to the next
ROUNDS = 11
UNITS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20}


def add_command(command: Callable[..., argparse.ArgumentParser]) -> None:
    sub = command(
        "bench",
        run,
        "measure an operator with your shapes, dtypes and attributes",
        "Measures an operator beside a peer and beside a copy of as many bytes. The candidates\n"
        "take turns, and a sample is repeated if another program used a core meanwhile; times\n"
        "are medians with their spread. The results are compared before the clock starts.\n\n"
        "  openaclnn bench elu_backward --shape 1024x1024 --dtype fp32 bf16 --alpha 1.5\n"
        "  openaclnn bench elu --sweep 1Ki 16Mi --out elu.svg --html elu.html\n"
        "  openaclnn bench group_norm_swish --shape 2x320x64x64 --num-groups 32 --json new.json\n"
        "  openaclnn bench --compare old.json new.json\n\n"
        "Exit status: 0; 1 if results differ from the peer's or, with --compare, something is\n"
        "slower; 2 if nothing was measured.",
    )
    add = sub.add_argument
    add("op", nargs="?", metavar="OPERATOR", help="C or Python name")
    add("--shape", nargs="+", metavar="NxM", help=f"of the first input ({SHAPE})")
    add("--dtype", nargs="+", metavar="DTYPE", help="fp32 (the default), bf16, fp16, fp64")
    add("--peer", default="torch", help="torch (the default), numpy or none")
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
    add("--html", metavar="FILE", help="write an HTML report; - for standard output")
    add("--compare", nargs=2, metavar="FILE.json", help="two files of --json: before and after")
    add_attributes(sub)


def run(arguments: argparse.Namespace, paint: Paint) -> int:
    if arguments.json == arguments.html == "-":
        return _refuse("--json and --html must not both be -")
    if any(unwritable("bench", f"--{n}", getattr(arguments, n)) for n in ("json", "html", "out")):
        return WRONG_USE
    stream = sys.stdout
    if "-" in (arguments.json, arguments.html):  # the document is alone there
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
    setting, shapes, dtypes, picture = _read(arguments)
    from ..bench import reporting
    from ..bench.machine import busy
    from ..bench.running import Bench, about

    load = os.getloadavg()[0]
    bench = Bench(setting)
    notes = [busy(load)] if busy(load) else []
    if bench.loops is None:
        notes.append("there is no g++ or clang++: no share of a copy")
    for note in notes:
        print(note, file=sys.stderr)
    rows: list[Row] = []
    total = len(dtypes) * len(shapes)
    for dtype in dtypes:
        for shape in shapes:
            if sys.stderr.isatty():
                done = f"[{len(rows) + 1}/{total}] {dtype} {shape}"
                print(f"\r{done}\033[K", end="", file=sys.stderr, flush=True)
            rows.append(bench.measure(shape, dtype))
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    print("\n".join(reporting.lines(setting, rows, paint)), file=stream)
    machine = about(bench, load)
    sweep = arguments.sweep is not None
    if sweep and not arguments.out:
        _draw(rows, dtypes, stream, paint)
    if picture is not None:
        with writing(picture):
            reporting.sweep_picture(setting, rows, picture)
    if arguments.json:
        write_json(arguments.json, reporting.as_data(setting, rows, machine))
    if arguments.html:
        write_text(arguments.html, reporting.page(setting, rows, machine, sweep, notes))
    return 1 if any(row.differs for row in rows) else 0


def _draw(rows: list[Row], dtypes: list[str], stream: Any, paint: Paint) -> None:
    from ..bench.reporting import sweep_lines
    from ..plotting.canvas import has_braille

    width = min(shutil.get_terminal_size((80, 24)).columns, 110)
    braille = os.environ.get("TERM") != "dumb" and has_braille(stream.encoding)
    for dtype in dtypes:
        print(f"\n{sweep_lines(rows, dtype, width, braille, paint)}", file=stream)


def _read(
    arguments: argparse.Namespace,
) -> tuple[Setting, list[tuple[int, ...]], list[str], Path | None]:
    from ..bench.running import PEER_NAMES, Setting
    from ..plotting.curves import default_attributes
    from ..reference.dtypes import dtype_of

    if arguments.op is None:
        raise WrongUse("an operator must be named, or --compare; see:  openaclnn ops")
    op = operator(arguments.op)
    given = given_attributes(arguments)
    refuse_others(op, given)
    if arguments.peer not in PEER_NAMES:
        raise WrongUse(f"--peer must be torch, numpy or none, but is {arguments.peer}")
    threads = config()["threads"] if arguments.threads is None else arguments.threads
    for name, value in (("threads", threads), ("rounds", arguments.rounds)):
        if value < 1:
            raise WrongUse(f"--{name} must be at least 1, but is {value}")
    dtypes = list(dict.fromkeys(dtype_of(d, "--dtype") for d in arguments.dtype or ["fp32"]))
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
    setting = Setting(op, default_attributes(op) | given, arguments.peer, threads, arguments.rounds)
    return setting, list(dict.fromkeys(shapes)), dtypes, _picture(arguments.out)


def _shape(word: str) -> tuple[int, ...]:
    sizes = re.findall(r"\d+", word)
    if not re.fullmatch(r"[1-9]\d*([x,][1-9]\d*)*", word):
        raise WrongUse(f"--shape must be sizes such as 1024x1024, but is {word}")
    return tuple(map(int, sizes))


def _sizes(words: list[str]) -> list[tuple[int, ...]]:
    if len(words) not in (0, 2):
        raise WrongUse(f"--sweep takes two sizes or none, but got {len(words)}")
    low, high = (_count(word) for word in words or SWEEP)
    if low >= high:
        raise WrongUse(f"--sweep must have the lower size first, but is {' '.join(words)}")
    found = []
    while low < high:
        found.append((low,))
        low *= STEP
    return [*found, (high,)]


def _count(word: str) -> int:
    match = re.fullmatch(r"([1-9]\d*)(Ki|Mi|)", word)
    if match is None:
        raise WrongUse(f"a size is a number, or one with Ki or Mi, but got {word}")
    return int(match[1]) * UNITS[match[2]]


def _picture(out: str | None) -> Path | None:
    if out is None:
        return None
    if Path(out).suffix not in (".png", ".svg"):
        raise WrongUse(f"--out must be a .png or .svg file, but is {out}")
    if importlib.util.find_spec("matplotlib") is None:
        raise WrongUse("--out needs matplotlib: pip install matplotlib; text needs nothing")
    return Path(out)


def _compare(arguments: argparse.Namespace, stream: Any, paint: Paint) -> int:
    from ..bench import comparing

    old, new = (_load(path) for path in arguments.compare)
    found = comparing.compare(old, new)
    notes = comparing.notes(arguments.compare, (old, new))
    for note in notes:
        print(note, file=sys.stderr)
    print("\n".join(comparing.compared_lines(found, paint)), file=stream)
    if arguments.json:
        write_json(arguments.json, {"op": new["op"], "files": arguments.compare, "rows": found})
    if arguments.html:
        page = comparing.compared_page(new["op"], arguments.compare, found, notes)
        write_text(arguments.html, page)
    return 1 if any(one["verdict"] == "slower" for one in found) else 0


def _load(path: str) -> dict[str, Any]:
    from ..bench.running import SCHEMA

    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WrongUse(f"{path} is not a JSON file: {error}") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise WrongUse(f'{path} must have "schema": "{SCHEMA}", as --json writes it')
    return data
