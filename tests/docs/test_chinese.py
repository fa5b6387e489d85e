# SPDX-License-Identifier: Apache-2.0
"""The Chinese pages: their code is that of the English pages, which other tests run; a link leads
to a Chinese page where there is one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.check.check_mode import KINDS
from tests.check.check_mode import PAGE as MISTAKES

ROOT = Path(__file__).resolve().parents[2]
MARK = ".zh-CN.md"
PAGES = [ROOT / f"README{MARK}", *sorted((ROOT / "docs").rglob(f"*{MARK}"))]
QUICKSTART = ROOT / "docs" / "start" / f"quickstart{MARK}"
START = ("quickstart", "install", "doors")
HOW_TO = (
    "aten_programs", "building_programs", "check_mode", "npu_device", "pytorch", "trace",
    "two_phase", "verify",
)  # fmt: skip
REFERENCE = ("configuration", "status_codes", "verify_findings")
TUTORIALS = (
    "train_a_unet", "npu_ci", "porting", "own_kernel", "own_c_kernel", "several_processes",
)  # fmt: skip
# Characters and words that other words are better for, and why.
AVOIDED = {"前向": "正向", "后向": "反向", "工作区": "工作空间", "操作符": "算子"}
# Placeholders in commands, which the pages of each language write in it.
PLACEHOLDERS = {"./程序 参数 ...": "./program argument ..."}
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def blocks(page: Path) -> list[str]:
    """Code without comments, which are in the reader's language."""
    found = re.findall(r"^```(?!text)\w+\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    found = [re.sub(r"\s*(#|//).*", "", block) for block in found]
    for chinese, meant in PLACEHOLDERS.items():
        found = [block.replace(chinese, meant) for block in found]
    return found


def english(page: Path) -> Path:
    return page.with_name(page.name.replace(MARK, ".md"))


def test_the_pages_are_there():
    names = {str(page.relative_to(ROOT / "docs")) for page in PAGES[1:]}
    assert {f"start/{name}{MARK}" for name in START} <= names
    assert {f"tutorials/{name}{MARK}" for name in TUTORIALS} <= names
    assert {f"howto/{name}{MARK}" for name in HOW_TO} <= names
    assert {f"reference/{name}{MARK}" for name in REFERENCE} <= names


def test_the_page_of_check_mode_explains_every_kind_and_a_true_report():
    page = (ROOT / "docs" / "howto" / f"check_mode{MARK}").read_text("utf-8")
    assert sorted(re.findall(r"^\| `(\w+)` \|", page, re.M)) == sorted(KINDS)
    (report,) = re.findall(r"^```text\n(.*?)^```$", page, re.M | re.S)
    assert report in MISTAKES


def constants(source: str) -> dict[str, str]:
    """The texts that a module of openaclnn names in capitals."""
    tree = ast.parse((ROOT / "src" / "openaclnn" / source).read_text("utf-8"))
    found = [
        n for n in tree.body if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant)
    ]
    return {n.targets[0].id: n.value.value for n in found}


@pytest.mark.parametrize(
    ("name", "source", "texts"),
    [
        (
            "howto/pytorch",
            "torch/replacement.py",
            ("NO_SILU", "NOT_CALLED", "OTHER", "ON_INSTANCE", "WIDE", "MODEL"),
        ),
        ("reference/verify_findings", "verify/case_conditions.py", ("EVERY",)),
        ("reference/verify_findings", "verify/wording.py", ("NEARLY",)),
        ("reference/verify_findings", "verify/findings.py", ("OTHER",)),
    ],
)
def test_the_pages_explain_sentences_that_are_printed(name, source, texts):
    page = (ROOT / "docs" / f"{name}{MARK}").read_text("utf-8")
    known = constants(source)
    assert [known[text] for text in texts if known[text] not in page] == []


@each_page
def test_the_code_is_that_of_the_english_page(page):
    """Those of the quick start are some of it; tests run both."""
    if page == QUICKSTART:
        assert [b for b in blocks(page) if b not in blocks(english(page))] == []
    elif english(page).exists():
        assert blocks(page) == blocks(english(page))
    else:
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
