# SPDX-License-Identifier: Apache-2.0
"""What the tests of check mode share: the page's tool, the command, reports in its output."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOL = runpy.run_path(str(ROOT / "tools" / "check_mode_page.py"))
PAGE = TOOL["PAGE"].read_text()
PROGRAMS, KINDS = TOOL["PROGRAMS"], TOOL["KINDS"]
REPORT = re.compile(r"^openaclnn check: (\w+): (.*)$", re.M)
# Reports without addr2line: only kinds and sentences, but a hundred times as fast.
WITHOUT_LINES = {**os.environ, "PATH": "/nowhere"}

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def openaclnn_command(*words: str, **options) -> subprocess.CompletedProcess[str]:
    main = "import sys; from openaclnn.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", main, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def program(source: Path, folder: Path) -> Path:
    """One of examples/mistakes."""
    built = folder / source.stem
    if not built.exists():
        TOOL["build"](source, built)
    return built


def built_once(source: str, folder: Path) -> str:
    """A program of this folder."""
    built = folder / Path(source).stem
    if not built.exists():
        path = str(ROOT / "tests" / source)
        words = ("-std=c++17", "-g", path, "-pthread", "-o", str(built))
        done = openaclnn_command("cc", *words)
        assert done.returncode == 0, done.stderr
    return str(built)
