# SPDX-License-Identifier: Apache-2.0
"""Pages that could fall behind: the list of runtime functions, the diff of a new operator."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from test_symbols import exports

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "runtime.md"


def test_the_runtime_page_lists_what_the_library_exports():
    rows = re.findall(r"^\| (`acl.*?) \|", PAGE.read_text(encoding="utf-8"), re.M)
    listed = sorted(re.findall(r"`(\w+)`", " ".join(rows)))
    assert listed == exports("ascendcl")


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
