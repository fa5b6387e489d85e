# SPDX-License-Identifier: Apache-2.0
"""Pages that could fall behind: the list of runtime functions, numbers, the diffs of guides."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.abi.test_symbols import exports
from tests.support import without_diffs

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "docs"))
import example_changes
import refresh
import status_codes
import words

import openaclnn
from openaclnn.commands.cli import main
from openaclnn.commands.programs import environment

ROOT = Path(__file__).resolve().parents[2]
GUIDES = {guide.stem: example_changes.diffs(guide) for guide in example_changes.GUIDES}
PAGE = ROOT / "docs" / "reference" / "runtime.md"


def test_the_runtime_pages_list_what_the_library_exports():
    rows = re.findall(r"^\| (`acl.*?) \|", PAGE.read_text(encoding="utf-8"), re.M)
    explained = re.findall(r"`(\w+)`", " ".join(rows))
    assert set(explained) <= set(exports("ascendcl"))
    assert len(explained) > 100
    page = PAGE.with_name("runtime_functions.md").read_text(encoding="utf-8")
    listed = [name for name in re.findall(r"`(\w+)`", page) if name.startswith("acl")]
    assert sorted(listed) == exports("ascendcl")


def test_the_runtime_page_states_the_stack_that_phase_1_requires():
    """In the order of the rows of the table."""
    constants = ("kStack", "kDoubleStack", "kTilesStack")
    sources = [ROOT / "core" / "ops" / name for name in ("group_norm_steps.cpp", "elementwise.cpp")]
    text = "".join(source.read_text(encoding="utf-8") for source in sources)
    required = [re.search(rf"\b{name} = (\d+) \* 1024\b", text)[1] for name in constants]
    assert text.count("need_stack(") == len(constants), "a row of the table is missing"
    page = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^\| .* \| (\d+) KiB \|$", page, re.M) == required
    assert "dense tensors | no requirement |" in page


def test_the_page_of_the_installation_directory_names_what_is_there():
    page = (ROOT / "docs" / "reference" / "installation_directory.md").read_text(encoding="utf-8")
    home = openaclnn.home()
    parts = [*home.iterdir(), *(p for p in (home / "lib64").iterdir() if p.is_dir())]
    for part in parts:
        name = str(part.relative_to(home))
        assert f"{name}/" in page if part.is_dir() else name in page, name
    variables = set(environment({})) - {"ASCEND_HOME_PATH"}
    assert variables
    for variable in variables:
        assert f"`{variable}`" in page, variable


def test_pages_say_how_many_functions_aten_computes():
    wrong, found = [], {}
    for page in refresh.PAGES:
        text = page.read_text(encoding="utf-8")
        found[page.name] = len(refresh.FUNCTIONS.findall(text))
        if refresh.with_counts(text) != text:
            wrong.append(page.name)
    assert wrong == [], "rewrite them with: python tools/docs/refresh.py"
    saying = {"README.md": 1, "README.zh-CN.md": 1, "CHANGELOG.md": 1, "npu_support.md": 1}
    saying |= {"index.md": 1, "decisions.md": 1, "aten_programs.md": 1, "building_programs.md": 1}
    saying |= {"product_rules.md": 1, "npu_support.zh-CN.md": 1, "doors.zh-CN.md": 1}
    saying |= {f"{name}.zh-CN.md": 1 for name in ("aten_programs", "building_programs", "index")}
    assert {page: count for page, count in found.items() if count} == saying
    for name in ("npu_support.md", "npu_support.zh-CN.md"):
        page = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")
        assert len(refresh.TYPES.findall(page)) == 1


def test_status_codes_are_those_that_the_library_returns():
    """Each has a cause, and the page is what the headers and sources say."""
    names = {
        status_codes.short(name) for name in status_codes.returned() & {*status_codes.values()}
    }
    assert names == set(status_codes.CAUSES)
    for name, mark in (("status_codes.md", ""), ("status_codes.zh-CN.md", "zh-CN")):
        page = PAGE.with_name(name).read_text(encoding="utf-8")
        assert page == status_codes.page(mark), "run python tools/docs/refresh.py"


@pytest.mark.parametrize("page", words.pages(), ids=lambda page: page.name)
def test_pages_are_short(page):
    if page.stem not in words.GENERATED:
        assert words.counts(page)[0] <= words.TABLES.get(page.stem, words.LIMIT), "cut it"


@pytest.mark.programs
def test_what_products_refuse_is_the_page_of_the_entries():
    tool = ROOT / "tools" / "docs" / refresh.WRITTEN["product_rules"]
    page = subprocess.run([sys.executable, tool], capture_output=True, text=True, check=True).stdout
    assert page == (ROOT / "docs" / "reference" / "product_rules.md").read_text(encoding="utf-8")


def test_the_readme_of_the_tests_names_every_folder():
    page = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| (\w+)/ \|", page, re.M)
    folders = [path.name for path in (ROOT / "tests").iterdir() if path.is_dir()]
    assert sorted(named) == sorted(set(folders) - {"__pycache__"})


# ---- openaclnn docs ----

INSTALLED = openaclnn.home() / "share" / "docs"
NAMES = sorted(path.name.removesuffix(".md") for path in (ROOT / "docs").rglob("*.md"))
CHINESE = ".zh-CN"


def listed(capsys) -> tuple[list[str], dict[str, str]]:
    """The titles of the groups, and of the pages by name."""
    assert main(["docs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"The pages are in {INSTALLED}." in lines
    pages = dict(line.split(maxsplit=1) for line in lines if line.startswith("  "))
    groups = [line for line in lines[1:] if line and not line.startswith("  ") and " " not in line]
    return groups, {"index": lines[0].split(maxsplit=1)[1], **pages}


def test_the_pages_are_installed_and_listed(capsys, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C")
    installed = sorted(path.name.removesuffix(".md") for path in INSTALLED.rglob("*.md"))
    assert installed == NAMES
    groups, pages = listed(capsys)
    assert sorted(groups) == sorted(path.name for path in INSTALLED.iterdir() if path.is_dir())
    assert sorted(pages) == [name for name in NAMES if not name.endswith(CHINESE)]
    assert pages["index"] == "openaclnn documentation"


def test_the_list_of_a_chinese_locale_has_chinese_titles(capsys, monkeypatch):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    _, pages = listed(capsys)
    assert sorted(pages) == sorted({name.removesuffix(CHINESE) for name in NAMES})
    assert pages["index"] == "中文文档"
    assert pages["jax"] == "openaclnn in JAX"


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("状态码", "status_codes.zh-CN"),
        ("术语", "doors.zh-CN"),
        ("trac", "trace"),
        ("llama.cpp", "aten_programs"),
    ],
)
def test_a_word_that_one_page_has_opens_it(word, name, capsys, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C")
    assert main(["docs", word]) == 0
    (page,) = (ROOT / "docs").rglob(f"{name}.md")
    assert page.read_text(encoding="utf-8").endswith(capsys.readouterr().out)


@pytest.mark.parametrize("name", ["trace", "trace.md"])
def test_a_page_is_printed(name, capsys):
    assert main(["docs", name]) == 0
    text = (ROOT / "docs" / "howto" / "trace.md").read_text(encoding="utf-8")
    assert text == f"<!-- SPDX-License-Identifier: Apache-2.0 -->\n{capsys.readouterr().out}"


@pytest.mark.parametrize(
    ("variable", "locale", "shown"),
    [
        ("LANG", "zh_CN.UTF-8", "quickstart.zh-CN"),
        ("LC_ALL", "C.UTF-8", "quickstart"),
    ],
)
def test_a_page_is_printed_in_the_language_of_the_locale(
    variable, locale, shown, capsys, monkeypatch
):
    for other in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(variable, locale)
    assert main(["docs", "quickstart"]) == 0
    page = ROOT / "docs" / "start" / f"{shown}.md"
    assert page.read_text(encoding="utf-8").endswith(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("trcae", "did you mean trace?"),
        ("xyz", "see:  openaclnn docs"),
    ],
)
def test_a_page_that_is_not_there(name, hint, capsys):
    assert main(["docs", name]) == 2
    assert capsys.readouterr().err == f"openaclnn docs: there is no page {name}; {hint}\n"


def test_a_word_that_several_pages_have_lists_them(capsys):
    assert main(["docs", "Judge"]) == 2
    first, *rest = capsys.readouterr().err.splitlines()
    assert first == "openaclnn docs: several pages have Judge:"
    assert [line.split()[0] for line in rest] == ["own_c_kernel", "own_kernel"]


def help_of_every_command(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    for name in re.findall(r"^  (\w+)  ", text, re.M):
        with contextlib.suppress(SystemExit):
            main([name, "--help"])
        text += capsys.readouterr().out
    return text


def test_help_names_only_pages_that_are_there(capsys):
    text = help_of_every_command(capsys)
    assert text.count("usage: openaclnn") >= 10
    named = re.findall(r"`openaclnn docs (\w+)`", text)
    assert {"check_mode", "trace"} <= set(named) <= set(NAMES)
    assert re.findall(r"[^ ]*docs/[^ ]*|[^ ]*\.md\b", text) == []  # a path that only a checkout has


def test_links_of_the_installed_pages_lead_somewhere():
    """Except for links into the sources, which only a checkout has."""
    folders = "core|src|python|tests|tools|benchmarks"
    sources = re.compile(rf"[a-z]+:|(?:\.\./)+({folders})\b|[\w/]+\.(svg|png)$")
    followed = 0
    for page in INSTALLED.rglob("*.md"):
        for link in re.findall(r"\]\(([^)#\s]+)", without_diffs(page.read_text("utf-8"))):
            if sources.match(link):
                continue
            assert (page.parent / link).exists(), f"{page.name}: {link}"
            followed += 1
    assert followed > 50


# ---- guides ----

# Of each diff, by guide: files changed, new files, a word in all of them or their names.
DIFFS = {
    "add_an_operator": [(6, 0, "oftsign"), (4, 6, "oftmax")],
    "add_an_aten_operator": [(3, 0, "aclnnXlog1py"), (4, 0, "atrelu")],
    "add_a_command": [(3, 2, "header")],
    "add_a_mistake": [(4, 2, "recorded")],
}
# Files in which a diff only deletes.
SHORTER = {"src/openaclnn/aten/activation.txt"}


def test_every_guide_has_diffs():
    assert {name: len(diffs) for name, diffs in DIFFS.items()} == {
        name: len(diffs) for name, diffs in GUIDES.items()
    }


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("name", DIFFS)
def test_the_diff_of_a_guide_applies(name, tmp_path):
    """The edits fit the files as they are, and there are no others."""
    for diff, (changed, new, word) in zip(GUIDES[name], DIFFS[name], strict=True):
        files = re.findall(r"^--- (.*)\n\+\+\+ (.*)$", diff, re.M)
        old = [after for before, after in files if before != "/dev/null"]
        assert (len(old), len(files) - len(old)) == (changed, new)
        for file in old:
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, tmp_path / file)
        done = example_changes.apply(diff, tmp_path)
        assert done.returncode == 0, done.stderr
        for _, file in files:
            text = (tmp_path / file).read_text(encoding="utf-8")
            assert word in text or word in file or file in SHORTER, file
            for dots, module in re.findall(r"^from (\.+)(\w+)", text, re.M):
                folder = (ROOT / file).parents[len(dots) - 1]
                assert (folder / module).is_dir() or (folder / f"{module}.py").is_file(), file
