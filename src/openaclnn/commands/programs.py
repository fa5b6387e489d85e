# SPDX-License-Identifier: Apache-2.0
"""`openaclnn run`, and how other commands run programs with the installation directory. `run` and
`cc` become the program that they start, so its exit status and signals are its own; `check`,
`trace` and reports run theirs beside them.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import _core
from ..report.text_table import Paint
from ..settings import home

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as a shell returns
WRONG_USE = 2  # as argparse has it
C_SUFFIXES = (".c", ".i", ".s", ".S")
CXX_SUFFIXES = (".cpp", ".cc", ".cxx", ".c++", ".C", ".cp", ".CPP", ".ii")
LARGEST = 256 << 20  # bytes of a program that is looked through
PREFIX, REPORTED = "OPENACLNN_", "OPENACLNN_REPORTED_NAMES"

# What holds the installation directory; CMake files of samples read the last two.
ROOTS = (
    "ASCEND_HOME_PATH",
    "ASCEND_TOOLKIT_HOME",
    "ASCEND_AICPU_PATH",
    "TOOLCHAIN_HOME",
    "ASCEND_CUSTOM_PATH",
    "ASCEND_INSTALL_PATH",
)


class NoDirectory(RuntimeError):
    """Why there is no installation directory with the operators that ATen computes."""


def directory(*, aten: bool) -> Path:
    """The installation directory; that of `home --aten` is made if it is not there."""
    if not aten:
        return home()
    from ..aten.directory import directory as with_aten
    from ..compiled import BuildError

    try:
        return with_aten()
    except BuildError as error:
        raise NoDirectory(str(error)) from None


def environment(base: Mapping[str, str], folder: Path | None = None) -> dict[str, str]:
    """`base` and what set_env.sh of the installation directory adds to it."""
    root = str(folder or home())
    result = dict(base)
    for name in ROOTS:
        result[name] = root
    result["ASCEND_OPP_PATH"] = f"{root}/opp"
    for name, part in (
        ("PATH", "/tools/profiler/bin"),  # msprof
        ("PATH", "/bin"),
        ("LD_LIBRARY_PATH", "/lib64"),
        ("LIBRARY_PATH", "/lib64"),
        ("CMAKE_PREFIX_PATH", ""),
        ("PKG_CONFIG_PATH", "/share/pkgconfig"),
        ("PYTHONPATH", "/python/site-packages"),
    ):
        before = result.get(name)
        # `openaclnn npu` has put folders before it that must stay there.
        if f"{root}{part}" not in (before or "").split(":"):
            result[name] = f"{root}{part}" + (f":{before}" if before else "")
    return result


def wrong_value(what: str, variables: Mapping[str, str]) -> bool:
    """Whether a variable of openaclnn has a value that it cannot have, which this prints."""
    found = [
        problem
        for name, value in sorted(variables.items())
        if name.startswith(PREFIX)
        and (problem := _core.variable_problem(name, value.encode(errors="replace").decode()))
    ]
    for problem in found:
        print(f"openaclnn {what}: {problem}", file=sys.stderr)
    return bool(found)


def with_reported_names(variables: Mapping[str, str]) -> dict[str, str]:
    """So that the program does not report again the unknown names that this process reported."""
    names = [name for name in os.environ if name.startswith(PREFIX) and name != REPORTED]
    return {**variables, REPORTED: ":".join(names)}


def become(what: str, command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Starts the command in the place of this process; returns only when it cannot."""
    variables = with_reported_names(variables)
    program = command[0]
    found = program if "/" in program else shutil.which(program, path=variables.get("PATH"))
    sys.stdout.flush()
    try:
        if found is None:
            raise FileNotFoundError
        os.execve(found, list(command), dict(variables))
    except FileNotFoundError:
        hint = remedy(program)
        print(f"openaclnn {what}: program {program} not found{hint}", file=sys.stderr)
        return NOT_FOUND
    except OSError as error:
        hint = remedy(program)
        print(f"openaclnn {what}: cannot run {program}: {error.strerror}{hint}", file=sys.stderr)
        return NOT_EXECUTABLE


def remedy(program: str) -> str:
    """How to run a file that is not a program on the path."""
    path = Path(program)
    # Scripts, which are not in every environment with their module.
    modules = {"torchrun": "torch.distributed.run", "pytest": "pytest"}
    if program in modules:
        return f"; use python -m {modules[program]}"
    if not path.is_file():
        return ""
    if path.suffix in C_SUFFIXES + CXX_SUFFIXES:
        return f"; build it:  openaclnn cc {program} -o {path.with_suffix('')}"
    if path.suffix == ".py":
        return f"; use python {program}"
    return "" if "/" in program else f"; use ./{program}"


