# SPDX-License-Identifier: Apache-2.0
"""docs/reference/performance.md is what benchmarks/records say; a missed target says so and why."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import bench
import page
from known_misses import KNOWN, reason
from record import BANDWIDTH, Record, collect, load, save
from suites import SUITES, attribute_sets, cases
from targets import LARGEST, verdicts

import openaclnn
from openaclnn.reference.evaluation import REFERENCES


def record(*rows: tuple[tuple[str, ...], list[float]], column: str = "fp32 1Mi", **more) -> Record:
    """Ratios to torch, one column for each."""
    columns = [column, "fp32 16Mi"]
    return Record({}, columns, [{"case": list(c), "torch": r, **more} for c, r in rows])


def test_the_page_is_what_the_records_say():
    assert page.PAGE.read_text() == page.page(), "run benchmarks/page.py"
    for readme in page.READMES:
        text = readme.read_text(encoding="utf-8")
        assert page.with_figures(text) == text, "run benchmarks/page.py"
        assert text.count("<!-- / -->") == len(page.figures())
    for suffix in (".png", ".svg"):
        assert page.PICTURE.with_suffix(suffix).stat().st_size > 0


def test_every_miss_of_the_records_has_a_reason():
    missed = [v.what for name in SUITES for v in verdicts(name, load(name)) if not v.met]
    assert missed
    assert "unknown" not in map(reason, missed)
    assert all(any(what.startswith(start) for what in missed) for start in KNOWN)


def test_of_several_runs_each_value_is_the_median(tmp_path):
    """The second run has a slow case; one case was measured once."""
    labels = ("elu", "defaults")
    measured = [(labels, "fp32 1Mi", {"torch": t, BANDWIDTH: 10.0}) for t in (2.0, 0.3, 2.5)]
    measured += [(labels, "fp32 16Mi", {"torch": 1.5, "compiled": 3.0})]
    found = collect({"date": "today"}, measured)
    assert found.columns == ["fp32 1Mi", "fp32 16Mi"]
    (row,) = found.rows
    assert row == {
        "case": ["elu", "defaults"],
        "torch": [2.0, 1.5],
        BANDWIDTH: [10.0, None],
        "compiled": [None, 3.0],
    }
    assert list(found.ratios("compiled")) == [(3.0, labels, "fp32 16Mi")]
    save("x", found, tmp_path)
    assert load("x", tmp_path) == found
    assert len((tmp_path / "x.jsonl").read_text().splitlines()) == 3


def test_a_case_that_was_not_measured_is_an_empty_field():
    rows = [
        {"case": ["elu"], "torch": [2.0, None], BANDWIDTH: [10.0, None]},
        {"case": ["logit"], BANDWIDTH: [1.0, 1.0]},
    ]
    table = page.table(Record({}, ["fp32 1Mi", "fp64 1Mi"], rows), ("operator",), "torch")
    assert table.splitlines()[2:] == ["| elu | 2.00 (10) |  |"]


# ---- targets ----


def test_default_attributes():
    rows = (("elu",), [4.0, 2.0]), (("logit",), [4.0, 0.94])
    mean, slow = verdicts("elementwise", record(*rows))
    assert (mean.found, mean.met) == ("2.342x", False)
    assert (slow.found, slow.met) == ("1 of 4: logit fp32 16Mi 0.940x", False)
    assert all(v.met for v in verdicts("elementwise", record((("elu",), [3.0, 2.0]))))


def test_attributes():
    rows = [
        (("elu", "alpha=-1"), [0.94, 1.0]),  # the first set is that of the defaults
        (("elu", "alpha=0.5"), [0.93, 1.0]),
        (("elu", "alpha=0"), [0.6, 1.0]),
        (("elu", "alpha=20"), [0.4, 1.0]),
    ]
    usual, other = verdicts("attributes", record(*rows))
    assert usual.found == "2 of 4: elu alpha=0.5 fp32 1Mi 0.930x, elu alpha=-1 fp32 1Mi 0.940x"
    assert other.found == "1 of 4: elu alpha=20 fp32 1Mi 0.400x"


def special(ratio: float, bandwidth: dict[str, float]) -> Record:
    rows = [
        {"case": ["elu", "alpha=1", data], "torch": [ratio], BANDWIDTH: [gbps]}
        for data, gbps in bandwidth.items()
    ]
    return Record({}, ["fp32 1Mi"], rows)


def test_special_values():
    fast = verdicts("special_values", special(0.6, {"ordinary": 1, "0.1% nan": 0.25, "20% 0": 0.1}))
    assert [v.met for v in fast] == [True] * 3
    slow = verdicts("special_values", special(0.5, {"ordinary": 1, "0.1% nan": 0.2, "20% 0": 0.08}))
    assert [v.found for v in slow] == [
        "1 of 1: elu alpha=1 0.1% nan fp32 1Mi 0.500x",
        "1 of 1: elu alpha=1 0.1% nan fp32 1Mi 5.000x",
        "1 of 1: elu alpha=1 20% 0 fp32 1Mi 12.500x",
    ]


@pytest.mark.parametrize("share", [0.6, 0.599])
def test_group_norm(share):
    found = verdicts(
        "group_norm",
        record((("norm", LARGEST), [9.0, 1.0]), column="fp32", streaming=[share, 0.1]),
    )
    assert [v.met for v in found] == [True, True, share == 0.6]
    assert found[-1].found == f"{share:.1%}"


def test_the_worst_cases_are_named():
    rows = [(("elu", str(i)), [0.5 + 0.01 * i, 1.0]) for i in range(12)]
    found = verdicts("elementwise", record(*rows))[1].found
    assert found.startswith("12 of 24: elu 0 fp32 1Mi 0.500x, ")
    assert found.endswith(", 4 more")


# ---- suites ----


def options(**given) -> argparse.Namespace:
    return argparse.Namespace(
        **{"quick": False, "ops": None, "dtypes": None, "sizes": None} | given
    )


@pytest.mark.parametrize("name", SUITES)
def test_suites(name):
    """Every case has its own field in a table with the heads of the suite."""
    items = list(cases(SUITES[name], options()))
    assert len({(item.labels, item.column) for item in items}) == len(items)
    assert {len(item.labels) for item in items} == {len(SUITES[name].labels)}
    assert len(list(cases(SUITES[name], options(quick=True, sizes=["4Ki"])))) < 20
    recorded = {labels[0] for _, labels, _ in load(name).ratios()}
    assert {item.labels[0] for item in items} >= recorded


def test_every_row_has_its_defaults_first():
    for op in (op for op in openaclnn.OPS if op.pointwise):
        first, *others = attribute_sets(op)
        given = {p.python_name: p.default for p in op.attributes if p.default is not None}
        assert given.items() <= first.items()
        assert len(others) + 1 >= len(REFERENCES[op.kernel].attributes)


@pytest.mark.programs
def test_the_runner(tmp_path, capsys):
    pytest.importorskip("torch")
    words = ["special_values", "--quick", "--ops", "elu", "--out", str(tmp_path)]
    assert bench.main(words) == 0
    assert "| elu | alpha=1 scale=1 input_scale=1 | 0.1% 0 | " in capsys.readouterr().out
    assert load("special_values", tmp_path).columns == ["fp32 4Ki"]


def test_the_picture_is_drawn(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from picture import draw

    found = page.cases()
    slowest = page.slowest(found)
    draw(found, slowest, tmp_path / "plot")
    once = (tmp_path / "plot.svg").read_text()
    for text in ("elu_backward", "all attributes", "20% special", slowest[0]):
        assert text in once
    assert (tmp_path / "plot.png").stat().st_size > 10_000
    draw(found, slowest, tmp_path / "plot")
    assert (tmp_path / "plot.svg").read_text() == once
