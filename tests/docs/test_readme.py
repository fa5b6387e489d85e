# SPDX-License-Identifier: Apache-2.0
"""The README: its tables are the rows, its Python runs, its C builds by its own line; links of
all pages lead somewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import without_diffs

from openaclnn.rows.catalogue import markdown
from openaclnn.rows.table import OPS, PRODUCTS

pytestmark = pytest.mark.programs

ROOT = Path(__file__).resolve().parents[2]
READMES = ["README.md", "README.zh-CN.md"]

# What the eight lines of C stand in.
BEFORE = """
#include <cstdio>
#include "acl/acl.h"
#include "aclnnop/aclnn_leaky_relu.h"
int main() {
  float host[] = {-2, 0, 3}, value = 0.5f;
  const size_t bytes = sizeof host;
  const int64_t shape[] = {3};
  void *x, *y;
  aclrtStream stream;
  if (aclInit(NULL) != 0 || aclrtSetDevice(0) != 0 || aclrtCreateStream(&stream) != 0) return 1;
  if (aclrtMalloc(&x, bytes, ACL_MEM_MALLOC_HUGE_FIRST) != 0) return 1;
  if (aclrtMalloc(&y, bytes, ACL_MEM_MALLOC_HUGE_FIRST) != 0) return 1;
  if (aclrtMemcpy(x, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE) != 0) return 1;
"""
AFTER = """
  std::printf("%g %g %g", host[0], host[1], host[2]);
  if (aclDestroyTensor(self) != 0 || aclDestroyTensor(out) != 0) return 1;
  if (aclDestroyScalar(slope) != 0 || aclrtFree(x) != 0 || aclrtFree(y) != 0) return 1;
  return aclrtDestroyStream(stream) + aclrtResetDevice(0) + aclFinalize();
}
"""


def text_of(readme: str) -> str:
    return (ROOT / readme).read_text(encoding="utf-8")


def blocks(readme: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text_of(readme), re.M | re.S)


def code_of(block: str) -> str:
    """Without comments, which are in the reader's language."""
    return re.sub(r"\s*(#|//).*", "", block)


@pytest.mark.parametrize("readme", READMES)
def test_operator_table_is_the_rows(readme: str) -> None:
    marked = re.search(r"<!-- operators.*?-->\n(.*?)<!-- /operators -->", text_of(readme), re.S)
    assert marked is not None, f"{readme}: the operators marker is missing"
    shown, expected = marked[1].splitlines()[2:], markdown().splitlines()[2:]
    if readme != "README.md":  # names in both; what an operator does is in the reader's language
        shown, expected = (
            ["|".join(row.split("|")[:3]) for row in rows] for rows in (shown, expected)
        )
    assert shown == expected, f"{readme}: rewrite its table with: python tools/docs/refresh.py"


@pytest.mark.parametrize(("readme", "kilobytes"), [("README.md", 7), ("README.zh-CN.md", 8)])
def test_a_readme_is_short(readme: str, kilobytes: int) -> None:
    text = text_of(readme)
    assert len(text.splitlines()) <= 110
    assert len(text.encode()) <= kilobytes * 1024


# What each page says of a product that has bfloat16, has not, and has no operator at all.
PRODUCT_WORDS = {
    "docs/reference/configuration.md": ("yes", "no", "; it has none of"),
    "docs/reference/configuration.zh-CN.md": ("支持", "不支持", "；不支持[任何算子]"),
}


@pytest.mark.parametrize("readme", PRODUCT_WORDS)
def test_product_table_is_the_rows(readme: str) -> None:
    yes, no, nothing = PRODUCT_WORDS[readme]
    shown = dict(re.findall(r"^\| (\w+) (\|.*)", text_of(readme), re.M))
    for product in PRODUCTS:
        row = shown.get(product.key, "")
        assert row, f"{readme}: the table of products must have a row for {product.key}"
        assert row.endswith(f"| {yes if product.bfloat16 else no} |"), row
        assert (nothing in row) == (not any(product.key in op.products for op in OPS)), row
        if "zh-CN" not in readme:
            assert product.title in row


def test_both_languages_show_the_same_code() -> None:
    english, chinese = (
        [code_of(b) for language in ("bash", "python", "c") for b in blocks(readme, language)]
        for readme in READMES
    )
    assert english == chinese


def test_python_lines(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = blocks("README.md", "python")
    assert len(first.splitlines()) == 7
    exec(compile(first, "README.md", "exec"), {})
    assert capsys.readouterr().out.split() == ["[-2.", "-1.", "0.", "10.", "20.]"]
    pytest.importorskip("torch")
    exec(compile(second, "README.md", "exec"), {})
    assert f"# {capsys.readouterr().out.strip()}\n" in second


@pytest.mark.programs
@pytest.mark.parametrize("readme", READMES)
def test_the_kernel_and_its_finding(readme: str, tmp_path: Path) -> None:
    (kernel,) = blocks(readme, "py")
    (tmp_path / "mine.py").write_text(kernel, encoding="utf-8")
    text = (ROOT / readme).read_text(encoding="utf-8")
    words, finding = re.findall(r"`openaclnn (verify [^`]*)`[^`]*.*`(x is [^`]*)`", text)[0]
    command = [sys.executable, "-m", "openaclnn", *words.split(), "--dtype", "fp16"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert f"every wrong element has this in common: {finding}\n" in done.stdout


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_c_lines_and_build_line(tmp_path: Path) -> None:
    (block,) = blocks("README.md", "c")
    assert len(block.splitlines()) == 8
    (build,) = (b for b in blocks("README.md", "bash") if "openaclnn cc" in b)
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "leaky_relu.cpp").write_text(BEFORE + block + AFTER)
    script = 'openaclnn() { "$PYTHON" -m openaclnn "$@"; }\n' + build
    variables = {**os.environ, "PYTHON": sys.executable}
    subprocess.run(["bash", "-ec", script], cwd=tmp_path, check=True, env=variables)
    checking = {**os.environ, "OPENACLNN_CHECK": "1"}  # its mistakes would be reported on stderr
    for environment in (os.environ, checking):
        done = subprocess.run(
            ["./prog"], cwd=tmp_path, capture_output=True, text=True, env=environment
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "-1 0 3", "")


@pytest.mark.parametrize("mark", ["", ".zh-CN"])
def test_the_index_links_every_page_in_its_language(mark: str) -> None:
    folder = ROOT / "docs"
    index = (folder / f"index{mark}.md").read_text(encoding="utf-8")
    for path in folder.rglob("*/*.md"):
        if path.name.endswith(".zh-CN.md") == bool(mark):
            page = path.relative_to(folder)
            assert f"]({page})" in index, f"link {page}"


PAGES = [ROOT / name for name in (*READMES, "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))


def anchors(page: Path) -> set[str]:
    """What GitHub makes of the headings."""
    text = re.sub(r"^(```+).*?^\1$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.*)$", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text), re.M)
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    prose = without_diffs(page.read_text(encoding="utf-8"))
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", prose):
        found = page.parent / target if target else page
        assert found.exists(), f"{page.name} links to {target}, which is not there"
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found), f"{page.name}: {target} has no #{anchor}"
