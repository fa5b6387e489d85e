# SPDX-License-Identifier: Apache-2.0
"""`openaclnn npu`: running programs on the device npu of PyTorch."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from .. import _core
from ..aten.library import built_library
from ..compiled import BuildError
from ..report.output import NOT_WRITTEN, NotWritten, unwritable, write_json, write_text
from ..report.text_table import Paint
from ..rows.suggestions import did_you_mean, near
from ..rows.table import PRODUCTS
from ..settings import config, products
from ..torch_npu.environment import DEFAULTS, environment
from ..torch_npu.installed import problem
from . import run_page, run_report
from .programs import WRONG_USE, as_shell, become, run_beside, wrong_value
from .run_processes import wait_for_processes
from .trace import preloaded

MEMORY = "OPENACLNN_DEVICE_MEMORY"
USAGE = {"--report": "--report FILE", "--product": "--product KEY"}
OPTIONS = (*USAGE, "--check", "--demo", "--shell", "--help")


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


def notice() -> None:
    """Says what openaclnn chooses."""
    if os.environ.get("OPENACLNN_NPU_NOTICE", "1") != "0":
        chosen = [f"{name}={value}" for name, value in DEFAULTS.items() if name not in os.environ]
        if chosen:
            why = "unless you set it: an error is raised at its call"
            print(f"openaclnn npu: {' '.join(chosen)}, {why}", file=sys.stderr)


def memory_of(products: Sequence[str]) -> dict[str, str]:
    """The memory of a device of the only product, unless the user has chosen."""
    if len(products) != 1 or MEMORY in os.environ:
        return {}
    return {MEMORY: f"{next(p.memory for p in PRODUCTS if p.key == products[0])}GiB"}


def start(words: Sequence[str], product: str | None = None) -> int:
    variables = {**os.environ, **memory_of([product] if product else [])}
    if product is not None:
        variables["OPENACLNN_PRODUCT"] = product
    if wrong_value("npu", variables):
        return WRONG_USE
    if found := trouble():
        return refuse(found)
    notice()
    return become("npu", words, environment(variables))


def report_run(
    words: Sequence[str], destination: str, products: Sequence[str], memory: dict[str, str]
) -> int:
    """Runs the program and writes the report, in the form that the suffix names."""
    if unwritable("npu", "--report", destination) or wrong_value("npu", os.environ):
        return WRONG_USE
    if os.environ.get("OPENACLNN_TRACE_SEEN"):
        return refuse(
            "--report does not combine with openaclnn trace: run them one after the other"
        )
    if found := trouble():
        return refuse(found)
    notice()
    with tempfile.TemporaryDirectory() as folder:
        variables = environment({**os.environ, "LD_PRELOAD": preloaded(os.environ)})
        variables |= {"OPENACLNN_REPORT": folder, "OPENACLNN_REPORT_PRODUCTS": ",".join(products)}
        variables |= memory
        begin = time.monotonic()
        ended = run_beside("npu", words, variables, output_to_error=destination == "-")
        seconds = time.monotonic() - begin
        wait_for_processes(Path(folder))
        found_here = run_report.report(
            Path(folder),
            products,
            command=list(words),
            status=as_shell(ended),
            seconds=seconds,
            openaclnn=config()["version"],
        )
    try:
        if destination.endswith(".json"):
            write_json(destination, found_here)
        elif destination.endswith((".html", ".htm")):
            write_text(destination, run_page.page(found_here))
        else:
            write_text(destination, run_report.as_text(found_here))
    except NotWritten as error:
        print(f"openaclnn npu: {error}", file=sys.stderr)
        return as_shell(ended) or NOT_WRITTEN
    where = "" if destination == "-" else f" (more in {destination})"
    print(f"openaclnn npu: {run_report.headline(found_here)[1]}{where}", file=sys.stderr)
    return as_shell(ended)


def options(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """--report and --product with their values, and the words after them."""
    found: dict[str, str] = {}
    rest = list(words)
    while rest and (name := rest[0].split("=", 1)[0]) in ("--report", "--product"):
        word = rest.pop(0)
        if "=" in word:
            found[name] = word.split("=", 1)[1]
        elif rest:
            found[name] = rest.pop(0)
        else:
            found[name] = ""
    return found, rest


def chosen_products(given: str | None) -> tuple[str, ...] | None:
    """The products to judge, by default the one in force; None: there is no such product."""
    known = tuple(p.key for p in products())
    if given is None:
        current = config()["product"]
        return (current,) if current in known else known
    key_of = {key.lower(): key for key in known}
    keys = [key_of.get(word.lower(), "") for word in given.split(",")]
    return tuple(keys) if all(keys) else None


def show_exports() -> int:
    if wrong_value("npu", os.environ):
        return WRONG_USE
    if found := trouble():
        return refuse(found)
    for name, value in environment(os.environ).items():
        if os.environ.get(name) != value:
            print(f"export {name}={shlex.quote(value)}")
    return 0


def run(arguments: argparse.Namespace, paint: Paint) -> int:
    given, words = options(arguments.words)
    if not arguments.words or words[:1] in (["-h"], ["--help"]):
        print(arguments.help)
        return 0 if words else WRONG_USE
    if words[:1] in (["--check"], ["--demo"], ["--shell"]) and len(words) > 1:
        return refuse(f"{words[0]} takes nothing after it, but got {shlex.join(words[1:])}")
    if words == ["--check"]:
        if wrong_value("npu", os.environ):
            return WRONG_USE
        from ..torch_npu.check import check

        return check(paint)
    if words == ["--shell"]:
        return show_exports()
    if words == ["--demo"]:
        return start([sys.executable, "-m", "openaclnn.torch_npu.demo"])
    for name, value in given.items():
        if not value or value == "--":
            return refuse(f"{name} needs a value: {USAGE[name]}")
    if words[:1] == ["--"]:
        words = words[1:]
    elif words and words[0].startswith("-"):
        hint = did_you_mean(near(words[0], OPTIONS), "see:  openaclnn npu --help")
        return refuse(f"there is no option {words[0]}{hint}")
    if not words or words[0].startswith("-"):
        return refuse("a command must follow, as in: openaclnn npu -- python train.py")
    if not given:
        return start(words)
    named = given.get("--product")
    judged = chosen_products(named)
    if judged is None and str(named).lower() == "any" and "--report" not in given:
        return refuse("--product takes a product; for any, set OPENACLNN_PRODUCT=any")
    if judged is None:
        keys = ", ".join(p.key for p in products())
        hints = "".join(_core.chip_hint(word) for word in str(named).split(","))
        return refuse(
            f"--product must be one or more of {keys}, with commas, but is {named!r}{hints}"
        )
    if "--report" in given:
        return report_run(words, given["--report"], judged, memory_of(judged if named else ()))
    if len(judged) > 1:
        return refuse("a run has one --product; several need --report FILE, which judges them")
    return start(words, judged[0])


def add_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    npu = command(
        "npu",
        run,
        "run a program with torch_npu: device='npu' on this CPU",
        "Runs the program with an environment in which the published torch_npu wheel finds\n"
        "openaclnn, so that tensors and models live on device='npu' without an NPU; exit status\n"
        "and signals are the program's own. torch and torch_npu must be of one version, and no\n"
        "GPU visible.\n\n"
        "  openaclnn npu -- python train.py\n"
        "  openaclnn npu -- pytest tests\n"
        "  openaclnn npu --check               what is installed, and whether it runs\n"
        "  openaclnn npu --demo                train a small model, beside the same on device cpu\n"
        '  eval "$(openaclnn npu --shell)"     set the environment of this shell\n'
        "  openaclnn npu --product 910 -- python train.py\n"
        "  openaclnn npu --report report.html -- pytest tests\n\n"
        "--report FILE   also write what the run called: refused calls, calls that fall back to\n"
        "                the CPU, dtypes, determinism, time, memory. A page (.html), data (.json)\n"
        "                or text; - is standard output, and the program's goes to standard error\n"
        "--product KEY   run as this product (OPENACLNN_PRODUCT), with the memory of its devices\n"
        "                (OPENACLNN_DEVICE_MEMORY). With --report the product in force stays, and\n"
        "                the report judges KEY, or several: 910,A2\n\n"
        "In a program: import openaclnn.npu before torch.\n"
        "OPENACLNN_DEVICES is the number of devices, OPENACLNN_NPU_NOTICE=0 silences the notices.",
        forwards="[--check | --demo | --shell | --product KEY | --report FILE [--product KEY]] "
        "[-- COMMAND ...]",
    )
    npu.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    npu.set_defaults(help=npu.format_help().rstrip())
