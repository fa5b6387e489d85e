# SPDX-License-Identifier: Apache-2.0
"""The site that mkdocs builds: every link and anchor leads somewhere, nothing comes from elsewhere,
the front pages are the READMEs. Skipped without .[docs]."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from openaclnn.aten.prototypes import functions
from openaclnn.rows.table import OPS

pytestmark = pytest.mark.programs

for module in ("material", "jieba", "matplotlib"):
    pytest.importorskip(module)

ROOT = Path(__file__).resolve().parents[2]
DOORS = ("train_a_unet", "npu_ci", "porting", "own_kernel")
LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src")}


class Page(HTMLParser):
    """Its links, what the browser loads for it, its anchors, its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value or "")
            if (tag, name) in LOADED:
                self.loaded.append(value or "")
            if name in ("href", "src"):
                self.links.append(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data


def build(config: Path, out: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", config, "-d", out],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> dict[str, Page]:
    """The pages by their place."""
    out = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", out)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {str(p.relative_to(out)): Page(p.read_text("utf-8")) for p in out.rglob("*.html")}
    found[""] = Page("")
    found[""].text = str(out)
    return found


def pages(site: dict[str, Page]) -> dict[str, Page]:
    return {place: page for place, page in site.items() if place and place != "404.html"}


def test_every_link_leads_somewhere(site):
    out = Path(site[""].text)
    wrong = []
    for place, page in pages(site).items():
        for link in page.links:
            path, anchor = urldefrag(link)
            if re.match(r"[a-z]+:|//", path):
                continue
            target = (out / place).parent / unquote(path) if path else out / place
            target = target.resolve()
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                wrong.append(f"{place}: {link}")
            elif anchor and target.suffix == ".html":
                anchors = site[str(target.relative_to(out))].anchors
                wrong += [f"{place}: {link}"] if unquote(anchor) not in anchors else []
    assert wrong == []


def test_nothing_comes_from_elsewhere(site):
    out = Path(site[""].text)
    for place, page in pages(site).items():
        assert page.loaded, place
        assert [x for x in page.loaded if re.match(r"[a-z]+:|//", x)] == [], place
    for style in out.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import\s*)[\"']?(?:https?:)?//", style.read_text()) == []


@pytest.mark.parametrize(("readme", "place"), [("README.md", "index"), ("README.zh-CN.md", "zh")])
def test_the_front_pages_are_the_readmes(site, readme, place):
    titles = re.findall(r"^#+ (.*)$", (ROOT / readme).read_text("utf-8"), re.M)
    page = site[f"{place}.html"]
    for title in titles:
        assert re.sub(r"[`*]", "", title) in page.text, title
    for op in OPS:  # the table of operators
        assert op.name in page.text, op.name
    other = {"index": "zh.html", "zh": "index.html"}[place]
    assert any(link.endswith(other) for link in page.links)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.python)
def test_every_operator_has_a_page_and_a_plot(site, op):
    out = Path(site[""].text)
    page = site[f"operators/{op.python}.html"]
    assert all(part in page.text for part in op.formula.split("; "))
    plot = (out / "operators" / f"{op.python}.svg").read_text()
    assert plot.count("<path") > 10
    assert any(link.endswith(f"operators/{op.python}.html") for link in site["index.html"].links)


def test_one_page_has_what_aten_computes(site):
    page = site["operators/aten.html"]
    assert len(functions()) > 600
    assert all(name in page.text for name in functions())
    assert any(link.endswith("operators/aten.html") for link in site["index.html"].links)


def test_the_navigation_has_titles_not_file_names(site):
    text = " ".join(site["index.html"].text.split())
    for page in ("howto/npu_device.md", "reference/numerics.md", "start/install.zh-CN.md"):
        title = re.search(r"^# (.*)$", (ROOT / "docs" / page).read_text("utf-8"), re.M)[1]
        assert title.replace("`", "") in text


def test_the_front_pages_have_the_four_doors(site):
    for place, mark in (("index.html", ""), ("zh.html", ".zh-CN")):
        text = (Path(site[""].text) / place).read_text("utf-8")
        doors = re.findall(r'<a class="door" href="(.*?)"', text)
        assert doors == [f"tutorials/{name}{mark}.html" for name in DOORS]


@pytest.mark.parametrize("place", ["zh.html", "start/quickstart.zh-CN.html", "index.html"])
def test_the_controls_have_the_language_of_the_page(site, place):
    text = (Path(site[""].text) / place).read_text("utf-8")
    language, search = ("en", "Search") if place == "index.html" else ("zh", "搜索")
    assert f'<html lang="{language}"' in text
    assert f'placeholder="{search}"' in text


def test_previous_and_next_stay_within_a_language(site):
    """The first and the last page of each language lack one of the two."""
    lacking = {'rel="prev"': set(), 'rel="next"': set()}
    for page in ("index.html", "tests.html", "zh.html", "reference/verify_findings.zh-CN.html"):
        head = (Path(site[""].text) / page).read_text(encoding="utf-8").partition("</head>")[0]
        for link, pages in lacking.items():
            if link not in head:
                pages.add(page)
    assert lacking['rel="prev"'] == {"index.html", "zh.html"}
    assert lacking['rel="next"'] == {"tests.html", "reference/verify_findings.zh-CN.html"}


def test_the_search_finds_operators_and_chinese_words(site):
    index = json.loads((Path(site[""].text) / "search" / "search_index.json").read_text("utf-8"))
    assert index["config"]["lang"] == ["en", "zh"]
    places = {doc["location"].partition("#")[0] for doc in index["docs"]}
    assert {"zh.html", *(f"operators/{op.python}.html" for op in OPS)} <= places
    assert [place for place in places if place.startswith("files/")] == []
    chinese = " ".join(d["text"] for d in index["docs"] if d["location"].startswith("zh.html"))
    assert "\u200b" in chinese  # jieba cut it


def test_a_link_that_leads_nowhere_stops_the_build(tmp_path):
    """A copy of the pages with one such link, and one with such an anchor."""
    for name in ("docs", "tests", "benchmarks", "tools", "examples", "src", "core"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "docs", tmp_path / "pages")
    with (tmp_path / "pages" / "howto" / "trace.md").open("a") as page:
        page.write("\n[wrong](nowhere.md) [wrong](../reference/runtime.md#no-such-title)\n")
    config = tmp_path / "mkdocs.yml"
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    config.write_text(text.replace("docs_dir: docs", "docs_dir: pages"), encoding="utf-8")
    done = build(config, tmp_path / "out")
    assert done.returncode != 0
    assert "nowhere.md" in done.stderr
    assert "no-such-title" in done.stderr
