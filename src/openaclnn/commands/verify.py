# SPDX-License-Identifier: Apache-2.0
"""`openaclnn verify`: cases from the rows against libraries, torch, or openaclnn itself."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..compiled import BuildError
from ..report.output import unwritable, write_json, write_text
from ..report.text_table import Paint
from ..settings import config
from .arguments import SEVERAL, add_operators
from .compare import WRONG_USE, add_standard, standard_options
from .programs import C_SUFFIXES, CXX_SUFFIXES
from .verify_cases import aten_rows, chosen_cases, named_by_functions

if TYPE_CHECKING:
    from ..verify.cases import Case
    from ..verify.provider import Provider

SEED = 1
REPORTS = ("json", "junit", "html")  # options that write one


def add_command(command: Callable[..., argparse.ArgumentParser]) -> None:
    sub = command(
        "verify",
        run,
        "verify a library, a Python function or torch with generated cases",
        "Makes cases from the table of operators (its dtypes, shapes and attributes; layouts and\n"
        "values come from one seed), lets a provider compute them, and judges every element. A\n"
        "provider is\n\n"
        "  openaclnn        this library, with each instruction set of this CPU (the default)\n"
        "  openaclnn:v3     one of them\n"
        "  torch            eager PyTorch on the CPU\n"
        "  torch:compiled   what torch.compile makes of it; seconds for each operator and dtype\n"
        "  library:PATH     a shared library with the aclnn C interface, in a child process, so\n"
        "                   that a crash or a hang is a finding and the run goes on\n"
        "  python:FILE:FUNC a Python function of NumPy, torch or JAX arrays, or one that starts\n"
        "                   a Triton kernel, which runs in Triton's interpreter\n\n"
        "  openaclnn verify\n"
        "  openaclnn verify library:./libmine.so --op elu --dtype fp16\n"
        "  openaclnn verify python:mine.py:elu --op elu --html report.html\n"
        "  openaclnn verify torch --standard double --benchmark openaclnn --junit report.xml\n"
        "  openaclnn verify library:./new.so --standard peer --ulp 1 --benchmark library:./old.so\n"
        "  openaclnn verify library:./libmine.so --op aclnnSoftmax   (a function of ATen)\n"
        "  openaclnn verify --op elu --list > cases.json   (edit them, then --cases cases.json)\n\n"
        "Exit status: 0 when all passed, 1 when something failed, 2 when nothing was verified.",
    )
    add = sub.add_argument
    add("providers", nargs="*", metavar="PROVIDER", help="what computes the results (openaclnn)")
    add_operators(sub)
    add("--dtype", metavar="DTYPE", help="only tensors of it, or of several: fp32,fp16", **SEVERAL)
    add("--seed", type=int, default=SEED, metavar="N", help=f"another makes other values ({SEED})")
    add("--only", action="append", metavar="ID", help="only this case, and show what is printed")
    add("--cases", metavar="FILE.json", help="cases of a file instead of those that it makes")
    add("--list", action="store_true", help="print the cases as such a file and run none")
    add("--exhaustive", action="store_true", help="every input of operators of one input instead")
    add("--state", metavar="FILE", help="with --exhaustive: go on from here after an interruption")
    add("--timeout", type=_seconds, default=20.0, metavar="S", help="seconds a call may take (20)")
    add("--json", metavar="FILE", help="write all results; - for standard output")
    add("--junit", metavar="FILE", help="the same as JUnit XML")
    add("--html", metavar="FILE", help="the same as HTML: matrix, histograms, worst cases")
    add("--quiet", action="store_true", help="no progress on standard error")
    add_standard(sub)
    add(
        "--benchmark",
        metavar="PROVIDER",
        help="for --standard double, either or peer: the other implementation (torch)",
    )


def run(arguments: argparse.Namespace, paint: Paint) -> int:
    from ..verify.cases import SCHEMA

    opened: list[Provider] = []
    try:
        if arguments.state and not arguments.exhaustive:
            raise ValueError("--state must come with --exhaustive")
        arguments.op = arguments.op or named_by_functions(arguments)
        rows = aten_rows(arguments)
        cases = chosen_cases(arguments, rows)
        if arguments.list:
            listed = [case.as_data() for case in cases]
            print(json.dumps({"schema": SCHEMA, "seed": arguments.seed, "cases": listed}, indent=1))
            return 0
        to_output = [name for name in REPORTS if getattr(arguments, name) == "-"]
        if len(to_output) > 1:
            both = " and ".join(f"--{name}" for name in to_output)
            raise ValueError(f"only one report must go to standard output, but {both} are -")
        if arguments.state == "-":
            raise ValueError("--state must be a file, but is -")
        files = (*REPORTS, "state")
        if any(unwritable("verify", f"--{name}", getattr(arguments, name)) for name in files):
            return WRONG_USE
        return _verify(arguments, cases, [row.name for row in rows], opened, paint)
    except (ValueError, BuildError) as error:  # BadCase, BadProvider, an unknown standard
        print(f"openaclnn verify: {error}", file=sys.stderr)
        return WRONG_USE
    except KeyboardInterrupt:
        more = f"; the same command goes on from {arguments.state}" if arguments.state else ""
        print(f"openaclnn verify: interrupted{more}", file=sys.stderr)
        return 130
    finally:
        for provider in opened:
            provider.close()


def _no_source(word: str, flags: str) -> None:
    """ValueError for a source file in place of a library."""
    kind, _, path = word.partition(":")
    if kind == "library" and path.endswith(C_SUFFIXES + CXX_SUFFIXES):
        built = Path(path).with_suffix(".so").name
        how = f"openaclnn cc {flags}-shared -fPIC {path} -o lib{built}"
        raise ValueError(f"{word} is a source file; compile it first: {how}")


def _verify(
    arguments: argparse.Namespace,
    cases: list[Case],
    of_aten: list[str],
    opened: list[Provider],
    paint: Paint,
) -> int:
    """`of_aten`: the functions that ATen computes, where these are judged."""
    from ..reference.standards import NEEDS_BENCHMARK, chosen
    from ..verify import exhaustive
    from ..verify.junit import junit
    from ..verify.page import page
    from ..verify.progress import Silent, progress
    from ..verify.provider_names import named
    from ..verify.report import Report, summary
    from ..verify.report_data import as_data
    from ..verify.runner import Runner

    ops = list({case.op.name: case.op for case in cases}.values())
    judge: type[Runner] = Runner
    asked = standard_options(arguments) | {"benchmark": arguments.benchmark is not None}
    if of_aten:
        from ..golden import running as aten
        from ..golden.judging import standard_of

        judge, standard = aten.GoldenRunner, standard_of(**asked)
    else:
        standard = chosen("ours", **asked)

    def providers_of(word: str) -> list[Provider]:
        _no_source(word, "--aten " if of_aten else "")
        if of_aten:
            return [aten.named(word, arguments.timeout, of_aten)]
        return named(word, arguments.timeout, ops)

    for word in arguments.providers or ["openaclnn"]:
        opened += providers_of(word)
    for note in (note for provider in opened for note in getattr(provider, "notes", ())):
        print(f"openaclnn verify: {note}", file=sys.stderr)
    providers, benchmark = list(opened), None
    needed = standard.name in NEEDS_BENCHMARK
    if needed and (arguments.benchmark or not of_aten):
        (*_, benchmark) = others = providers_of(arguments.benchmark or "torch")
        opened += others
    total = sum(c.shapes[0][0] for c in cases) if arguments.exhaustive else len(cases)
    shown = Silent() if arguments.quiet else progress(sys.stderr, total)
    start = time.monotonic()
    runner = judge(providers, standard, benchmark, profiles=arguments.html is not None)
    try:
        on_case: Callable[[Case, int], None] = lambda case, done: shown.advance(  # noqa: E731
            f"{case.op.python} {case.dtype}", done
        )
        if arguments.exhaustive:
            header = exhaustive.header(
                providers, benchmark, standard, arguments.html is not None, config()["version"]
            )
            path = Path(arguments.state) if arguments.state else None
            results = exhaustive.run(runner, cases, exhaustive.State(path, header, cases), on_case)
        else:
            results = runner.run(cases, on_case)
    finally:
        shown.close()
    for provider in providers if arguments.only else ():
        if text := getattr(provider, "output", str)():
            print(f"{provider.name} printed:\n{text}", file=sys.stderr)
    names = [provider.name for provider in providers]
    took = time.monotonic() - start
    report = Report(results, names, standard, _again(arguments), arguments.seed, took)
    to_output = any(getattr(arguments, name) == "-" for name in REPORTS)
    print(summary(report, paint), file=sys.stderr if to_output else sys.stdout)
    if arguments.json:
        write_json(arguments.json, as_data(report))
    if arguments.junit:
        write_text(arguments.junit, junit(report))
    if arguments.html:
        write_text(arguments.html, page(report))
    if not report.compared:
        return WRONG_USE
    return 1 if report.failed else 0


def _again(arguments: argparse.Namespace) -> list[str]:
    """The options that a single case needs, too."""
    words = ["--exhaustive"] if arguments.exhaustive else []
    if aten_rows(arguments):
        words += [word for name in arguments.op for word in ("--op", name)]
    others = {"benchmark": arguments.benchmark, "cases": arguments.cases}
    for name, value in (standard_options(arguments) | others).items():
        if value is not None:
            words += [f"--{name}", str(value)]
    return words


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number above 0, but is {text}")
    return value
