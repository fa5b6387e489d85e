# SPDX-License-Identifier: Apache-2.0
"""The Chinese pages: their code is that of the English pages, which other tests run; a link leads
to a Chinese page where there is one; the quick start runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MARK = ".zh-CN.md"
PAGES = [ROOT / f"README{MARK}", *sorted((ROOT / "docs").rglob(f"*{MARK}"))]
QUICKSTART = ROOT / "docs" / "start" / f"quickstart{MARK}"
START = ("quickstart", "install", "doors")
TUTORIALS = ("train_a_unet", "npu_ci", "porting", "own_kernel", "several_processes")
# Characters and words that other words are better for, and why.
AVOIDED = {"前向": "正向", "后向": "反向", "工作区": "工作空间", "操作符": "算子"}
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def blocks(page: Path) -> list[str]:
    """Code without comments, which are in the reader's language."""
    found = re.findall(r"^```(?!text)\w+\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    return [re.sub(r"\s*(#|//).*", "", block) for block in found]


def english(page: Path) -> Path:
    return page.with_name(page.name.replace(MARK, ".md"))


def test_start_and_tutorials_are_there():
    names = {str(page.relative_to(ROOT / "docs")) for page in PAGES[1:]}
    assert {f"start/{name}{MARK}" for name in START} <= names
    assert {f"tutorials/{name}{MARK}" for name in TUTORIALS} <= names


@each_page
def test_the_code_is_that_of_the_english_page(page):
    """Of the quick start, a test runs it."""
    if english(page).exists():
        assert blocks(page) == blocks(english(page))
    elif page != QUICKSTART:
        known = {b for p in (ROOT / "docs").rglob("*.md") if MARK not in p.name for b in blocks(p)}
        assert set(blocks(page)) <= known


@each_page
def test_links_lead_to_chinese_pages_where_there_are_some(page):
    for link in re.findall(r"\]\(([^)#:]+\.md)", page.read_text("utf-8")):
        target = page.parent / link
        meant = target.with_name(target.name.replace(".md", MARK))
        is_other_language = target.resolve() == english(page)  # the switch between the two
        assert MARK in link or is_other_language or not meant.exists(), f"{link}: {meant.name}"


@each_page
def test_words_are_those_of_the_field(page):
    text = page.read_text("utf-8")
    assert [word for word in AVOIDED if word in text] == []


# ---- the quick start ----


def after(title: str, language: str) -> list[str]:
    """The blocks of a section."""
    section = re.search(
        rf"^## {title}$(.*?)(?=^## |\Z)", QUICKSTART.read_text("utf-8"), re.M | re.S
    )
    assert section is not None, title
    return re.findall(rf"^```{language}\n(.*?)^```$", section[1], re.M | re.S)


def test_the_python_of_the_quick_start_prints_what_it_says(capsys):
    first, wrong = after("Python", "python")
    exec(compile(first, "first.py", "exec"), {})
    assert capsys.readouterr().out == "[-2. -1.  0. 10. 20.]\n"
    exec(compile(wrong, "first.py", "exec"), {})
    assert [capsys.readouterr().out] == after("Python", "text")


def test_the_torch_of_the_quick_start_prints_what_it_says(capsys):
    pytest.importorskip("torch")
    (block,) = after("PyTorch", "python")
    exec(compile(block, "first.py", "exec"), {})
    assert f"# {capsys.readouterr().out.strip()}\n" in block


@pytest.mark.programs
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_program_of_the_quick_start_runs(tmp_path):
    (block,) = after(r"C\+\+", "bash")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    start = f'set -e\nopenaclnn() {{ {sys.executable} -m openaclnn "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", start + block], cwd=tmp_path, capture_output=True, text=True,
        env={k: v for k, v in os.environ.items() if not k.startswith("OPENACLNN_CHECK")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "openaclnn check: no mistakes"
