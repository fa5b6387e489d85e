# SPDX-License-Identifier: Apache-2.0
"""openaclnn.compare with golden values of functions that ATen computes: ten kinds of functions
pass, one wrong element does not, and what cannot be judged is refused with a sentence.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import openaclnn
from openaclnn.aten.prototypes import functions
from openaclnn.commands.cli import main
from openaclnn.golden.values import why_not

torch = pytest.importorskip("torch")
if shutil.which("c++") is None:
    pytest.skip("needs a C++ compiler", allow_module_level=True)
F = torch.nn.functional
RANDOM = torch.Generator().manual_seed(1)


def draw(*shape: int) -> Any:
    return torch.randn(shape, generator=RANDOM)


X, Y = draw(6, 40), draw(6, 40)
IMAGES, FILTERS = draw(2, 3, 9, 9), draw(4, 3, 3, 3)
PLACES = torch.randint(0, 40, (6, 10), generator=RANDOM)
ROWS = torch.randint(0, 6, (9,), generator=RANDOM)
GAMMA, BETA = draw(40), draw(40)


@dataclass(frozen=True)
class Judged:
    """A function, its arguments, and torch's results in a dtype."""

    name: str
    arguments: tuple[Any, ...]
    results: Any  # of the arguments


TABLE = [
    Judged("aclnnSoftmax", (X, 1), torch.softmax),
    Judged("aclnnMatmul", (X, Y.T, 0), lambda a, b, _: a @ b),
    Judged("aclnnAdd", (X, Y, 0.5), lambda a, b, alpha: torch.add(a, b, alpha=alpha)),
    Judged("aclnnReduceSum", (X, [1], False), lambda a, dims, keep: a.sum(dims, keep)),
    Judged("aclnnGather", (X, 1, PLACES), torch.gather),
    Judged("aclnnCat", ([X, Y], 0), torch.cat),
    Judged(
        "aclnnLayerNorm",
        (X, [40], GAMMA, BETA, 1e-5),
        lambda a, *rest: torch.native_layer_norm(a, *rest),
    ),
    Judged(
        "aclnnSort",
        (X, True, 1, False),
        lambda a, stable, dim, down: torch.sort(a, dim=dim, descending=down, stable=stable),
    ),
    Judged("aclnnIndex", (X, [ROWS]), lambda a, indices: a[indices[0]]),
]


def cast(value: Any, dtype: Any) -> Any:
    if isinstance(value, list):
        return [cast(one, dtype) for one in value]
    return value.to(dtype) if torch.is_tensor(value) and value.is_floating_point() else value


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_right_results_pass_and_a_wrong_element_fails(row, dtype):
    if dtype == torch.bfloat16:
        pytest.importorskip("ml_dtypes")
    arguments = [cast(value, dtype) for value in row.arguments]
    found = row.results(*arguments)
    results = [found] if torch.is_tensor(found) else list(found)

    def compared(results: list[Any]) -> Any:
        mine = results[0] if len(results) == 1 else tuple(results)
        return openaclnn.compare(mine, row.name, *arguments)

    assert compared(results), str(compared(results))
    for i, result in enumerate(results):
        wrong = [x.clone() for x in results]
        flat = wrong[i].view(-1)
        at = result.numel() // 2
        flat[at] = flat[at] * 2 + 1
        verdict = compared(wrong)
        assert not verdict
        failed = [one for one in verdict.outputs if not one.verdict.passed]
        assert len(failed) == 1
        assert np.ravel_multi_index(failed[0].worst[0].index, tuple(result.shape)) == at


