# SPDX-License-Identifier: Apache-2.0
"""The page of openaclnn verify --html in headless Chromium: a click through to a case, the
keyboard, what screen readers get, light and dark, and no network."""

from __future__ import annotations

import re

import pytest
from tests.browser import CHROMIUM, CONTRAST, NEEDED, Browser
from tests.verify.verify_page_support import HOSTILE, report_of_mine

from openaclnn.verify.page import page

pytestmark = [pytest.mark.programs, pytest.mark.skipif(CHROMIUM is None, reason=NEEDED)]
CELL = "#matrix td a[href='#/elu/FLOAT16']"
FOCUS = "document.activeElement"
SHOWN = "!document.getElementById('detail').hidden"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    made = tmp_path_factory.mktemp("page") / "report.html"
    made.write_text(page(report_of_mine()), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("chromium") / "profile")
    yield browser
    browser.close()


@pytest.fixture
def shown(chromium, file):
    """The page, freshly opened; afterwards it must have asked for nothing and reported no error."""
    chromium.size(1200, 900)
    chromium.open("about:blank")
    chromium.errors.clear()
    chromium.requests.clear()
    chromium.open(file.as_uri())
    yield chromium
    assert chromium.errors == []
    assert set(chromium.requests) == {file.as_uri()}


def text_of(browser, selector):
    return browser.run(f"document.querySelector({selector!r}).innerText")


def test_a_click_leads_to_the_case_its_worst_element_and_its_command(shown, file):
    assert re.search(r"\d+ of \d+ results failed", text_of(shown, "h1"))
    shown.click(CELL)
    shown.wait(SHOWN)
    assert text_of(shown, "#detail h2") == "elu FLOAT16"
    assert "expm1" in text_of(shown, ".formula")
    rows = shown.run("[...document.querySelectorAll('.histogram tr')].map((r) => r.innerText)")
    assert any(re.search(r"≤ 4\s+[\d,]+\s+[\d.]+ %", row) for row in rows), rows
    # The worst input is in the range that is spoilt.
    low, high = re.search(r"x from (\S+) to (\S+): ", text_of(shown, ".readout")).groups()
    assert -2 <= float(low) < float(high) <= -1
    shown.click(".cases button.open")
    assert shown.run("document.querySelector('.cases button.open').ariaExpanded") == "true"
    body = text_of(shown, ".cases tr.more:not([hidden])")
    assert "mine: failed, wrong" in body
    assert "good: passed" in body
    assert re.search(r"\[[\d, ]+\]\s+-1\.\d+ \(0x\w{4}\)\s+-\S+ \(0x\w{4}\)", body)
    assert re.search(r"openaclnn verify mine --seed 1 --only elu/FLOAT16/\d+", body)


def test_a_finding_leads_to_its_worst_case(shown):
    shown.click("#findings a[href^='#/hardshrink/FLOAT/']")
    shown.wait(SHOWN)
    assert text_of(shown, "#detail h2") == "hardshrink FLOAT"
    assert HOSTILE.split("\u2028")[0].strip() in text_of(shown, ".cases tr.more:not([hidden])")
    assert shown.run("document.images.length") == 0
    assert shown.run(f"{FOCUS}.dataset.case") is not None


