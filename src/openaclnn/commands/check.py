# SPDX-License-Identifier: Apache-2.0
"""`openaclnn check`: running a program in check mode."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..report.output import NOT_WRITTEN, NotWritten, unwritable, write_json, write_text
from ..report.text_table import Paint
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

MISTAKES_MADE = (
    66  # exit status of a program that made a mistake, unless --exit-code says otherwise
)
NOTHING_CHECKED = 67  # exit status when a program succeeds without a call that check mode looks at


def folded(lines: Sequence[str]) -> list[dict[str, Any]]:
    """The reports, each with its consequences: the library writes those after their cause."""
    reports: list[dict[str, Any]] = []
    for line in lines:
        report = json.loads(line)
        if report.pop("consequence") and reports:
            reports[-1]["consequences"].append(report)
        else:
            reports.append(report | {"consequences": []})
    return reports


def summary(
    words: Sequence[str], *, loaded: bool, called: bool, mistakes: int, ended: int, aten: bool
) -> str:
    """The last lines; the library itself prints the number of mistakes."""
    by_signal = f"ended by signal {-ended}" if ended < 0 else ""
    if mistakes:
        return by_signal
    if called and (hint := aten_hint("check", ended, aten)):
        return f"ended with status {ended}: no mistakes until then{hint}"
    if called:
        how = by_signal or (f"ended with status {ended}" if ended else "")
        return f"{how}: no mistakes until then" if how else "no mistakes"
    why = (
        "the program loaded openaclnn, but used neither memory nor streams nor operators"
        if loaded
        else f"{words[0]} did not load openaclnn"
    )
    hint = aten_hint("check", ended, aten)
    return (f"{by_signal}: " if by_signal else "") + f"nothing was checked: {why}{hint}"


def appended(path: str, text: str) -> str | None:
    """Adds the lines to the file; returns why that is not possible."""
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        return error.strerror
    return None


def check(arguments: argparse.Namespace, _: Paint) -> int:
    words = arguments.program
    if arguments.json == arguments.html == "-":
        print(
            "openaclnn check: only one of --json and --html must be -, but both are",
            file=sys.stderr,
        )
        return WRONG_USE
    for option, path in (("--json", arguments.json), ("--html", arguments.html)):
        if unwritable("check", option, path):
            return WRONG_USE
    if wrong_value("check", os.environ):
        return WRONG_USE
    try:
        root = directory(aten=arguments.aten)
    except NoDirectory as error:
        return refuse("check", error)
    with tempfile.TemporaryDirectory() as folder:
        lines, seen = Path(folder, "reports"), Path(folder, "seen")
        variables = environment(os.environ, root) | {
            "OPENACLNN_CHECK": "1",
            "OPENACLNN_CHECK_EXIT_CODE": str(arguments.exit_code),
            "OPENACLNN_CHECK_JSON": str(lines),
            "OPENACLNN_CHECK_SEEN": str(seen),
        }
        found = starts(words, variables)
        to_output = "-" in (arguments.json, arguments.html)
        ended = run_beside("check", words, variables, output_to_error=to_output)
        loaded = lines.exists()  # the library makes the file when it is loaded
        called = seen.exists()  # and this one at the first call that it looks at
        text = lines.read_text(encoding="utf-8", errors="replace") if loaded else ""
    also = os.environ.get("OPENACLNN_CHECK_JSON")
    if also and text and (problem := appended(also, text)):
        print(f"openaclnn check: OPENACLNN_CHECK_JSON={also}: {problem}", file=sys.stderr)
    reports = folded(text.splitlines())
    status = as_shell(ended)
    if reports:
        status = arguments.exit_code or status
    elif not called and status == 0 and arguments.exit_code != 0:
        status = NOTHING_CHECKED
    said = summary(
        words,
        loaded=loaded,
        called=called,
        mistakes=len(reports),
        ended=ended,
        aten=arguments.aten,
    )
    document = {"program": words, "status": status, "checked": called, "reports": reports}
    try:
        if arguments.json is not None:
            write_json(arguments.json, document)
        if arguments.html is not None:
            from .check_page import page

            write_text(arguments.html, page(document, said))
    except NotWritten as error:  # the mistakes count for more
        print(f"openaclnn check: {error}", file=sys.stderr)
        status = status or NOT_WRITTEN
    if said and found:
        print(f"openaclnn check: {said}", file=sys.stderr)
    return status


def exit_status(text: str) -> int:
    if not text.isdecimal() or int(text) > 255:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 255, but is {text}")
    return int(text)


def add_command(command: Callable[..., argparse.ArgumentParser]) -> None:
    sub = command(
        "check",
        check,
        "run a program and report every mistake it makes with acl",
        "Runs a program in check mode. The host cannot touch device memory, and mistakes\n"
        "that would make the program fail on the device, always or sometimes, are reported with\n"
        "the places they come from: reading before synchronising, or reading what was never\n"
        "written; streams that race; tensors and copies that exceed an allocation; use after\n"
        "free; leaks. `openaclnn docs mistakes` shows a report of each kind; what check mode does\n"
        "not see: `openaclnn docs check_mode`.\n\n"
        "The last line on standard error, after `openaclnn check: `, and the exit status give the\n"
        "outcome:\n"
        "  no mistakes                the program's own\n"
        f"  N mistakes                 {MISTAKES_MADE}, or --exit-code\n"
        "  N mistakes with M consequences\n"
        "                             the same: M more calls failed because of them\n"
        "  N mistakes, K of them leaks   the same\n"
        f"  nothing was checked: ...   the program's own; {NOTHING_CHECKED} instead of 0, unless\n"
        "                             --exit-code is 0\n"
        "  ended with status N ...    N; no mistake until then\n"
        "  ended by signal N ...      128 + N, or the one for mistakes if there were any\n"
        "If the host touches device memory, the program ends at once, after that report: with\n"
        f"{MISTAKES_MADE}, or --exit-code, or {128 + signal.SIGSEGV} if that is 0.\n\n"
        f"{WRONG_USE}: this command was used wrongly; {NOT_WRITTEN} instead of 0: a report is\n"
        "lost. As in a shell, 127: the program does not exist, 126: it cannot be executed.\n\n"
        "  openaclnn check ./program argument\n"
        "  openaclnn check --json reports.json --exit-code 1 ./program\n"
        "  openaclnn check --html reports.html ./program\n"
        "  OPENACLNN_CHECK=1 ./program     the same for a program that finds the libraries itself",
    )
    sub.add_argument(
        "--json",
        metavar="FILE",
        help="also write the reports as JSON; with - they go to standard output, and what the "
        "program writes there goes to standard error",
    )
    sub.add_argument(
        "--html",
        metavar="FILE",
        help="also write the reports as an HTML page, with lines of source; - as for --json",
    )
    sub.add_argument(
        "--exit-code",
        metavar="N",
        type=exit_status,
        default=MISTAKES_MADE,
        help=f"exit status after a mistake, {MISTAKES_MADE} by default; 0 keeps the program's own",
    )
    add_program(sub)
