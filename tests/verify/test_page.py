# SPDX-License-Identifier: Apache-2.0
"""The page of openaclnn verify --html, without a browser: its data are those of the run, its curves
are what a plain loop finds, and no text of a library becomes markup."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from tests.verify.verify_page_support import HOSTILE, report_of_mine

from openaclnn.reference.compare import LABELS
from openaclnn.reference.evaluation import numpy_dtype
from openaclnn.reference.judge import wide
from openaclnn.verify.page import page
from openaclnn.verify.profile import DIGITS, LINEAR, PER_OCTAVE, SHIFT, TOP, curve, level


@pytest.fixture(scope="module")
def report():
    return report_of_mine()


@pytest.fixture(scope="module")
def text(report):
    return page(report)


def data_of(text):
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    return json.loads(found)


class Elements(HTMLParser):
    """Every element with its attributes, and those that were not closed in order."""

    VOID = ("meta", "link", "img", "br", "input")

    def __init__(self, text):
        super().__init__()
        self.found, self.open, self.wrong = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def test_the_page_needs_nothing_else_and_holds_no_foreign_markup(text):
    elements = Elements(text)
    assert not elements.open
    assert not elements.wrong
    loading = {"src", "srcset", "action", "poster", "background"}
    for tag, attributes in elements.found:
        assert not loading & set(attributes), (tag, attributes)
        assert tag != "link"
        assert attributes.get("href", "#").startswith("#")
        assert not any(name.startswith("on") for name in attributes)
    tags = [tag for tag, _ in elements.found]
    assert tags.count("script") == 2
    assert "img" not in tags
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|import ", text)
    sentences = {r.get("sentence") for g in data_of(text)["groups"]
                 for case in g["cases"] for r in case["results"]}  # fmt: skip
    assert HOSTILE in sentences


def test_the_data_are_those_of_the_run(report, text):
    data = data_of(text)
    by_case = {}
    for r in report.results:
        by_case.setdefault(r.case.id, {})[r.provider] = r
    seen = 0
    for group in data["groups"]:
        for case in group["cases"]:
            for shown in case["results"]:
                for i in shown["by"]:
                    result = by_case[case["id"]].pop(data["providers"][i])
                    seen += 1
                    assert ["passed", "failed", "left out"][shown["status"]] == result.status
                    assert shown.get("sentence", "") == result.message
                    made = [data["profiles"][p] for p in shown.get("profiles", [])]
                    assert [p["name"] for p in made] == [p.name for p in result.profiles]
                    for one, other in zip(made, result.profiles, strict=True):
                        counts = dict(zip(LABELS, one["counts"], strict=True))
                        assert {k: n for k, n in counts.items() if n} == other.histogram
                        size = math.prod(np.broadcast_shapes(*result.case.shapes))
                        assert sum(one["counts"]) == size
                    command = f"{data['commands'][result.provider]} {case['id']}"
                    assert command == report.command(result)
    assert seen == len(report.results)
    assert not any(by_case.values())


def test_a_finding_of_outputs_in_another_dtype_leads_to_the_inputs(report):
    """A finding names the dtypes of outputs, a square of the matrix that of the inputs."""
    failed = next(r for r in report.results if r.status == "failed" and r.case.dtype == "FLOAT16")
    case = replace(failed.case, out="BFLOAT16")
    alone = replace(report, results=[replace(failed, case=case)])
    assert '<a href="#/elu/FLOAT16/' in page(alone)


def test_the_matrix_counts_every_result(report, text):
    cells = re.findall(
        r'aria-label="(\w+) (\w+): (?:[^"]*?, )?([\d,]+ passed|[\d,]+ failed, of [\d,]+)', text
    )
    assert {(op, dtype) for op, dtype, _ in cells} == {
        (r.case.op.python, r.case.dtype) for r in report.results
    }
    for op, dtype, shown in cells:
        own = [r for r in report.results if (r.case.op.python, r.case.dtype) == (op, dtype)]
        done = [r for r in own if r.status != "left out"]
        failed, of = sum(r.status == "failed" for r in done), f"{len(done):,}"
        assert shown == (f"{failed:,} failed, of {of}" if failed else f"{of} passed")
    assert any("failed" in shown for *_, shown in cells)
    assert any("passed" in shown for *_, shown in cells)


def decoded(text):
    """The bins and levels of a curve, read as its docstring says."""
    first, _, rest = text.partition(":")
    found, bin_, i = {}, int(first) - 1, 0
    two = lambda at: DIGITS.index(rest[at]) * 64 + DIGITS.index(rest[at + 1])  # noqa: E731
    while i < len(rest):
        steps = DIGITS.index(rest[i])
        i += 1
        if steps == 63:
            steps, i = two(i), i + 2
        bin_ += steps + 1
        found[bin_], i = two(i), i + 2
    return found


@pytest.mark.filterwarnings("error")
def test_a_distance_beyond_float64_is_the_top_level():
    far = np.ldexp(np.ones(1, np.longdouble), 2000)
    assert set(decoded(curve(np.ones(1), far).bins).values()) == {TOP}


@pytest.mark.parametrize("dtype", SHIFT)
def test_a_curve_is_the_greatest_of_each_bin(dtype):
    if dtype == "BFLOAT16":
        pytest.importorskip("ml_dtypes")
    seed = int(np.random.default_rng().integers(1 << 32))
    print("seed", seed)
    rng = np.random.default_rng(seed)
    kind = np.dtype(numpy_dtype(dtype))
    bits = rng.integers(0, 1 << (8 * kind.itemsize - 1), 3000, np.uint64) * 2
    bits += rng.integers(0, 2, 3000, np.uint64)
    unsigned = bits.astype(f"u{kind.itemsize}")
    ends = np.array([0, 1, 1 << (8 * kind.itemsize - 1)], f"u{kind.itemsize}")
    unsigned = np.concatenate([unsigned, ends])
    x = unsigned.view(kind)
    distance = rng.choice([0, 0.3, 0.5, 1, 2, 777, 1e30, np.inf], x.shape)
    due, nan = {}, None
    width = 8 * kind.itemsize
    for pattern, value, far in zip(unsigned.tolist(), wide(x), distance, strict=True):
        if math.isnan(value):
            nan = max(far, nan or 0.0)
            continue
        magnitude = (pattern & ((1 << (width - 1)) - 1)) >> SHIFT[dtype]
        place = -1 - magnitude if pattern >> (width - 1) else magnitude
        due[place] = max(due.get(place, 0.0), far)
    made = curve(x, distance)
    assert decoded(made.bins) == {place: level(far) for place, far in due.items()}
    assert made.nan == nan


def test_a_level_is_never_below_the_distance_and_close():
    distances = [0, 1e-9, 0.25, 0.4999, 0.5, 0.501, 1, 1.0001, 3, 35.85, 1e6, 1e18]
    for distance in distances:
        at = level(distance)
        shown = at / LINEAR if at <= LINEAR else 2 ** ((at - LINEAR) / PER_OCTAVE)
        assert distance <= shown * (1 + 1e-12)
        assert shown <= max(distance * 2 ** (1 / PER_OCTAVE) * (1 + 1e-12), distance + 1 / LINEAR)
    assert level(math.inf) == TOP
    assert level(1e300) == TOP - 1
