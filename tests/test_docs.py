# SPDX-License-Identifier: Apache-2.0
"""Pages that could fall behind: the list of runtime functions, the diff of a new operator."""

from __future__ import annotations

import re
import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest
from test_symbols import exports

import openaclnn
from openaclnn.commands.programs import environment

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "runtime.md"


def test_the_runtime_page_lists_what_the_library_exports():
    rows = re.findall(r"^\| (`acl.*?) \|", PAGE.read_text(encoding="utf-8"), re.M)
    listed = sorted(re.findall(r"`(\w+)`", " ".join(rows)))
    assert listed == exports("ascendcl")


def test_the_page_of_the_installation_directory_names_what_is_there():
    page = (ROOT / "docs" / "installation_directory.md").read_text(encoding="utf-8")
    home = openaclnn.home()
    parts = [*home.iterdir(), *(p for p in (home / "lib64").iterdir() if p.is_dir())]
    for part in parts:
        name = str(part.relative_to(home))
        assert f"{name}/" in page if part.is_dir() else name in page, name
    variables = set(environment({})) - {"ASCEND_HOME_PATH"}
    assert variables
    for variable in variables:
        assert f"`{variable}`" in page, variable


def test_the_readme_of_the_tests_names_every_file():
    page = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"[\w*]+(?:\.\w+|/)", page.replace("\\", "")))
    tests = ROOT / "tests"
    for path in sorted(tests.iterdir()):
        name = f"{path.name}/" if path.is_dir() else path.name
        if path.suffix == ".md" or name.startswith(("__", ".")):
            continue
        assert any(fnmatch(name, pattern) for pattern in named), name


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_diff_of_a_new_operator_applies(tmp_path):
    """docs/add_an_operator.md: its four edits fit the files as they are."""
    text = (ROOT / "docs" / "add_an_operator.md").read_text(encoding="utf-8")
    diff = re.findall(r"^```diff\n(.*?)^```$", text, re.M | re.S)[0]
    files = re.findall(r"^\+\+\+ (.*)$", diff, re.M)
    assert len(files) == 4
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    command = ["git", "apply", "-p0", "--verbose", "-"]
    done = subprocess.run(command, cwd=tmp_path, input=diff, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for file in files:
        assert "oftsign" in (tmp_path / file).read_text(encoding="utf-8")
