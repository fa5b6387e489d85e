# SPDX-License-Identifier: Apache-2.0
"""`openaclnn check --html`: the reports of the run as a page that needs nothing else."""

from __future__ import annotations

import html
import json
import re
import sys
from html.parser import HTMLParser

import pytest
from tests.browser import CHROMIUM, NEEDED
from tests.check.check_mode import PROGRAMS, needs_compiler, openaclnn_command, program, reports

from openaclnn.commands.check_page import page

pytestmark = [pytest.mark.programs, needs_compiler]


class Whole(HTMLParser):
    """Every element is closed in its turn; addresses and ids."""

    VOID = frozenset({"meta", "br"})

    def __init__(self, text):
        super().__init__()
        self.open, self.hrefs, self.ids, self.sources = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.hrefs += [named["href"]] if "href" in named else []
        self.ids += [named["id"]] if "id" in named else []
        self.sources += [named["src"]] if "src" in named else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("source", PROGRAMS, ids=lambda p: p.stem)
def test_every_kind_of_report_is_on_the_page(source, programs):
    folder = reports(source, programs)
    text = (folder / "page.html").read_text(encoding="utf-8")
    found = json.loads((folder / "reports.json").read_text(encoding="utf-8"))
    whole = Whole(text)
    assert whole.sources == []
    assert all(href.startswith("#") and href[1:] in whole.ids for href in whole.hrefs)
    assert "default-src 'none'" in text
    count = len(found["reports"])
    assert count > 0
    assert f"<title>openaclnn check: {count} mistake{'s' if count > 1 else ''}</title>" in text
    for report in found["reports"]:
        for words in (report["what"], report["advice"]):
            assert html.escape(words) in text
        for place in report["places"]:
            for frame in place["frames"]:
                if frame["file"]:
                    at = f"{frame['function']} at {frame['file']}:{frame['line']}"
                    assert html.escape(at) in text
        for consequence in report["consequences"]:
            assert html.escape(consequence["what"]) in text


def test_lines_of_source_stand_around_their_place(programs, tmp_path):
    """Also in another folder than that of the source."""
    source = next(p for p in PROGRAMS if p.stem == "double_free")
    out = tmp_path / "page.html"
    openaclnn_command("check", "--html", str(out), str(program(source, programs)), cwd=tmp_path)
    text = out.read_text(encoding="utf-8")
    marked = [html.unescape(line) for line in re.findall(r"<mark>(.*?)</mark>", text)]
    if not marked:
        pytest.skip("addr2line names no lines here")
    lines = source.read_text().splitlines()
    number, shown = marked[0].strip().split("  ", 1)
    assert lines[int(number) - 1] == shown
    assert "aclrtFree" in shown


def test_a_page_without_mistakes_and_one_of_nothing(tmp_path):
    done = openaclnn_command("check", "--html", "-", "true")
    assert done.returncode == 67
    assert '<h1 class="none">' in done.stdout
    assert "nothing was checked: true did not load openaclnn" in done.stdout
    Whole(done.stdout)
    found = {"program": ["./a", "<b>"], "status": 0, "checked": True, "reports": []}
    text = page(found, "no mistakes")
    assert '<h1 class="good">' in text
    assert "&lt;b&gt;" in text
    Whole(text)


def test_text_of_a_program_is_text(tmp_path):
    """A report holds what the program calls things, which is not HTML."""
    hostile = "</code><script>alert(1)</script>"
    frame = {"function": hostile, "file": "", "line": 0, "module": hostile, "offset": 5}
    place = {"role": "here", "call": hostile, "frames": [frame]}
    report = {"kind": "leak", "what": hostile, "places": [place], "advice": "", "consequences": []}
    found = {"program": [hostile], "status": 66, "checked": True, "reports": [report, report]}
    text = page(found, "")
    assert text.count("<script>") == 1
    assert "alert(1)</script>" not in text
    Whole(text)


def test_only_one_report_goes_to_standard_output(tmp_path):
    done = openaclnn_command("check", "--json", "-", "--html", "-", "true")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "openaclnn check: only one of --json and --html must be -, but both are\n"


@pytest.mark.skipif(CHROMIUM is None, reason=NEEDED)
def test_in_a_browser(programs, tmp_path):
    """The page opens without errors, asks for nothing and fits a telephone."""
    from tests.browser import Browser

    source = next(p for p in PROGRAMS if p.stem == "double_free")
    out = reports(source, programs) / "page.html"
    (tmp_path / "profile").mkdir()
    browser = Browser(tmp_path / "profile")
    try:
        browser.open(out.as_uri())
        assert "1 mistake" in browser.run("document.querySelector('h1').textContent")
        browser.click("#theme")
        assert browser.run("document.documentElement.dataset.theme") == "light"
        browser.size(380, 800)
        assert browser.run("document.documentElement.scrollWidth") <= 380
        assert browser.errors == []
        assert [r for r in browser.requests if not r.startswith("file:")] == []
    finally:
        browser.close()


def test_python_programs_have_file_and_line_on_the_page(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(
        "import numpy as np, openaclnn\n"
        "try:\n"
        "    openaclnn.elu(np.ones(3, np.int32), 1.0, 1.0, 1.0)\n"
        "except openaclnn.AclnnError:\n"
        "    pass\n",
        encoding="utf-8",
    )
    out = tmp_path / "page.html"
    done = openaclnn_command("check", "--html", str(out), sys.executable, str(script))
    text = html.unescape(out.read_text(encoding="utf-8"))
    assert f"{script}:3" in text, done.stderr
    assert "openaclnn.elu(np.ones" in text
