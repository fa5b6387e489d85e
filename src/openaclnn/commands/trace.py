# SPDX-License-Identifier: Apache-2.0
"""`openaclnn trace`: running a program and showing its calls."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from ..report.output import NOT_WRITTEN, unwritable
from ..report.text_table import Paint
from ..rows.libraries import LIBRARIES
from ..settings import home
from .programs import (
    WRONG_USE,
    NoDirectory,
    add_program,
    as_shell,
    aten_hint,
    directory,
    environment,
    refuse,
    run_beside,
    starts,
    wrong_value,
)


def preloaded(variables: Mapping[str, str], root: Path | None = None) -> str:
    """LD_PRELOAD with the traced libraries of an installation directory. The last of them has what
    libc and PyTorch have too; the loader would find theirs first if it only came as a dependency.
    """
    folder = (root or home()) / "lib64" / "trace"
    names = [*LIBRARIES, "openaclnn_trace"]
    before = variables.get("LD_PRELOAD")
    return ":".join([*(str(folder / f"lib{name}.so") for name in names), *filter(None, [before])])


def trace(arguments: argparse.Namespace, _: Paint) -> int:
    for option, path in (("-o", arguments.output), ("--text", arguments.text)):
        if unwritable("trace", option, path):
            return WRONG_USE
    if wrong_value("trace", os.environ):
        return WRONG_USE
    try:
        root = directory(aten=arguments.aten)
    except NoDirectory as error:
        return refuse("trace", error)
    variables = environment(os.environ, root)
    variables["LD_PRELOAD"] = preloaded(variables, root)
    asan = [variables.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]  # it comes after these
    variables["ASAN_OPTIONS"] = ":".join(filter(None, asan))
    for variable, path in (("TEXT", arguments.text), ("JSON", arguments.output)):
        variables[f"OPENACLNN_TRACE_{variable}"] = str(Path(path).absolute()) if path else ""
    words = arguments.program
    with tempfile.TemporaryDirectory() as marks:
        seen = Path(marks, "seen")  # the first call makes it
        variables["OPENACLNN_TRACE_SEEN"] = str(seen)
        found = starts(words, variables)
        ended = run_beside("trace", words, variables)
        hint = aten_hint("trace", ended, arguments.aten)
        if found and not seen.exists():
            print(f"openaclnn trace: {words[0]} made no call of acl{hint}", file=sys.stderr)
        elif found and hint:
            print(f"openaclnn trace: ended with status {ended}{hint}", file=sys.stderr)
        lost = Path(marks, "seen.lost").exists()  # the library has said which file
    return as_shell(ended) or (NOT_WRITTEN if lost else 0)


def add_command(command: Callable[..., argparse.ArgumentParser]) -> None:
    sub = command(
        "trace",
        trace,
        "run a program and show every call of acl it makes",
        "Runs a program and shows its calls of acl and aclnn functions with their arguments,\n"
        "shapes and dtypes, what streams worked on and for how long, and a table at the end.\n"
        "`openaclnn docs trace` explains the output.\n\n"
        f"The exit status is that of the program, or {NOT_WRITTEN} instead of 0 if FILE could not\n"
        "be written.\n\n"
        "  openaclnn trace ./program argument\n"
        "  openaclnn trace -o trace.json --text trace.txt ./program\n\n"
        "trace.json opens in https://ui.perfetto.dev and in chrome://tracing.",
    )
    sub.add_argument("-o", "--output", metavar="FILE", help="write a trace for Perfetto and Chrome")
    sub.add_argument(
        "--text", metavar="FILE", help="write the text to FILE instead of to standard error"
    )
    add_program(sub)
