# SPDX-License-Identifier: Apache-2.0
"""What `openaclnn bench` measures with: its inputs, and which samples count."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from tests.support import all_rows

import openaclnn
from openaclnn.bench import measure, report, timing
from openaclnn.bench.cases import LAYOUTS, Case, Special, arrays
from openaclnn.bench.timing import Samples
from openaclnn.plotting.curves import default_attributes
from openaclnn.report.text_table import Paint
from openaclnn.rows.table import OPS

# ---- data ----


def test_references_draw_numbers():
    """What is timed has no special values: NaN and subnormals may be slower."""
    for op in (row.values[0] if hasattr(row, "values") else row for row in all_rows()):
        for dtype in {"FLOAT", "FLOAT16"} & set(op.dtypes):
            data = arrays(Case(op, dtype, (2, 12, 5, 7), default_attributes(op)))
            assert all(math.isfinite(float(abs(x).max())) for x in data.inputs), op.name


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, monkeypatch):
    monkeypatch.setattr(measure.Loops, "build", lambda: None)  # which starts a compiler
    op = next(op for op in openaclnn.OPS if op.python == "leaky_relu_backward")
    shape = (6, 4, 5) if layout in ("middle", "channels_last") else (6, 5)
    case = Case(op, "FLOAT", shape, default_attributes(op), layout)
    result = measure.Bench(1, 1).measure(case, ["numpy"])
    assert result.differs == ()
    gradient, x = arrays(case).inputs
    assert x.shape == shape
    assert x.flags.c_contiguous == (layout not in ("transposed", "transposed_in", "channels_last"))
    few = {"scalar": (1, 1), "row": (1, 5), "column": (6, 1), "middle": (6, 1, 5)}
    assert gradient.shape == few.get(layout, shape)
    assert result.bytes == 4 * (gradient.size + 2 * x.size)


def test_special_values_and_results_of_the_forward():
    op = next(op for op in openaclnn.OPS if op.python == "elu_backward")
    attributes = default_attributes(op) | {"is_result": True}
    nan = Special("nan", math.nan, 0.2)
    g, y = arrays(Case(op, "FLOAT", (1 << 18,), attributes, special=nan)).inputs
    assert 0.19 < np.isnan(y).mean() < 0.21
    assert np.nanmin(y) >= -1
    assert not np.isnan(g).any()
    nan = Special("nan", math.nan, 0.001, in_gradient=True)
    g, y = arrays(Case(op, "FLOAT", (1 << 18,), attributes, special=nan)).inputs
    assert 0 < np.isnan(g).mean() < 0.002
    assert not np.isnan(y).any()
    assert str(nan) == "0.1% nan in the gradient"


class Shared(timing.Cores):
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
    samples = timing.interleave({"ours": lambda count: 1e-3 * count}, 2, cores)
    assert (cores.samples, cores.repeated, cores.kept) == (2, repeated, kept)
    assert samples.samples["ours"] == [pytest.approx(1e-3)] * 2
    assert cores.summary().startswith(f"2 samples, {repeated} more")


def test_ratios_are_of_rounds():
    """Three ordinary rounds and two slow ones, in which both are slow, and ours more often."""
    samples = Samples({"ours": [1, 2, 2, 1, 2], "torch": [1.5, 3, 3, 1.5, 1.5]})
    assert samples.ratios("ours") == {"ours": 1, "torch": 1.5}
    assert samples.ratios("numpy") == {}


def test_a_copy_that_fits_the_cache_is_no_measure(monkeypatch):
    """Not at the speed of memory, so its share is left out."""
    op = next(op for op in OPS if op.python == "elu")
    times = {name: measure.Time(1e-6, 1e-6, 1e-6) for name in ("ours", "copy")}
    case = Case(op, "FLOAT", (1024,), default_attributes(op))
    one = measure.Result(case, 8192, times, {"copy": 0.5}, ())
    for size, share in ((0, "50 %"), (8192, "–")):
        monkeypatch.setattr(report, "cache_bytes", lambda size=size: size)
        assert report.lines([one], "none", Paint(io.StringIO()))[-1].endswith(share)