def run_beside(
    what: str, words: Sequence[str], variables: dict[str, str], *, output_to_error: bool = False
) -> int:
    """How the program ended, -N by signal N; it runs in its own process.

    `output_to_error`: what it writes to standard output goes to standard error.
    """
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        if output_to_error:
            os.dup2(2, 1)
        os._exit(become(what, words, variables))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the program
    try:
        _, status = os.waitpid(child, 0)
    finally:
        signal.signal(signal.SIGINT, before)
    return os.waitstatus_to_exitcode(status)


def as_shell(ended: int) -> int:
    """The exit status that a shell reports."""
    return 128 - ended if ended < 0 else ended


def refuse(what: str, error: Exception) -> int:
    print(f"openaclnn {what}: {error}", file=sys.stderr)
    return WRONG_USE


CALLED = re.compile(rb"\0(aclnn\w+)GetWorkspaceSize(?=\0)")  # which the next name begins with
FOLDERS = re.compile(rb"[\0:](/[^\0:]+/lib64)")


def needs_aten(program: str, variables: Mapping[str, str]) -> str:
    """A function that ATen computes, called by a program built without the path of a directory that
    has it. The loader would only say that a symbol or a library is missing."""
    found = shutil.which(program, path=variables.get("PATH"))
    try:
        data = Path(found).read_bytes() if found and Path(found).stat().st_size < LARGEST else b""
    except OSError:  # it may be run, but not read
        return ""
    called = CALLED.findall(data) if data.startswith(b"\x7fELF") else []
    if not called or any(
        Path(os.fsdecode(f), "libaclnn_math.so").exists() for f in FOLDERS.findall(data)
    ):
        return ""
    from ..aten.prototypes import functions

    return next((name for name in map(bytes.decode, called) if name in functions()), "")


def run_program(arguments: argparse.Namespace, _: Paint) -> int:
    aten = arguments.words[:1] == ["--aten"]
    words = arguments.words[aten:]
    if not words or words[0] in ("-h", "--help"):
        print(arguments.help)
        return 0 if words else WRONG_USE
    if wrong_value("run", os.environ):
        return WRONG_USE
    try:
        folder = directory(aten=aten)
    except NoDirectory as error:
        return refuse("run", error)
    variables = environment(os.environ, folder)
    if not aten and (name := needs_aten(words[0], variables)):
        use = f"openaclnn run --aten {shlex.join(words)}"
        print(
            f"openaclnn run: {words[0]} calls {name}, which ATen computes: {use}", file=sys.stderr
        )
    return become("run", words, variables)


def add_command(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command; what follows its name belongs to the program."""
    run = command(
        "run",
        run_program,
        "run a program with the environment of set_env.sh",
        "Runs the program with the variables that set_env.sh sets, so that it finds the\n"
        "libraries. Exit status and signals are the program's own. A build can be run in the\n"
        "same way. With --aten the variables are those of `openaclnn home --aten`.\n\n"
        "  openaclnn run ./prog 1 2 3\n"
        "  openaclnn run cmake -S . -B build",
        forwards="[--aten] PROGRAM [ARGUMENT ...]",
    )
    run.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    run.set_defaults(help=run.format_help().rstrip())


def starts(words: Sequence[str], variables: Mapping[str, str]) -> bool:
    """Whether there is such a program; where there is none, starting it says so."""
    return shutil.which(words[0], path=variables.get("PATH")) is not None


def aten_hint(command: str, ended: int, aten: bool) -> str:
    """What helps when the loader misses a symbol or a library."""
    if ended != NOT_FOUND or aten:
        return ""
    return f"; with operators that ATen computes, use  openaclnn {command} --aten"


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


def add_program(sub: argparse.ArgumentParser) -> None:
    """The program to run, and with which libraries."""
    sub.add_argument(
        "--aten",
        action="store_true",
        help="with the libraries of `openaclnn home --aten`, which have what ATen computes",
    )
    sub.add_argument(
        "program",
        nargs=argparse.REMAINDER,
        action=Program,
        metavar="PROGRAM [ARGUMENT ...]",
        help="what to run",
    )
