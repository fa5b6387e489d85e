# SPDX-License-Identifier: Apache-2.0
"""`openaclnn cc`: compiling and linking C and C++ programs against the installation directory."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..report.text_table import Paint
from ..rows.libraries import LINK_LINE
from ..settings import home
from .programs import (
    C_SUFFIXES,
    CXX_SUFFIXES,
    WRONG_USE,
    NoDirectory,
    become,
    directory,
    refuse,
)

NOT_LINKING = ("-c", "-S", "-E", "-M", "-MM", "-fsyntax-only")


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


def add_command(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command; what follows its name belongs to the compiler."""
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
    cc.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    cc.set_defaults(help=cc.format_help().rstrip())
