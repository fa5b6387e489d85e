# SPDX-License-Identifier: Apache-2.0
"""The quick start in both languages: every block runs and prints what the page says."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs" / "start" / name for name in ("quickstart.md", "quickstart.zh-CN.md")]
NPU_TITLE = '`device="npu"`'
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def section(page: Path, *titles: str) -> str:
    """The section with one of these titles; "" if the page has none."""
    found = re.search(
        rf"^## ({'|'.join(map(re.escape, titles))})$(.*?)(?=^## |\Z)",
        page.read_text("utf-8"), re.M | re.S,
    )  # fmt: skip
    return found[2] if found else ""


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    start = f'set -e\nopenaclnn() {{ {sys.executable} -m openaclnn "$@"; }}\n'
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENACLNN_CHECK")}
    return subprocess.run(
        ["bash", "-c", start + script], cwd=folder, capture_output=True, text=True, env=env
    )


@each_page
def test_no_block_is_without_a_test(page):
    titles = ("NumPy", "Python", "PyTorch", NPU_TITLE, "C and C++", "C++", "Your own kernel")
    titles += ("Install and check", "安装并确认", "你自己的 kernel")
    text = page.read_text("utf-8")
    assert text.count("\n```") == sum(section(page, t).count("\n```") for t in titles)


@each_page
def test_the_python_prints_what_it_says(page, capsys):
    text = section(page, "NumPy", "Python")
    first, wrong = blocks(text, "python")
    exec(compile(first, "first.py", "exec"), {})
    assert capsys.readouterr().out == "[-2. -1.  0. 10. 20.]\n"
    exec(compile(wrong, "first.py", "exec"), {})
    assert [capsys.readouterr().out] == blocks(text, "text")


@each_page
def test_the_torch_prints_what_it_says(page, capsys):
    pytest.importorskip("torch")
    (block,) = blocks(section(page, "PyTorch"), "python")
    exec(compile(block, "first.py", "exec"), {})
    assert f"# {capsys.readouterr().out.strip()}\n" in block


@each_page
def test_the_commands_of_installation_are_those_of_the_readme(page):
    """CI installs so; test_demo.py runs the demo, tests/npu that of the device."""
    install = section(page, "Install and check", "安装并确认")
    assert blocks(install, "bash") == ["pip install .\nopenaclnn demo\n"]
    assert blocks(install, "text") == ["Every promise was kept.\n"]
    commands = blocks(section(page, NPU_TITLE), "bash")[0].splitlines()
    assert [line.rpartition("/")[2] for line in commands[1:]] == [
        "pip install '.[npu]'", "openaclnn npu --demo",
    ]  # fmt: skip


@pytest.mark.programs
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@each_page
def test_the_program_runs(page, tmp_path):
    (block,) = blocks(section(page, "C and C++", "C++"), "bash")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = run(block, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "openaclnn check: no mistakes"


@pytest.mark.programs
def test_verify_finds_what_is_wrong_with_the_kernel(tmp_path):
    text = section(PAGES[0], "Your own kernel")
    (kernel,), (command,) = blocks(text, "python"), blocks(text, "bash")
    (tmp_path / "mine.py").write_text(kernel)
    done = run(command, tmp_path)
    assert done.returncode == 1, done.stderr
    (shown,) = blocks(text, "text")
    if importlib.util.find_spec("ml_dtypes"):  # the page counts cases of BFLOAT16
        assert shown in done.stdout
    assert done.stdout.count("  wrong: ") == 1  # no chance resemblances
