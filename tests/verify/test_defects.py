# SPDX-License-Identifier: Apache-2.0
"""openaclnn verify names the known defects of torch (numerics_peers.md) in what it finds, and
takes nothing else for one of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.support import SEED

from openaclnn.commands.cli import main
from openaclnn.reference.evaluation import evaluate, rounded
from openaclnn.reference.standards import Standard
from openaclnn.verify.cases import from_data
from openaclnn.verify.explanations import known, text
from openaclnn.verify.provider import Outcome
from openaclnn.verify.runner import Runner

OPS = ("elu_backward", "hardshrink", "hardshrink_backward", "logit", "logit_grad",
       "group_norm_swish", "group_norm_swish_grad")  # fmt: skip
# Where each defect explains a finding alone; 4 and 10 are in docs/howto/verify.md.
WHERE = {
    1: {"elu_backward", "hardshrink_backward", "logit_grad"},
    2: {"group_norm_swish_grad"},
    3: {"group_norm_swish_grad"},
    5: {"hardshrink", "hardshrink_backward", "logit", "logit_grad"},
    6: {"logit", "logit_grad"},
    7: {"group_norm_swish", "group_norm_swish_grad"},
    8: {"elu_backward"},
    9: {"group_norm_swish_grad"},
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The findings of a run against torch."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    before = torch.get_num_threads()
    torch.set_num_threads(max(before, 2))  # defect 9 needs two
    file = tmp_path_factory.mktemp("verify") / "torch.json"
    words = [word for op in OPS for word in ("--op", op)]
    try:
        status = main(["verify", "torch", *words, "--quiet", "--json", str(file)])
    finally:
        torch.set_num_threads(before)
    assert status == 1
    return [r for r in json.loads(file.read_text())["results"] if r["status"] == "failed"]


@pytest.mark.programs
@pytest.mark.parametrize("number", WHERE)
def test_torch_s_defects_are_found_and_named(number, found):
    alone = {
        r["case"]["op"]
        for r in found
        if [c["defect"] for c in r["causes"]] == [number] and r["unexplained"] == 0
    }
    seen = {r["case"]["op"] for r in found if number in [c["defect"] for c in r["causes"]]}
    assert alone, f"no finding is explained by defect {number} alone"
    assert seen == WHERE[number]


def test_the_table_is_that_of_the_page():
    page = Path(__file__).parents[2] / "docs" / "reference" / "numerics_peers.md"
    titles = [line for line in page.read_text().splitlines() if line.startswith("## ")]
    for defect, heading in zip(known("torch"), titles[:-1], strict=True):
        assert heading.lower() == f"## {defect.number}. {defect.title.lower()}"
    assert set(WHERE) | {4, 10} == {defect.number for defect in known("torch")}
    assert known("library:./libmine.so") == known("openaclnn:v4") == ()


# ---- what is no known defect ----


class Spoilt:
    """Called torch; the formula's results, but for what `spoil` changes."""

    name = "torch"

    def __init__(self, spoil):
        self.spoil = spoil

    def missing(self, case):
        return ""

    def run(self, case, inputs):
        made = [rounded(y, case.dtype) for y in evaluate(case.op, inputs, case.attributes)]
        self.spoil(made, inputs)
        return Outcome(tuple(made))

    def close(self):
        pass


CASES = [
    {"op": op, "dtype": dtype, "values": "mixed" if "group" not in op else "ordinary"}
    for op in OPS
    for dtype in ("fp32", "fp16")
]


@pytest.mark.parametrize("data", CASES, ids=lambda d: f"{d['op']}-{d['dtype']}")
def test_other_wrong_results_are_not_explained(data):
    """A tenth of the elements is off by a few per cent: no defect of torch predicts that."""
    rng = np.random.default_rng(SEED)
    spoilt = []

    def spoil(made, inputs):
        y = made[0].reshape(-1)
        normal = np.isfinite(y) & (np.abs(y.astype(np.float64)) > 1e-3) & (np.abs(y) < 1e4)
        chosen = np.flatnonzero(normal & (rng.random(y.size) < 0.1))
        y[chosen] = y[chosen] * y.dtype.type(1.05)
        spoilt.append(len(chosen))

    case = from_data({**data, "shape": [2, 12, 7, 5]}, 0)
    (result,) = Runner([Spoilt(spoil)], Standard()).case(case)
    assert spoilt[0] > 20, f"seed {SEED}"
    assert result.status == "failed"
    assert (result.causes, result.unexplained) == ((), spoilt[0]), f"seed {SEED}"
    assert text(result.causes, result.unexplained) == "not explained by a known defect"


def test_elements_are_counted_by_the_defect_that_predicts_them():
    """Two of one, one of none; the defects are made here, without torch."""
    data = {"op": "hardshrink_backward", "dtype": "fp16", "attributes": {"lambd": 0.1}}
    case = from_data({**data, "values": "special"}, 0)
    g, x = case.inputs()
    nan = np.flatnonzero(np.isnan(x) & (g == 1))[:2]
    other = np.flatnonzero((np.abs(x) == 1) & (g == 1))[:1]
    assert (len(nan), len(other)) == (2, 1)

    def spoil(made, inputs):
        made[0][nan], made[0][other] = 0, 7

    (result,) = Runner([Spoilt(spoil)], Standard()).case(case)
    assert [(c.defect.number, c.elements) for c in result.causes] == [(1, 2)]
    assert result.unexplained == 1
    sentence = text(result.causes, result.unexplained)
    assert sentence.startswith("known defect 1, NaN by position (2 of the elements): ")
    assert sentence.endswith("; not explained: 1 of the elements")


def test_no_table_where_no_defect_explains_anything(capsys):
    pytest.importorskip("torch")
    assert main(["verify", "torch", "--op", "hardshrink", "--dtype", "fp32", "--seed", "1"]) == 1
    shown = capsys.readouterr().out
    assert "known defects explain 0 of 2 failed cases" in shown
    assert "explains alone" not in shown
