# SPDX-License-Identifier: Apache-2.0
"""verify.md, from `openaclnn verify` on, and verify_cases.md: commands, library, file of cases."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest
from tests.verify.test_compare_docs import CASES, PAGE, blocks

from openaclnn.commands.cc import compile_command
from openaclnn.commands.cli import main
from openaclnn.verify.values import POINTWISE

pytestmark = pytest.mark.programs


def test_the_first_commands(capsys):
    pytest.importorskip("torch")
    first, second = blocks("bash")[0].splitlines()
    assert main(first.split()[1:]) == 0
    assert main([*second.split()[1:], "--quiet"]) == 0
    assert "allclose" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_the_library_of_the_page(tmp_path, monkeypatch, capsys):
    """It is found to lack what the page says, and the command of a finding finds it again."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.cpp").write_text(blocks("cpp")[0], encoding="utf-8")
    build, verify = blocks("bash")[1].splitlines()
    done = subprocess.run(compile_command(build.split()[2:], {}), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert main([*verify.split()[1:], "--quiet"]) == 1
    results = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["results"]
    found = {(r["kind"], r["case"]["layout"]) for r in results if r["status"] == "failed"}
    assert {kind for kind, _ in found} >= {"wrong", "damaged", "status"}
    easy = [r for r in results if r["id"] == "hardshrink/FLOAT/0"]
    assert easy[0]["status"] == "passed"
    again = blocks("text")[0].strip()
    assert again in capsys.readouterr().out
    assert main([*again.split()[1:], "--quiet"]) == 1


def test_the_page_of_the_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (command,) = blocks("bash")[3].splitlines()
    assert main([*command.split()[1:], "--quiet"]) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "results passed" in page


def test_what_is_known_of_torch(capsys):
    pytest.importorskip("torch", reason="torch is not installed")
    shown = blocks("text")[2]
    command = shown.splitlines()[-1].split()
    assert main([*command[1:], "--quiet"]) == 1
    assert shown.strip() in capsys.readouterr().out


def test_every_input_of_the_page(capsys):
    (command,) = blocks("bash")[4].splitlines()
    assert main([*command.split()[1:], "--quiet"]) == 0
    assert "logit" in capsys.readouterr().out
    name = blocks("text")[3].split()[-1]
    wanted = ["verify", "openaclnn:v2", "--exhaustive", "--op", "hardshrink", "--only", name]
    assert main([*wanted, "--quiet"]) == 0
    assert "1 case," in capsys.readouterr().out


def test_the_file_of_cases(tmp_path, capsys):
    file = tmp_path / "cases.json"
    file.write_text(blocks("json", CASES)[0], encoding="utf-8")
    assert main(["verify", "--cases", str(file), "--quiet"]) == 0
    assert main(["verify", "--cases", str(file), "--quiet", "--only", "my network"]) == 0


def test_the_tables_are_complete():
    text = PAGE.read_text(encoding="utf-8") + CASES.read_text(encoding="utf-8")
    words = set(re.findall(r"`(\w+)`", text))
    assert set(POINTWISE) <= words
    assert {"wrong", "differs", "unsteady", "status", "damaged", "crashed", "hung"} <= words
