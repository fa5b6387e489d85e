# SPDX-License-Identifier: Apache-2.0
"""docs/performance.md is what benchmarks/results say; a bar that is not met says so."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import group_norm_report
import page
from cells import Cell
from group_norm_report import FORWARD, GRADIENT, LARGEST
from group_norm_report import Cell as GroupNormCell
from mixes import Mix, attribute_sets, mixes_of
from report import Result, median_of
from report_bars import bars, bars_text, slow_ones

import openaclnn
from openaclnn.bench.measure import Cores, Samples, interleave
from openaclnn.reference.evaluation import REFERENCES

SIZES = {"64Ki": 1 << 16, "1Mi": 1 << 20, "64Mi": 1 << 26}


def results(torch: float = 2.5, streaming: float = 0.95) -> list[Result]:
    seconds = {"ours": 1.0, "torch": torch, "streaming": streaming}
    return [
        Result(op, dtype, size, layout, elements, 8 * elements, seconds, seconds, [])
        for op in ("logit", "elu_backward")
        for dtype in ("fp32", "bf16")
        for size, elements in SIZES.items()
        for layout in ("contiguous", "transposed")
    ]


def test_ratios_are_of_rounds():
    """Three ordinary rounds and two slow ones, in which both are slow, and ours more often."""
    samples = Samples({"ours": [1, 2, 2, 1, 2], "torch": [1.5, 3, 3, 1.5, 1.5]})
    assert samples.medians() == {"ours": 2, "torch": 1.5}
    assert samples.ratios("ours") == {"ours": 1, "torch": 1.5}
    assert samples.ratios("numpy") == {}


def test_of_several_runs_each_figure_is_the_median():
    """The second run has a slow cell, and the third saw a backend differ."""
    first = replace(results()[0], seconds={"ours": 1, "torch": 2}, ratios={"ours": 1, "torch": 2})
    second = replace(first, seconds={"ours": 9, "torch": 3}, ratios={"ours": 1, "torch": 0.3})
    third = replace(first, seconds={"ours": 2, "torch": 4}, differs=["torch"])
    found = median_of([first, second, third])
    assert found.seconds == {"ours": 2, "torch": 3}
    assert found.ratios == {"ours": 1, "torch": 2}
    assert (found.name, found.differs) == (first.name, ["torch"])


def test_the_page_says_how_many_runs():
    about = {"runs": 3, "rounds": 5}
    assert page.method(about) == "Medians of 5 rounds in each of 3 runs."
    assert page.method({"rounds": 5}) == "Medians of 5 rounds."
    text = "Medians of 5 rounds. 2 cells broke a bar or came close and were measured twice more: "
    assert page.method({"rounds": 5, "measured_three_times": 2}) == text + "medians of the three."


class Shared(Cores):
    """CPUs that are slow at these moments."""

    def __init__(self, slow: set[int]) -> None:
        self.moments, self.slow, self.shortest = -1, slow, 1.0
        self.samples = self.repeated = self.kept = 0

    def arithmetic(self) -> float:
        self.moments += 1
        return 1.7 if self.moments in self.slow else 1.05


@pytest.mark.parametrize(
    ("slow", "repeated", "kept"),
    [(set(), 0, 0), ({0}, 0, 0), ({2}, 1, 0), ({1, 2, 3}, 1, 0), (set(range(99)), 0, 2)],
    ids=str,
)
def test_samples_beside_a_slow_core_are_taken_again(slow, repeated, kept):
    """Moment 0 is before the first sample; a sample or a pause is between two. Two samples are
    wanted; four more samples or pauses may be."""
    cores = Shared(slow)
    samples = interleave({"ours": lambda count: 1e-3 * count}, 2, cores)
    assert (cores.samples, cores.repeated, cores.kept) == (2, repeated, kept)
    assert samples.samples["ours"] == [pytest.approx(1e-3)] * 2
    assert cores.summary().startswith(f"2 samples, {repeated} more")


def test_the_page_is_what_the_results_say():
    assert page.PAGE.read_text() == page.page(), "run benchmarks/page.py"
    for suffix in (".png", ".svg"):
        assert (page.PLOTS / page.PICTURE).with_suffix(suffix).stat().st_size > 0


def test_bars_that_are_met():
    found = bars(results())
    assert len(found) == 6
    assert all(bar.met for bar in found), bars_text(found)


@pytest.mark.parametrize(
    ("changed", "unmet"),
    [
        (results(torch=1.6), ["geometric mean against torch", "elu_backward", "logit"]),
        (results(streaming=0.8), ["share of the streaming loop"]),
        ([replace(r, ratios={"ours": 1.0, "torch": 1.4}) for r in results()],
         ["geometric mean against torch, broadcast and transposed"]),
    ],
)  # fmt: skip
def test_bars_that_are_not(changed, unmet):
    missed = [bar.what for bar in bars(changed) if not bar.met]
    for what in unmet:
        assert any(name.startswith(what) for name in missed), missed


def test_a_slow_cell_is_named():
    slow = results()
    slow[0] = replace(slow[0], ratios={"ours": 1.0, "torch": 0.9})
    assert bars(slow)[0].found == "1 of 12: logit fp32 64Ki 0.90x"
    assert not bars(slow)[0].met


def beside(after: float, alone: float) -> Result:
    ratios = {"ours": 1.0, "torch": after, "ours_alone": 0.5, "torch_alone": 0.5 * alone}
    call = "logit_grad", "fp32", "1Mi", "after_torch", 1 << 20, 12 << 20
    return Result(*call, ratios, ratios, [], "is_result=True")


def test_the_bar_right_after_torch():
    """Below 0.9x is a cell that loses it beside torch, not one that has not got it alone."""
    (bar,) = bars([beside(0.95, 2.0), beside(0.8, 0.85)])
    assert bar.met
    (bar,) = bars([beside(0.95, 2.0), beside(0.8, 0.95)])
    assert not bar.met
    assert bar.found == "1 of 2: logit_grad is_result=True fp32 1Mi 0.80x (alone 0.95x)"


def cells(times: float = 7.0, share: float = 0.65) -> list[GroupNormCell]:
    ratios = {"ours": 1.0, "torch": times, "recomputed": times, "streaming": share}
    return [
        GroupNormCell(op, shape, "fp32", "contiguous", 1 << 20, 1 << 15, ratios, ratios, [])
        for op in (FORWARD, GRADIENT)
        for shape in (LARGEST, "1x32x8x8/8")
    ]


def test_bars_of_group_norm():
    assert [bar.met for bar in group_norm_report.bars(cells())] == [True] * 9
    slow = {bar.what: bar.found for bar in group_norm_report.bars(cells(0.9, 0.55)) if not bar.met}
    assert len(slow) == 8  # but for the workspace
    assert slow[f"{GRADIENT}, cells slower than torch"].startswith(f"2 of 2: {LARGEST} fp32 0.90x")
    for op in (FORWARD, GRADIENT):
        assert slow[f"{op} {LARGEST} fp32, share of the streaming loop"] == "55%"


def every(ratio: float, times: float) -> list[Result]:
    """Attributes and special values: one cell each has this ratio, one takes so many times."""

    def cell(layout: str, flags: str, mix: str, torch: float, ours: float = 1.0) -> Result:
        seconds = {"ours": ours, "torch": torch * ours}
        call = "logit", "fp32", "1Mi", layout, 1 << 20, 8 << 20
        return Result(*call, seconds, {"ours": 1.0, "torch": torch}, [], flags, mix)

    return [
        cell("attributes", "eps=-1", "", 8.0),
        cell("attributes", "eps=0.5", "", ratio),
        cell("mixes", "eps=-1", "ordinary", 2.0),
        cell("mixes", "eps=-1", "0.1% nan", 2.0, times),
        cell("mixes", "eps=-1", "20% nan", ratio, 9.0),
    ]


def test_bars_of_attributes_and_special_values():
    assert [bar.met for bar in bars(every(1.0, 1.9))] == [True] * 4
    found = {bar.what: bar.found for bar in bars(every(0.5, 2.1)) if not bar.met}
    assert list(found.values()) == [
        "1 of 2: logit eps=0.5 fp32 1Mi 0.50x",
        "2.00x",
        "1 of 2: logit eps=-1 20% nan fp32 1Mi 0.50x",
        "1 of 1: logit eps=-1 0.1% nan fp32 1Mi 2.10 times",
    ]


def test_cells_to_be_measured_again_break_the_bar_of_a_cell():
    assert slow_ones(dict(enumerate(every(0.95, 2.0)))) == []
    assert slow_ones(dict(enumerate(every(0.94, 2.1)))) == [1, 3, 4]
    assert slow_ones({7: beside(0.9, 2.0)}) == [7]


def test_a_bar_names_the_slowest_cells():
    """Rounded away from the bar, so that no cell below 0.9x reads 0.90x."""
    slow = every(1.0, 1.0) + [
        replace(r, ratios={"ours": 1.0, "torch": 0.8999 - 0.01 * i})
        for i, r in enumerate(10 * every(1.0, 1.0)[4:])
    ]
    (found,) = (bar.found for bar in bars(slow) if not bar.met)
    assert found.startswith("10 of 12: logit eps=-1 20% nan fp32 1Mi 0.80x, ")
    assert found.endswith("0.87x and 2 more")


def test_every_row_has_its_defaults_and_special_values():
    """The first set of attributes is the defaults of the row, where it has any."""
    for op in (op for op in openaclnn.OPS if op.pointwise):
        first, *others = attribute_sets(op)
        given = {p.python_name: p.default for p in op.attributes if p.default is not None}
        assert given.items() <= first.items()
        assert len(others) + 1 >= len(REFERENCES[op.kernel].attributes)
        for dtype in ("fp32", "bf16", "fp16"):
            ordinary, *special = mixes_of(op, dtype)
            assert str(ordinary) == "ordinary"
            assert {mix.share for mix in special} == {0.001, 0.2}
            assert {"0", "-0", "1", "inf", "-inf", "nan", "subnormal"} <= {m.name for m in special}


def test_special_values_are_in_the_data():
    op = next(op for op in openaclnn.OPS if op.python == "logit_grad")
    cell = Cell(op, "mixes", "fp32", 1 << 16, {}, Mix("nan", math.nan, 0.2))
    assert 0.19 < np.isnan(cell.inputs["x"]).mean() < 0.21
    assert not np.isnan(cell.inputs["dy"]).any()
    expected = cell.computed(cell.call("ours", {}, cell.attributes)).copy()
    assert cell.agrees(expected)
    cell.poison()
    assert not cell.spots_agree(expected)  # though NaN agrees with NaN
    cell.result[:] = expected
    cell.result[np.isnan(expected)] = 1
    assert not cell.agrees(expected)


def test_the_picture_is_drawn(tmp_path: Path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from heatmap import draw

    draw([*results(), *every(0.5, 1.0)], tmp_path / "plot")
    once = (tmp_path / "plot.svg").read_text()
    for text in ("elu_backward", "first attributes", "20% special", "0.50x logit eps=0.5 fp32 1Mi"):
        assert text in once
    assert (tmp_path / "plot.png").stat().st_size > 10_000
    draw([*results(), *every(0.5, 1.0)], tmp_path / "plot")
    assert (tmp_path / "plot.svg").read_text() == once
