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
from tests.check import command_process
from tests.processes import once

ROOT = Path(__file__).resolve().parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "docs" / "check_mode_page.py"))
PAGE = TOOL["PAGE"].read_text()
PROGRAMS, KINDS = TOOL["PROGRAMS"], TOOL["KINDS"]
REPORT = re.compile(r"^openaclnn check: (\w+): (.*)$", re.M)
# Reports without addr2line: only kinds and sentences, but a hundred times as fast.
WITHOUT_LINES = {**os.environ, "PATH": "/nowhere"}

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def openaclnn_command(*words: str, **options) -> subprocess.CompletedProcess[str]:
    if options.keys() <= {"cwd"}:
        return command_process.command(*map(str, words), **options)
    main = "import sys; from openaclnn.commands.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", main, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def program(source: Path, folder: Path) -> Path:
    """One of examples/mistakes."""
    return once(folder / source.stem, lambda made: TOOL["build"](source, made))


def reports(source: Path, folder: Path) -> Path:
    """A folder with all that `openaclnn check` says of one of examples/mistakes."""
    path = program(source, folder)

    def check(made: Path) -> None:
        made.mkdir()
        files = ("--html", str(made / "page.html"), "--json", str(made / "reports.json"))
        done = openaclnn_command("check", *files, str(path), cwd=TOOL["FOLDER"])
        assert done.returncode == 66, done.stderr
        (made / "text").write_text(done.stderr)

    return once(folder / f"{source.stem}.reports", check)


def built_once(source: str, folder: Path, *options: str) -> str:
    """A program of this folder."""

    def build(made: Path) -> None:
        words = ("-std=c++17", "-g", *options, str(ROOT / "tests" / "check" / source), "-pthread")
        done = openaclnn_command("cc", *words, "-o", str(made))
        assert done.returncode == 0, done.stderr

    return str(once(folder / Path(source).stem, build))
