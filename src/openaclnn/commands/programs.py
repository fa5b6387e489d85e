# SPDX-License-Identifier: Apache-2.0
"""`openaclnn cc` and `openaclnn run`: building and running programs against the installation
directory. Both become the program that they start, so its exit status and signals are its own;
`check`, `trace` and reports run theirs beside them.
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

from .. import _core
from ..report.text_table import Paint
from ..rows.libraries import LINK_LINE
from ..settings import home

C_SUFFIXES = (".c", ".i", ".s", ".S")
CXX_SUFFIXES = (".cpp", ".cc", ".cxx", ".c++", ".C", ".cp", ".CPP", ".ii")
NOT_LINKING = ("-c", "-S", "-E", "-M", "-MM", "-fsyntax-only")
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as a shell returns
WRONG_USE = 2  # as argparse has it
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


def compiler(words: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """$CC or cc when all sources are C, else $CXX or c++, which link objects of both."""
    sources = [word for word in words if word.endswith(C_SUFFIXES + CXX_SUFFIXES)]
    if sources and all(source.endswith(C_SUFFIXES) for source in sources):
        return shlex.split(variables.get("CC") or "cc")
    return shlex.split(variables.get("CXX") or "c++")


def compile_command(
    words: Sequence[str], variables: Mapping[str, str], folder: Path | None = None
) -> list[str]:
    """The compiler with the words as they are, headers before and libraries after them."""
    root = folder or home()
    folders = ("include", "include/aclnn", "include/aclnnop")
    command = [*compiler(words, variables), *(f"-I{root}/{folder}" for folder in folders), *words]
    if not any(word in NOT_LINKING for word in words):
        command += [f"-L{root}/lib64", *(f"-l{name}" for name in LINK_LINE)]
        # With other directories than home() the rpath comes before LD_LIBRARY_PATH: where that has
        # home(), the program would find libraries without its operators.
        first = ["-Wl,--disable-new-dtags"] if folder not in (None, home()) else []
        command += [*first, f"-Wl,-rpath,{root}/lib64"]
    return command


INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[>"]', re.MULTILINE)
# Headers of CANN that this installation cannot have, by the beginning of what programs include, and
# what to do instead.
ABSENT = {
    "opdev/": "has what kernels of CANN are written with; openaclnn has no device compiler: take "
    "the file that defines the operator out of the program, and call its aclnn function",
    "aclnn/opdev/": "has what kernels of CANN are written with; of that folder there is fp16_t.h",
    "kernel_operator.h": "is for Ascend C kernels, which need the device compiler of CANN",
    "register/": "registers operators with CANN's framework, which openaclnn does not have",
    "acl/ops/acl_dvpp.h": "is for the media hardware of a chip; decode and resize on the host",
    "acl/dvpp/": "is for the media hardware of a chip; decode and resize on the host",
    "graph/": "belongs to CANN's graph engine, which openaclnn does not have",
    "ge/": "belongs to CANN's graph engine, which openaclnn does not have",
    "random/": "is a path of CANN's sources; include what an installation has, aclnnop/aclnn_*.h",
}


def included(words: Sequence[str]) -> set[str]:
    """What the sources include."""
    sources = [Path(word) for word in words if word.endswith(C_SUFFIXES + CXX_SUFFIXES)]
    texts = [path.read_text(errors="replace") for path in sources if path.is_file()]
    return {name for text in texts for name in INCLUDE.findall(text)}


def explanations(words: Sequence[str], root: Path, *, aten: bool) -> list[str]:
    """A sentence for each header of CANN that the sources include and the directory lacks."""
    from ..aten.prototypes import headers

    found = []
    folders = [root / "include" / folder for folder in ("", "aclnn", "aclnnop")]
    folders += [Path(word[2:]) for word in words if word.startswith("-I") and word != "-I"]
    folders += [Path(word).parent for word in words if word.endswith(C_SUFFIXES + CXX_SUFFIXES)]
    for name in sorted(included(words)):
        if any((folder / name).exists() for folder in folders):
            continue
        file = name.rsplit("/", 1)[-1]
        if not aten and file in headers():
            found.append(
                f"{file} has operators that ATen computes: build with  openaclnn cc --aten"
            )
        elif file.startswith("aclnn_") and file.endswith(".h"):
            found.append(
                f"{name} does not exist here: openaclnn has no operator of this name; "
                f"`openaclnn ops --aten` lists those that it has"
            )
        elif reason := next((r for start, r in ABSENT.items() if name.startswith(start)), None):
            found.append(f"{name} {reason}")
    return found


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
        use = f"python {program}" if program.endswith(".py") else f"./{program}"
        here = "" if "/" in program or not Path(program).is_file() else f"; use {use}"
        print(f"openaclnn {what}: program {program} not found{here}", file=sys.stderr)
        return NOT_FOUND
    except OSError as error:
        print(f"openaclnn {what}: cannot run {program}: {error.strerror}", file=sys.stderr)
        return NOT_EXECUTABLE


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


def run_cc(arguments: argparse.Namespace, _: Paint) -> int:
    words = [word for word in arguments.words if word not in ("--show", "--aten")]
    if not words or words[0] in ("-h", "--help"):
        print(arguments.help)
        return 0 if words else WRONG_USE
    try:
        folder = directory(aten="--aten" in arguments.words)
    except NoDirectory as error:
        return refuse("cc", error)
    command = compile_command(words, os.environ, folder)
    if "--show" in arguments.words:
        print(shlex.join(command))
        return 0
    for sentence in explanations(words, folder, aten="--aten" in arguments.words):
        print(f"openaclnn cc: {sentence}", file=sys.stderr)
    return become("cc", command, os.environ)


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
    return become("run", words, environment(os.environ, folder))


def add_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the two commands; what follows their name belongs to the compiler or the program."""
    cc = command(
        "cc",
        run_cc,
        "compile and link a C or C++ program against openaclnn",
        "Runs cc, or c++ for C++ sources ($CC and $CXX if set), with the headers and libraries of\n"
        "`openaclnn home` added and an rpath, so that the program runs as it is. Everything else\n"
        "goes to the compiler unchanged; with -c, -S or -E nothing is linked.\n"
        "--aten adds the operators that ATen, in PyTorch's libraries, computes.\n\n"
        "  openaclnn cc prog.cpp -o prog\n"
        "  openaclnn cc -std=c11 -O2 -Wall prog.c -o prog\n"
        "  openaclnn cc --aten prog.cpp -o prog\n"
        "  openaclnn cc --show prog.cpp       print the command instead",
        forwards="[--show] [--aten] ARGUMENT ...",
    )
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
    for sub in (cc, run):
        sub.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
        sub.set_defaults(help=sub.format_help().rstrip())
