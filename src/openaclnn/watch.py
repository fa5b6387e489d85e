# SPDX-License-Identifier: Apache-2.0
"""`openaclnn check` and `openaclnn trace`: running a program and watching what it does with acl."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .programs import become, environment
from .settings import home
from .text_table import Paint

MISTAKES_MADE = 66  # exit status of a program that made a mistake, unless told otherwise
WRONG_USE = 2  # exit status, as argparse has it
NAMES = ("ascendcl", "acl_rt", "nnopbase", "opapi", "opapi_nn", "opapi_math", "acl_op_compiler")


def run_beside(what: str, words: Sequence[str], variables: dict[str, str]) -> int:
    """How the program ended, -N by signal N; it runs in a process of its own."""
    child = os.fork()
    if child == 0:
        os._exit(become(what, words, variables))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the program
    try:
        _, status = os.waitpid(child, 0)
    finally:
        signal.signal(signal.SIGINT, before)
    return os.waitstatus_to_exitcode(status)


def as_shell(ended: int) -> int:
    """The exit status that a shell tells."""
    return 128 - ended if ended < 0 else ended


def starts(words: Sequence[str], variables: Mapping[str, str]) -> bool:
    """Whether there is such a program; where there is none, starting it says so."""
    return shutil.which(words[0], path=variables.get("PATH")) is not None


def unwritable(what: str, option: str, path: str | None) -> bool:
    """Says so when no file can be written there."""
    if path is None or path == "-":
        return False
    existed = Path(path).exists()
    try:
        with Path(path).open("a", encoding="utf-8"):
            pass
        if not existed:
            Path(path).unlink()
        return False
    except OSError as error:
        print(
            f"openaclnn {what}: {option} must be a file that can be written, but {path} is not: "
            f"{error.strerror}",
            file=sys.stderr,
        )
        return True


def write_json(destination: str, document: dict[str, Any]) -> None:
    text = json.dumps(document, indent=2) + "\n"
    if destination == "-":
        sys.stdout.write(text)
    else:
        Path(destination).write_text(text, encoding="utf-8")


def check(arguments: argparse.Namespace, _: Paint) -> int:
    words = arguments.program
    if unwritable("check", "--json", arguments.json):
        return WRONG_USE
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder, "reports")
        variables = environment(os.environ) | {
            "OPENACLNN_CHECK": "1",
            "OPENACLNN_CHECK_EXIT_CODE": str(arguments.exit_code),
            "OPENACLNN_CHECK_JSON": str(lines),
        }
        found = starts(words, variables)
        ended = run_beside("check", words, variables)
        watched = lines.exists()  # the library makes the file when it is loaded
        text = lines.read_text(encoding="utf-8", errors="replace") if watched else ""
    status = as_shell(ended)
    reports = [json.loads(line) for line in text.splitlines()]
    if arguments.json is not None:
        write_json(arguments.json, {"program": words, "status": status, "reports": reports})
    by_signal = f"ended by signal {-ended}" if ended < 0 else ""
    if not watched:
        if found:
            print(f"openaclnn check: {words[0]} did not load openaclnn", file=sys.stderr)
    elif reports:
        if by_signal:
            print(f"openaclnn check: {by_signal}", file=sys.stderr)
    else:
        until = f"{by_signal}: no mistakes until then" if by_signal else "no mistakes"
        print(f"openaclnn check: {until}", file=sys.stderr)
    return arguments.exit_code or status if reports else status


def trace(arguments: argparse.Namespace, _: Paint) -> int:
    for option, path in (("-o", arguments.output), ("--text", arguments.text)):
        if unwritable("trace", option, path):
            return WRONG_USE
    variables = environment(os.environ)
    folder = home() / "lib64" / "trace"
    before = variables.get("LD_PRELOAD")
    libraries = [str(folder / f"lib{name}.so") for name in NAMES] + ([before] if before else [])
    variables["LD_PRELOAD"] = ":".join(libraries)
    for variable, path in (("TEXT", arguments.text), ("JSON", arguments.output)):
        variables[f"OPENACLNN_TRACE_{variable}"] = str(Path(path).absolute()) if path else ""
    words = arguments.program
    with tempfile.TemporaryDirectory() as marks:
        seen = Path(marks, "seen")  # the first call makes it
        variables["OPENACLNN_TRACE_SEEN"] = str(seen)
        found = starts(words, variables)
        ended = run_beside("trace", words, variables)
        if found and not seen.exists():
            print(f"openaclnn trace: {words[0]} made no call of acl", file=sys.stderr)
    return as_shell(ended)


def exit_status(text: str) -> int:
    if not text.isdecimal() or int(text) > 255:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 255, but is {text}")
    return int(text)


class Program(argparse.Action):
    """The program and its arguments: at least one word."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        words = values[1:] if values[:1] == ["--"] else values
        if not words:
            parser.error("the program to run is missing")
        setattr(namespace, self.dest, words)


def add_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the two commands."""
    checked = command(
        "check",
        check,
        "run a program and tell every mistake it makes with acl",
        "Runs a program in check mode: device memory cannot be touched by the host, and every use\n"
        "that would fail on the device, or now and then, is told with the places it comes from:\n"
        "reading before synchronising, streams that race, use after free, leaks, wrong copies.\n"
        "docs/check_mode.md shows a report of each kind.\n\n"
        "The exit status is that of the program, or --exit-code when it made a mistake.\n\n"
        "  openaclnn check ./program argument\n"
        "  openaclnn check --json reports.json --exit-code 1 ./program\n"
        "  OPENACLNN_CHECK=1 ./program     the same, of a program that finds the libraries itself",
    )
    checked.add_argument(
        "--json", metavar="FILE", help="write the reports as JSON; - is standard output"
    )
    checked.add_argument(
        "--exit-code",
        metavar="N",
        type=exit_status,
        default=MISTAKES_MADE,
        help=f"exit status after a mistake, {MISTAKES_MADE} unless given; 0: that of the program",
    )
    traced = command(
        "trace",
        trace,
        "run a program and show every call of acl it makes",
        "Runs a program and shows its calls of acl and aclnn functions with their arguments,\n"
        "shapes and dtypes, what streams worked on and how long, and a table at the end.\n"
        "docs/trace.md explains what is shown.\n\n"
        "The exit status is that of the program.\n\n"
        "  openaclnn trace ./program argument\n"
        "  openaclnn trace -o trace.json --text trace.txt ./program\n\n"
        "trace.json opens in https://ui.perfetto.dev and in chrome://tracing.",
    )
    traced.add_argument(
        "-o", "--output", metavar="FILE", help="write a trace for Perfetto and Chrome"
    )
    traced.add_argument(
        "--text", metavar="FILE", help="write the text there and not to standard error"
    )
    for sub in (checked, traced):
        sub.add_argument(
            "program",
            nargs=argparse.REMAINDER,
            action=Program,
            metavar="PROGRAM [ARGUMENT ...]",
            help="what to run",
        )
