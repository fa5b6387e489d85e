# SPDX-License-Identifier: Apache-2.0
"""`openaclnn demo --op --json --html`: what the documents hold, and where they go."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from tests.browser import CHROMIUM, CONTRAST, NEEDED, Browser

from openaclnn.commands.cli import main
from openaclnn.reference.evaluation import REFERENCES, evaluate, numpy_dtype, ulp_error
from openaclnn.rows.table import OPS

pytestmark = pytest.mark.programs


class Structure(HTMLParser):
    """Tags that are open, headings, and the addresses of what would be fetched."""

    VOID = ("meta", "br", "input")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.fetched: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        given = dict(attrs)
        self.ids += [given["id"]] if "id" in given else []
        self.fetched += [v for k, v in attrs if k in ("src", "href") and not v.startswith("#")]

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def run(words, capsys):
    status = main(["demo", *words])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def test_json_alone_on_standard_output(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(["--op", "elu", "--op", "aclnnLogit", "--json", "-"], capsys)
    data = json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert status == 0
    assert [one["python"] for one in data["operators"]] == ["elu", "logit"]
    assert data["kept"] is True
    assert data["refusal"]["status"] == 161002
    assert "Every promise was kept." in err  # the show is not lost
    assert list(tmp_path.iterdir()) == []


def test_the_points_are_those_of_the_operator(capsys):
    """The results of the document, judged here."""
    _, out, _ = run(["--op", "elu", "--json", "-"], capsys)
    (one,) = json.loads(out)["operators"]
    op = next(op for op in OPS if op.python == "elu")
    dtype, found = next(iter(one["dtypes"].items()))
    x, y = (np.array([float(v) for v in one["points"][name]]) for name in ("x", "result"))
    inputs = [x.astype(numpy_dtype(dtype))]
    (due,) = evaluate(op, inputs, REFERENCES[op.kernel].attributes[0])
    assert ulp_error(y.astype(numpy_dtype(dtype)), due, dtype).max() <= found["promised"]
    assert {math.inf, -math.inf, 0.0} <= set(x)
    assert np.isnan(x).any()


def test_files(capsys, tmp_path):
    made = [tmp_path / "demo.json", tmp_path / "demo.html"]
    words = ["--op", "hardshrink", "--json", str(made[0]), "--html", str(made[1])]
    status, out, err = run(words, capsys)
    assert (status, err) == (0, "")
    assert "aclnnHardshrink" in out
    assert "aclnnElu" not in out
    assert json.loads(made[0].read_text())["operators"][0]["name"] == "aclnnHardshrink"
    assert "aclnnHardshrink" in made[1].read_text(encoding="utf-8")


def test_html_alone_on_standard_output(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(["--html", "-"], capsys)
    assert status == 0
    assert out.startswith("<!doctype html>")
    assert "Every promise was kept." in err
    assert list(tmp_path.iterdir()) == []
    page = Structure(out)
    assert page.open == []
    assert page.fetched == []
    assert {op.python for op in OPS} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert out.count('role="img" aria-label="aclnn') == len(OPS)
    summary = out.partition('<section id="summary"')[2].partition("</section>")[0]
    for op in OPS:
        (row,) = re.findall(rf'<tr><th scope="row"><a href="#{op.python}">.*?</tr>', summary)
        measured = re.search(rf"{op.name}: errors and times.*?</table>", out)[0]
        assert row.count('class="good') == measured.count('class="good') > 0


def test_a_broken_promise_is_in_every_document(capsys, monkeypatch, tmp_path):
    quarter = lambda op, compute, output: (output, 0.25)  # noqa: E731
    monkeypatch.setattr("openaclnn.demo.showcase.accuracy", quarter)
    page = tmp_path / "demo.html"
    status, out, _ = run(["--op", "elu", "--json", "-", "--html", str(page)], capsys)
    assert status == 1
    data = json.loads(out)
    assert data["kept"] is False
    assert not data["operators"][0]["dtypes"]["FLOAT"]["kept"]
    text = page.read_text(encoding="utf-8")
    assert '<h1 class="bad">' in text
    assert "BROKEN" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--op", "elo"], "there is no operator elo; did you mean elu?"),
        (["--json", "-", "--html", "-"], "--json and --html must not both be -"),
        (["--json", "no/x.json"], "--json no/x.json"),
        (["--html", "no/x.html"], "--html no/x.html cannot be written"),
    ],
)
def test_wrong_use_is_one_sentence(words, sentence, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(words, capsys)
    assert (status, out) == (2, "")
    assert err.startswith(f"openaclnn demo: {sentence}")
    assert err.count("\n") == 1


@pytest.mark.skipif(CHROMIUM is None, reason=NEEDED)
def test_the_page_in_a_browser(capsys, tmp_path):
    page = tmp_path / "demo.html"
    run(["--op", "logit", "--html", str(page)], capsys)
    browser = Browser(tmp_path / "profile")
    try:
        browser.open(page.as_uri())
        assert browser.run("document.querySelectorAll('figure svg path').length") == 2
        for scheme in ("light", "dark"):
            browser.scheme(scheme)
            ratio, element = browser.run(CONTRAST)[0]
            assert ratio >= 4.5, (scheme, element)
        browser.size(390, 800)
        assert browser.run("document.documentElement.scrollWidth") <= 390
        tables = "[...document.querySelectorAll('section > .scroll')]"
        assert browser.run(f"{tables}.every((e) => e.scrollWidth <= e.clientWidth)")
        scale = "document.querySelector('.chart svg').getScreenCTM().a"
        size = "parseFloat(getComputedStyle(document.querySelector('.chart text')).fontSize)"
        assert browser.run(f"{scale} * {size}") >= 10  # pixels
        browser.click("#theme")
        assert browser.run("document.documentElement.dataset.theme") == "light"
        browser.click("details summary")
        assert browser.run("document.querySelector('details').open")
        heard = [n["name"] for n in browser.accessible() if n["role"] in ("image", "img")]
        assert heard == ["aclnnLogit, clamp edge at 0.0078125, clamp edge at 0.992188"]
        assert browser.errors == []
        assert browser.requests == [page.as_uri()]
    finally:
        browser.close()