NUMBERS = np.linspace(-1, 1, 6, dtype=np.float32)
WHOLE = np.arange(6)
REFUSED = {
    "takes self, dim, but dim is missing": ("aclnnSoftmax", NUMBERS),
    "self must be an array or a tensor, but is the number 0: is self missing": ("aclnnSoftmax", 0),
    "dim must not be an array, but has the shape [6]": ("aclnnSoftmax", NUMBERS, NUMBERS),
    "takes self, dim, but got 3 arguments": ("aclnnSoftmax", NUMBERS, 0, 1),
    "dim must be an integer, but got 0.5": ("aclnnSoftmax", NUMBERS, 0.5),
    "cubeMathType must fit 8 bits": ("aclnnMatmul", NUMBERS, NUMBERS, 999),
    "tensors must be a list of arrays": ("aclnnCat", NUMBERS, 0),
    "Dimension out of range": ("aclnnSoftmax", NUMBERS, 7),
    "self must have a real dtype of aclnn": ("aclnnAbs", NUMBERS.astype(np.complex64)),
    "results are random numbers": ("aclnnBernoulli", NUMBERS, 0.5, 1, 1),
    "works in place, and its input is gone; compare with aclnnAdd": (
        "aclnnInplaceAdd", NUMBERS, NUMBERS, 1,
    ),
    "the shape of its result depends on the data": ("aclnnNonzero", NUMBERS),
    "has no float64 form: aclnnTransQuantParamV2: scale must be FLOAT": (
        "aclnnTransQuantParamV2", NUMBERS + 2, NUMBERS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_cannot_be_judged_is_refused(sentence):
    name, *arguments = REFUSED[sentence]
    with pytest.raises((TypeError, ValueError), match=re.escape(sentence)):
        openaclnn.compare(WHOLE if "Param" in name else NUMBERS, name, *arguments)


def test_integers_are_exact_and_flags_too():
    assert openaclnn.compare(WHOLE * 2, "aclnnAdd", WHOLE, WHOLE, 1)
    verdict = openaclnn.compare(WHOLE * 2 + 1, "aclnnAdd", WHOLE, WHOLE, 1)
    assert "6 of 6 elements differ" in str(verdict)
    assert openaclnn.compare(NUMBERS > 0, "aclnnGtScalar", NUMBERS, 0)
    assert not openaclnn.compare(NUMBERS >= 0.2, "aclnnGtScalar", NUMBERS, 0.2)


def test_a_shape_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="aclnnSoftmax: "):
        openaclnn.compare(NUMBERS[:5], "aclnnSoftmax", NUMBERS, 0)


def test_standards_and_benchmarks_can_be_chosen():
    right = torch.softmax(X, 1)
    assert openaclnn.compare(right, "aclnnSoftmax", X, 1, standard="double")
    assert openaclnn.compare(right, "aclnnSoftmax", X, 1, standard="peer", benchmark=right)
    assert openaclnn.compare(right, "aclnnSoftmax", X, 1, ulp=64)
    assert not openaclnn.compare(right, "aclnnSoftmax", X, 1, ulp=0)
    described = openaclnn.compare(right, "aclnnSoftmax", X, dim=1).as_data()
    assert (described["standard"], described["attributes"]) == ("either", {"dim": 1})


def test_terms_that_cancel_leave_their_rounding_errors():
    """An element near 0 is off by no more than others are; one of usual size is not near 0."""
    x = torch.full((2000,), 8.0)

    def judged(near: int, off: float) -> Any:
        """All sums are 16 but a few, which are 0.01 and off by this."""
        y = x.clone()
        y[:near] = -7.99
        mine = x + y + 3e-5
        mine[:near] = (x + y)[:near] + off
        return openaclnn.compare(mine, "aclnnAdd", x, y, 1)

    assert judged(1, 2e-5)
    assert not judged(1, 4e-5)
    assert not judged(9, 2e-5)


def test_most_functions_have_a_golden_value():
    """Functions refused by what their row says."""
    refused = [name for name, row in functions().items() if why_not(row)]
    assert not {row.name for row in TABLE} & set(refused)
    assert len(refused) < len(functions()) / 3


# ---- the command ----


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y = X.clone(), Y.clone()
    x[3, 4:9] = float("inf")
    np.save("x.npy", x)
    torch.save(y, "y.pt")
    np.save("rows.npy", ROWS)
    np.save("softmax.npy", torch.softmax(x, 0))
    torch.save(torch.cat([x, y]), "cat.pt")
    np.save("half.npy", x.half())
    np.save("index.npy", x[ROWS])
    torch.save({"x": x}, "state.pt")
    values, places = torch.sort(y, 1)
    np.save("values.npy", values)
    np.save("places.npy", places)


@pytest.mark.parametrize(
    "words",
    [
        ["softmax.npy", "x.npy", "0", "--op", "aclnnSoftmax"],
        ["softmax.npy", "dim=-2", "x.npy", "--op", "softmax"],
        ["cat.pt", "[x.npy,y.pt]", "0", "--op", "aclnnCat"],
        ["half.npy", "x.npy", "FLOAT16", "--op", "aclnnCast"],
        ["index.npy", "x.npy", "[rows.npy]", "--op", "aclnnIndex"],
        ["values.npy", "places.npy", "y.pt", "true", "1", "false", "--op", "aclnnSort"],
        ["values.npy", "-", "y.pt", "true", "1", "false", "--op", "aclnnSort", "--ulp", "0"],
    ],
    ids=lambda words: words[-1],
)
def test_files_of_results(words, files, capsys):
    assert main(["compare", *words]) == 0, capsys.readouterr()
    assert capsys.readouterr().out.startswith("PASSED aclnn")


def test_wrong_results_have_a_cause_in_text_json_and_page(files, tmp_path, capsys):
    wrong = np.load("softmax.npy")
    wrong[np.isnan(wrong)] = 0
    np.save("wrong.npy", wrong)
    cause = "every wrong element has this in common: the right result is NaN; all such elements"
    command = ["compare", "wrong.npy", "x.npy", "0", "--op", "aclnnSoftmax", "--html", "r.html"]
    assert main(command) == 1
    assert cause in capsys.readouterr().out
    assert cause in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert main([*command, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["outputs"][0]["common"].startswith(cause)


SOFTMAX = ["--op", "aclnnSoftmax"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["softmax.npy", *SOFTMAX], "aclnnSoftmax takes self, dim, but self and dim are missing"),
        (["softmax.npy", "x.npy", *SOFTMAX], "takes self, dim, but dim is missing"),
        (["softmax.npy", "0", "x.npy", *SOFTMAX], "self must be a file, but there is no file 0"),
        (["softmax.npy", "x.npy", "one", *SOFTMAX], "dim must be a number, true or false, but is"),
        (["softmax.npy", "x.npy", "[0]", *SOFTMAX], "dim must be a number, but got [0]"),
        (["softmax.npy", "x.npy", "0", "1", *SOFTMAX], "out, then self, dim, but got 1, too"),
        (["softmax.npy", "x.npy", "dim=0", "dim=1", *SOFTMAX], "but got dim twice"),
        (
            ["softmax.npy", "state.pt", "0", *SOFTMAX],
            "state.pt must hold one tensor, but holds a d",
        ),
        (["x.npy", "x.npy", "x.npy", "--op", "aclnnCat"], "must be files in brackets, as [a.npy,b"),
        (["x.npy", "--op", "aclnnSort"], "takes values, indices, then self, stable"),
        (["x.npy", "x.npy", "--op", "aclnnSoftmx"], "there is no operator aclnnSoftmx; did you me"),
    ],
)
def test_wrong_words_are_refused_with_a_sentence(words, sentence, files, capsys):
    assert main(["compare", *words]) == 2
    printed = capsys.readouterr().err
    assert sentence in printed
    assert printed.count("\n") == 1
