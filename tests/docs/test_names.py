# SPDX-License-Identifier: Apache-2.0
"""What pages and comments name exists: files, tests that -k selects, variables, commands,
functions of the package."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from tests.support import INTERNAL_VARIABLES, without_diffs

import openaclnn
from openaclnn.commands.cli import parser

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {".py", ".cpp", ".h", ".c"}
ROOMS = ("core", "src", "tests", "tools", "benchmarks", "docs", "examples", "include")
PAGES = [*ROOT.glob("*.md"), *(p for room in ROOMS for p in (ROOT / room).rglob("*.md"))]
CODE = [p for room in ROOMS for p in (ROOT / room).rglob("*") if p.suffix in SOURCES]
EXISTING = {p.name for p in (*PAGES, *CODE)}
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))

# Files and a command that a reader of the guides would write, not the house.
INVENTED = re.compile(r"softmax|NAME|KIND|commands/header|test_header_command|unrecorded_event")
INVENTED_COMMANDS = {"header"}


@each_page
def test_paths_lead_somewhere(page):
    rooms = "|".join(ROOMS)
    text = without_diffs(page.read_text(encoding="utf-8"))
    for path in re.findall(rf"(?<![\w/.-])(?:{rooms})/[\w/.*-]*[\w*]", text):
        if not INVENTED.search(path):
            assert list(ROOT.glob(path)), path


@each_page
def test_tests_are_there(page):
    text = without_diffs(page.read_text(encoding="utf-8"))
    for name in re.findall(r"(?<![\w*\\])test_\w+\.py", text):
        assert INVENTED.search(name) or list((ROOT / "tests").rglob(name)), name


def test_files_that_comments_name_are_there():
    comment = re.compile(r"(?:#|//|/\*).*")
    for file in CODE:
        for line in comment.findall(file.read_text(encoding="utf-8")):
            for name in re.findall(r"(?<![\w*<$/.-])\w+\.(?:py|cpp|md)\b", line):
                assert name in EXISTING, f"{file.relative_to(ROOT)}: {name}"


def selections() -> list[str]:
    """The expressions after -k in commands that sweep all patterns."""
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    texts.append((ROOT / "tests" / "operators" / "test_exhaustive.py").read_text(encoding="utf-8"))
    found = re.findall(r"(?:-m exhaustive |`)-k ('[^']+'|[^\s`)]+)", "\n".join(texts))
    return sorted({expression.strip("'") for expression in found})


# The expressions after one another: a process for each would import NumPy eight times.
COLLECTS = """
import sys, pytest
words = ["tests/operators/test_exhaustive.py", "--collect-only", "-q", "-m", "exhaustive"]
for k in sys.argv[1:]:
    if pytest.main([*words, "-p", "no:cacheprovider", "-k", k]) != 0:
        sys.exit(f"-k {k} selects nothing")
"""


@pytest.mark.programs
def test_every_selection_selects_a_test():
    expressions = selections()
    assert len(expressions) > 5
    command = [sys.executable, "-c", COLLECTS, *expressions]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_variables_are_read_and_documented():
    prose = without_diffs("".join(p.read_text("utf-8") for p in PAGES))
    named = set(re.findall(r"\bOPENACLNN_[A-Z_]+", prose))
    code = [p for p in CODE if p.is_relative_to(ROOT / "core") or p.is_relative_to(ROOT / "src")]
    read = {
        name for p in code
        for name in re.findall(r"[\"'](OPENACLNN_[A-Z_]+)[\"']", p.read_text(encoding="utf-8"))
    }  # fmt: skip
    builds = (ROOT / "CMakeLists.txt", ROOT / "tools", ROOT / "tests")
    other = "".join(
        p.read_text(encoding="utf-8")
        for place in builds
        for p in ([place] if place.is_file() else place.rglob("*"))
        if p.suffix in {".txt", ".py", ".cmake", ".sh"}
    )
    assert {name for name in named - read if name not in other} == set()
    assert read - named == INTERNAL_VARIABLES


@cache
def commands() -> set[str]:
    (group,) = (a for a in parser()._actions if a.dest == "==SUPPRESS==" or a.choices)
    return set(group.choices)


@each_page
def test_commands_and_functions_are_there(page):
    text = page.read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```(?:bash|sh)\n(.*?)^```", text, re.M | re.S))
    code += "\n".join(re.findall(r"`(openaclnn [^`]*)`", text))
    for word in re.findall(r"(?:^|[\s(])openaclnn ([a-z]+)\b", code, re.M):
        known = commands() | (INVENTED_COMMANDS if page.stem == "add_a_command" else set())
        assert word in known, f"openaclnn {word}"
    for name in re.findall(r"`openaclnn\.([a-z_]+)", text):
        assert hasattr(openaclnn, name) or (ROOT / "src" / "openaclnn" / name).is_dir() or (
            ROOT / "src" / "openaclnn" / f"{name}.py"
        ).is_file(), name  # fmt: skip
