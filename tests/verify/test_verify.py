# SPDX-License-Identifier: Apache-2.0
"""openaclnn verify: its cases come from the rows and can be saved and repeated, and a run reports
what it found in a table, in JSON and in JUnit XML."""

from __future__ import annotations

import io
import json
import re
import sys

import numpy as np
import pytest
from tests.support import FLOATS

import openaclnn
from openaclnn.reference.evaluation import REFERENCES
from openaclnn.reference.layouts import EXPANDED
from openaclnn.reference.standards import Standard
from openaclnn.rows.table import OPS, PRODUCTS
from openaclnn.verify import values
from openaclnn.verify.cases import from_data
from openaclnn.verify.generate import generate
from openaclnn.verify.progress import progress
from openaclnn.verify.provider import Outcome
from openaclnn.verify.runner import Runner

PRODUCT = next(p for p in PRODUCTS if p.key == "A2")


def all_cases(seed=1):
    return generate(OPS, FLOATS, PRODUCT, seed)


def test_cases_cover_the_rows():
    """Every row x dtype x attribute set, every kind of values, layouts, ranks, empty tensors."""
    cases = all_cases()
    assert len({case.id for case in cases}) == len(cases)
    for op in OPS:
        for dtype in op.accepted(PRODUCT):
            own = [case for case in cases if case.op is op and case.dtype == dtype]
            sets = {repr(case.attributes) for case in own}
            assert sets >= {repr(a) for a in REFERENCES[op.kernel].attributes}
            first = REFERENCES[op.kernel].attributes[0]
            for name, value in first.items() if len(first) > 1 else ():
                same = [{**case.attributes, name: value} == first for case in own
                        if case.attributes[name] != value]  # fmt: skip
                assert any(same) or not same, name  # an attribute that changes alone
            assert {case.values for case in own} == set(values.names(op, dtype))
            layouts = {case.layout for case in own}
            assert len(layouts) == 6 + (not op.pointwise) + (0 if op.inplace else len(EXPANDED))
            assert any(case.alias for case in own) == (not op.inplace)
            ranks = {len(case.shapes[0]) for case in own}
            assert {2, 3, 8} <= ranks
            assert any(sum(case.shapes[0]) == 0 for case in own) == op.pointwise
            assert any(case.mistake for case in own)
            if op.shapes == "broadcast":
                assert any(len(set(case.shapes)) > 1 for case in own)


def test_a_case_is_made_again_from_its_seed_and_from_its_data():
    made_before = set()
    for case, same, other in zip(all_cases(), all_cases(), all_cases(2), strict=True):
        read = from_data(json.loads(json.dumps(case.as_data(), allow_nan=False)), 0)
        assert repr(read.as_data()) == repr(case.as_data())
        kind = (case.op.name, case.dtype, case.values)
        if case.values in ("special", "every") or case.shapes[0] > (1000,) or kind in made_before:
            continue  # the first has no seed; the others take long
        made_before.add(kind)
        made, again, from_file = case.inputs(), same.inputs(), read.inputs()
        for x, y, z in zip(made, again, from_file, strict=True):
            assert x.tobytes() == y.tobytes() == z.tobytes()
        if made[0].size > 10:
            assert made[0].tobytes() != other.inputs()[0].tobytes()


def test_every_pattern_and_every_combination():
    plain = {(c.op.kernel, c.dtype, c.values): c for c in reversed(all_cases())}
    for case in plain.values():  # with the first attributes
        if case.values == "every":
            for x in case.inputs():
                assert len(np.unique(x.view(np.uint16))) == 65_536
        elif case.values == "special" and len(case.shapes) == 2 and case.dtype == "FLOAT":
            one, two = (x.view(np.uint32) for x in case.inputs())
            combinations = len(np.unique(one.astype(np.uint64) << np.uint64(32) | two))
            assert combinations == len(np.unique(one)) * len(np.unique(two))


# ---- the run ----


class Wrong:
    """Computes as the library does, but for one element."""

    name = "wrong"

    def __init__(self, change):
        self.change = change

    def missing(self, case):
        return "no status codes" if case.mistake else ""

    def run(self, case, inputs):
        named = {p.python_name: x for p, x in zip(case.op.input_tensors, inputs, strict=True)}
        found = getattr(openaclnn, case.op.python)(**named, **case.attributes)
        found = found if isinstance(found, tuple) else (found,)
        return Outcome(tuple(self.change(case, y) for y in found))

    def close(self):
        pass


def run_of(provider, cases, standard=None):
    return Runner([provider], standard or Standard()).run(cases, lambda case, done: None)


