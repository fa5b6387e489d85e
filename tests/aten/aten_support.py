# SPDX-License-Identifier: Apache-2.0
"""What the tests of C and C++ programs with operators of ATen share: commands, and the programs
that several tests run. Importing it skips where there is no torch and no compiler.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest
from tests.processes import once

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "aten"
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
PROGRAMS = ROOT / "tests" / "aten" / "programs"
# The words that build the programs of several tests.
SOURCES = sorted({*PROGRAMS.glob("*.cpp")} - {PROGRAMS / "collectives.cpp"})  # its own main
CALLS = ("-std=c++17", "-O1", "-Wall", "-Werror", *SOURCES)
LAYER = ("-std=c++11", *STRICT, EXAMPLE / "transformer_layer.cpp")
COMMAND = [sys.executable, "-m", "openaclnn"]
CXX = shutil.which("c++")

if util.find_spec("torch") is None or CXX is None:
    pytest.skip("needs torch and a C++ compiler", allow_module_level=True)


def command(*words: object, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, words)], capture_output=True, text=True, timeout=600, **options
    )


def alone(product: str = "any") -> dict[str, str]:
    """No Python path and no library path: the program finds everything itself. It calls functions
    in all dtypes that ATen has, which no product accepts.
    """
    left = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "PYTHONPATH")}
    return left | {"OPENACLNN_PRODUCT": product}


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*map(str, words)], env=alone(), capture_output=True, text=True, timeout=120
    )


def built(folder: Path, name: str, *words: object) -> Path:
    """The program of that name in the folder; the words are those of `openaclnn cc --aten`."""

    def build(made: Path) -> None:
        done = command("cc", "--aten", *words, "-o", made)
        assert done.returncode == 0, done.stderr

    return once(folder / name, build)
