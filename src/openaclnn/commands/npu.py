# SPDX-License-Identifier: Apache-2.0
"""`openaclnn npu`: running programs on the device npu of PyTorch."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence

from ..aten.library import built_library
from ..compiled import BuildError
from ..report.text_table import Paint
from ..torch_npu.environment import DEFAULTS, environment
from ..torch_npu.installed import problem
from .programs import become

WRONG_USE = 2  # exit status, as argparse has it


def refuse(sentence: str) -> int:
    print(f"openaclnn npu: {sentence}", file=sys.stderr)
    return WRONG_USE


def trouble() -> str | None:
    """Why nothing can run; None when everything is there, the compiled operators too."""
    if found := problem():
        return found
    try:
        built_library()
    except BuildError as error:
        return str(error)
    return None


def start(words: Sequence[str]) -> int:
    if found := trouble():
        return refuse(found)
    if os.environ.get("OPENACLNN_NPU_NOTICE", "1") != "0":
        chosen = [f"{name}={value}" for name, value in DEFAULTS.items() if name not in os.environ]
        if chosen:
            print(f"openaclnn npu: {' '.join(chosen)}, unless you set it", file=sys.stderr)
    return become("npu", words, environment(os.environ))


def show_exports() -> int:
    if found := trouble():
        return refuse(found)
    for name, value in environment(os.environ).items():
        if os.environ.get(name) != value:
            print(f"export {name}={shlex.quote(value)}")
    return 0


def run(arguments: argparse.Namespace, paint: Paint) -> int:
    words = arguments.words
    if not words or words[0] in ("-h", "--help"):
        print(arguments.help)
        return 0 if words else WRONG_USE
    if words == ["--shell"]:
        return show_exports()
    if words == ["--check"]:
        from ..torch_npu.check import check

        return check(paint)
    if words == ["--demo"]:
        return start([sys.executable, "-m", "openaclnn.torch_npu.demo"])
    if words[0] == "--":
        words = words[1:]
    if not words or words[0].startswith("-"):
        return refuse("a command must follow, as in: openaclnn npu -- python train.py")
    return start(words)


def add_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    npu = command(
        "npu",
        run,
        "run a program with torch_npu: device='npu' on this CPU",
        "Runs the program with an environment in which the published torch_npu wheel finds\n"
        "openaclnn, so that tensors and models live on device='npu' without an NPU; exit status\n"
        "and signals are the program's own. PyTorch must be the CPU build of the same version.\n\n"
        "  openaclnn npu -- python train.py\n"
        "  openaclnn npu -- pytest tests\n"
        "  openaclnn npu --check               what is installed, and whether it runs\n"
        "  openaclnn npu --demo                train a small model, beside the same on device cpu\n"
        '  eval "$(openaclnn npu --shell)"     set the environment of this shell\n\n'
        "In a program: import openaclnn.npu before torch.\n"
        "OPENACLNN_DEVICES is the number of devices, OPENACLNN_NPU_NOTICE=0 silences the notices.",
        forwards="[--check | --demo | --shell] [-- COMMAND ...]",
    )
    npu.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    npu.set_defaults(help=npu.format_help().rstrip())