def plain_cases(kind="ordinary"):
    """One of each row and dtype, with its first attributes."""
    found = {(c.op.name, c.dtype): c for c in reversed(all_cases()) if c.values == kind}
    return list(found.values())


def test_what_is_right_passes():
    results = run_of(Wrong(lambda case, y: y), plain_cases())
    assert {r.status for r in results} == {"passed"}


def test_wrong_elements_are_found_with_their_inputs():
    def last_is_off(case, y):
        y = y.copy()
        y.reshape(-1)[-1] = np.nan
        return y

    for result in run_of(Wrong(last_is_off), plain_cases()):
        case = result.case
        assert (result.status, result.kind) == ("failed", "wrong")
        shape = case.shapes[0]
        assert result.worst[0].index == tuple(n - 1 for n in shape)
        for name, (value, _) in result.worst[0].inputs.items():
            p = [p.python_name for p in case.op.input_tensors].index(name)
            given = case.inputs()[p].reshape(-1)[-1]
            np.testing.assert_equal(value, float(given))
            assert f"{name} = " in result.place
        assert "got nan" in result.message


def test_wrong_shapes_and_missing_results():
    for change, shown in ((lambda c, y: y[..., :-1], "shape"), (lambda c, y: None, "None")):
        for result in run_of(Wrong(change), plain_cases()):
            assert (result.status, result.kind) == ("failed", "wrong")
            assert shown in result.sentence


@pytest.mark.parametrize("name", ["single", "allclose"])
def test_other_standards(name):
    # Not the ordinary values: half a step of a subnormal is more than single allows.
    results = run_of(Wrong(lambda case, y: y), plain_cases("uniform"), Standard(name))
    for r in results:
        if r.case.dtype == "DOUBLE" and name == "single":
            assert r.status == "left out"
        else:
            assert r.status == "passed", r.sentence


def test_instruction_sets_that_differ_are_found():
    """Within the promise, but not the same bits."""

    def up(case, y):
        return np.nextafter(y, y + 1) if y.dtype == np.float64 else y

    cases = [c for c in plain_cases() if c.op.python == "elu"]
    one, two = Wrong(lambda case, y: y), Wrong(up)
    one.name, two.name = "openaclnn:v2", "openaclnn:v3"
    results = Runner([one, two], Standard(ulp=4)).run(cases, lambda case, done: None)
    found = {(r.provider, r.case.dtype): r for r in results if r.status == "failed"}
    assert set(found) == {("openaclnn:v3", "DOUBLE")}
    assert found["openaclnn:v3", "DOUBLE"].kind == "differs"
    assert found["openaclnn:v3", "DOUBLE"].sentence == "the bits are not those of openaclnn:v2"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("rich", [True, False])
def test_progress_has_rate_and_time_left_on_a_terminal(rich, monkeypatch):
    """The bar of rich, or a line without it; both disappear at the end."""
    if rich:
        pytest.importorskip("rich")
        monkeypatch.setenv("COLUMNS", "120")
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.delenv("NO_COLOR", raising=False)
    else:
        monkeypatch.setitem(sys.modules, "rich.progress", None)
    now = [100.0]
    monkeypatch.setattr("openaclnn.verify.progress.time.monotonic", lambda: now[0])
    stream = Terminal()
    shown = progress(stream, 2_000)
    assert type(shown).__name__ == ("Bar" if rich else "Line")
    for done in (1_000, 1_100, 1_200):  # a resumed run: 100 cases a second
        shown.advance("elu FLOAT", done)
        now[0] += 1.0
    shown.advance("elu FLOAT16", 1_300)
    if rich:
        shown._bar.refresh()
    shown.close()
    text = stream.getvalue()
    assert "1,300 of 2,000" in text
    assert "elu FLOAT16" in text
    assert "100/s" in text
    assert re.search(r"0:00:\d\d" if rich else r"7 s left", text)
    assert text.endswith(("\x1b[2K", "\r\033[K", "\x1b[?25h"))


def test_progress_in_a_file(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("openaclnn.verify.progress.time.monotonic", lambda: now[0])
    stream = io.StringIO()
    shown = progress(stream, 2_000)
    for done in range(0, 700, 50):  # half a minute
        shown.advance("elu FLOAT" if done < 300 else "elu FLOAT16", done)
        now[0] += 2.0
    shown.close()
    assert stream.getvalue() == (
        " 12%  250 of 2,000  elu FLOAT  25/s, 70 s left\n"
        " 25%  500 of 2,000  elu FLOAT16  25/s, 60 s left\n"
    )