def test_everything_is_reached_from_the_keyboard(shown):
    shown.press("Tab")
    assert shown.run(f"{FOCUS}.className") == "skip"
    shown.run(f"document.querySelector({CELL!r}).focus()")
    steps = {"ArrowDown": "#/hardshrink/FLOAT16", "ArrowLeft": "#/hardshrink/FLOAT",
             "ArrowUp": "#/elu/FLOAT", "ArrowRight": "#/elu/FLOAT16"}  # fmt: skip
    for key, address in steps.items():
        shown.press(key)
        assert shown.run(f"{FOCUS}.getAttribute('href')") == address
    shown.press("ArrowRight")  # there is none to the right
    assert shown.run(f"{FOCUS}.getAttribute('href')") == "#/elu/FLOAT16"
    shown.press("Enter")
    shown.wait(SHOWN)
    assert shown.run(f"{FOCUS}.id") == "detail-title"
    for _ in range(10):
        if shown.run(f"{FOCUS}.className") == "chart":
            break
        shown.press("Tab")
    shown.press("Home")
    assert text_of(shown, ".readout").startswith("x from -∞ to ")
    shown.press("End")
    last = text_of(shown, ".readout")
    shown.press("ArrowLeft")
    assert text_of(shown, ".readout") != last
    shown.press("Enter")  # opens the case of this range
    assert shown.run(f"{FOCUS}.ariaExpanded") == "true"
    shown.press("Enter")
    assert shown.run(f"{FOCUS}.ariaExpanded") == "false"
    shown.press("Escape")
    assert not shown.run(SHOWN)
    assert shown.run(f"{FOCUS}.getAttribute('href')") == "#/elu/FLOAT16"


def test_providers_filters_and_failures_choose_cases(shown):
    shown.run("location.hash = '#/elu/FLOAT16'")
    shown.wait(SHOWN)
    status = lambda: text_of(shown, "#detail [role=status]")  # noqa: E731
    found, every = re.fullmatch(r"(\d+) of (\d+) cases", status()).groups()
    assert found == every
    shown.click("#detail input[type=checkbox]")
    failed = int(status().split()[0])
    assert 0 < failed < int(every)
    assert shown.run("document.querySelectorAll('.cases td.verdict.good').length") == 0
    shown.choose("#detail select", "good")
    assert status().startswith("0 of ")
    assert shown.run("document.querySelectorAll('.histogram tr.bad').length") == 0
    shown.click("#detail input[type=checkbox]")
    shown.run("document.querySelector('#detail input[type=search]').focus()")
    for letter in "special":
        shown.press(letter)
    assert 0 < int(status().split()[0]) < int(every)
    rows = "[...document.querySelectorAll('.cases > tbody > tr:not(.more)')]"
    assert all(
        "special" in value for value in shown.run(f"{rows}.map((r) => r.cells[3].innerText)")
    )


def test_screen_readers_get_names_and_roles(shown):
    shown.run("location.hash = '#/elu/FLOAT16'")
    shown.wait(SHOWN)
    shown.click(".cases button.open")
    tree = shown.accessible()
    named = {(node["role"], node["name"]) for node in tree}
    assert ("table", "Operators and dtypes") in named
    assert any(
        role == "link" and re.match(r"elu FLOAT16: \d+ failed, of \d+", name)
        for role, name in named
    )
    assert ("columnheader", "elements") in named
    assert any(role == "rowheader" and "≤ 4" in name for role, name in named)
    assert any(role == "application" and "The worst is x from" in name for role, name in named)
    for role in ("link", "button", "combobox", "searchbox", "checkbox", "table"):
        nodes = [node["name"] for node in tree if node["role"] == role]
        assert nodes, role
        assert role == "table" or all(nodes), role
    assert shown.run("document.documentElement.lang") == "en"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_light_and_dark(shown, scheme):
    shown.scheme(scheme)
    shown.run("location.hash = '#/elu/FLOAT16'")
    shown.wait(SHOWN)
    shown.click(".cases button.open")
    ratios = shown.run(CONTRAST)
    assert len(ratios) > 100
    assert ratios[0][0] >= 4.5, ratios[0]  # WCAG 2, level AA
    assert (shown.run("getComputedStyle(document.documentElement).backgroundColor")
            == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}[scheme])  # fmt: skip
    shown.run("document.getElementById('theme').click()")  # light, whatever the system is
    assert shown.run("getComputedStyle(document.documentElement).colorScheme") == "light"


def test_a_narrow_page_does_not_scroll_sideways(shown):
    shown.size(380, 800)
    shown.run("location.hash = '#/elu/FLOAT16'")
    shown.wait(SHOWN)
    shown.click(".cases button.open")
    assert shown.run("document.documentElement.scrollWidth") <= 380
