# SPDX-License-Identifier: Apache-2.0
"""`openaclnn home` and `openaclnn info`: where the library is, and which choices are in force."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable

from ..compiled import cache
from ..report.text_table import Paint
from ..rows.libraries import LINK_LINE
from ..rows.table import ANY, PRODUCTS
from ..settings import config
from .programs import NoDirectory, directory, refuse

# The environment variable behind a value of config().
VARIABLES = {
    "product": "OPENACLNN_PRODUCT",
    "kernels": "OPENACLNN_ISA",
    "threads": "OPENACLNN_NUM_THREADS",
    "torch_threads": "OPENACLNN_TORCH_THREADS",
    "streaming_bytes": "OPENACLNN_STREAMING_BYTES",
    "devices": "OPENACLNN_DEVICES",
    "device_memory": "OPENACLNN_DEVICE_MEMORY",
    "cache": "OPENACLNN_CACHE",
}


def add_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    shown_home = command(
        "home",
        show_home,
        "print the installation directory for C and C++",
        "Prints the directory that is laid out like a CANN installation: include/, lib64/ and\n"
        "set_env.sh, which sets ASCEND_HOME_PATH, LD_LIBRARY_PATH and others.\n\n"
        "  source $(openaclnn home)/set_env.sh\n"
        "  H=$ASCEND_HOME_PATH\n"
        "  g++ prog.cpp -I$H/include -I$H/include/aclnn -I$H/include/aclnnop \\\n"
        f"      -L$H/lib64 {' '.join(f'-l{name}' for name in LINK_LINE)} -o prog\n\n"
        "The same in one command: openaclnn cc prog.cpp -o prog",
    )
    shown_home.add_argument(
        "--aten",
        action="store_true",
        help="print one whose libraries also have the operators that ATen computes; it is made on "
        "first use, with the PyTorch that is installed and a C++ compiler",
    )
    info = command(
        "info",
        show_info,
        "show the choices in force: product, kernels, threads, ...",
        "Shows the product, the kernels chosen for this CPU, threads, devices, paths, each with\n"
        "the environment variable that changes it.\n\n"
        "  openaclnn info\n"
        "  OPENACLNN_ISA=v2 openaclnn info --json",
    )
    info.add_argument("--json", action="store_true", help="print JSON for programs")


def show_home(arguments: argparse.Namespace, paint: Paint) -> int:
    try:
        print(directory(aten=arguments.aten))
    except NoDirectory as error:
        return refuse("home", error)
    return 0


def _why_no_torch_threads() -> str:
    if os.environ.get("OPENACLNN_TORCH_THREADS") == "0":
        return "switched off"
    return "torch 2.10 or newer is not loaded here" if "torch" not in sys.modules else "unusable"


def show_info(arguments: argparse.Namespace, paint: Paint) -> int:
    values = {**config(), "cache": str(cache())}
    if arguments.json:
        print(json.dumps(values, indent=2))
        return 0
    titles = {p.key: f"{p.key}, {p.title}" for p in (*PRODUCTS, ANY)}
    shown = {**values, "product": titles[values["product"]]}
    shown["device_memory"] = f"{values['device_memory'] / 2**30:,.1f} GiB"
    if values["torch_threads"] == 0:
        shown["torch_threads"] = f"none: {_why_no_torch_threads()}"
    rows = [
        [name, f"{value:,}" if isinstance(value, int) else str(value), VARIABLES.get(name, "")]
        for name, value in shown.items()
    ]
    wide = max(len(value) for _, value, variable in rows if variable)
    for name, value, variable in rows:
        text = f"{value:{wide}}  {paint(variable, 'dim')}" if variable else value
        print(f"{paint(f'{name:{max(map(len, shown))}}', 'bold')}  {text}")
    return 0
