# SPDX-License-Identifier: Apache-2.0
"""`openaclnn verify --op` with functions that ATen computes: eleven kinds of functions pass, a
library with a mistake does not, and what cannot be judged is refused with a sentence.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from openaclnn.aten.prototypes import functions
from openaclnn.commands.cc import compile_command
from openaclnn.commands.cli import main
from openaclnn.golden.cases import generate
from openaclnn.golden.samples import samples
from openaclnn.golden.values import why_not
from openaclnn.rows.table import ANY, PRODUCTS

SOURCE = Path(__file__).with_name("softmax.c")
NAMES = [
    "aclnnSoftmax", "aclnnMatmul", "aclnnAdd", "aclnnReduceSum", "aclnnGather", "aclnnCat",
    "aclnnLayerNorm", "aclnnSort", "aclnnConvolution", "aclnnIndex", "aclnnSlogdet",
]  # fmt: skip
needs_aten = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")


def verified(provider: str, *options: str) -> tuple[int, dict[str, object]]:
    pytest.importorskip("torch")
    status = main(["verify", provider, "--quiet", "--json", "report.json", *options])
    return status, json.loads(Path("report.json").read_text(encoding="utf-8"))


@pytest.mark.programs
@needs_aten
@pytest.mark.parametrize("name", NAMES)
def test_openaclnn_passes(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    status, report = verified("openaclnn", "--op", name, "--dtype", "fp32")
    assert status == 0, capsys.readouterr().out
    assert Counter(r["status"] for r in report["results"]).keys() == {"passed"}
    assert len(report["results"]) >= 10


# Text of the kernel, what stands there instead, kind and cause of a finding.
MISTAKES = {
    "none": ("", "", None, ""),
    "ignores dim": ("dim < 0 ? dim + (int64_t)p.x.rank : dim", "(int64_t)p.x.rank - 1", "wrong",
                    "where dim is not 2"),
    "ignores strides": ("step = p->x.strides[p->dim]", "step = 1", None,
                        "where the dims of a tensor are permuted in memory"),
    "half the sum": ("/ sum", "/ sum * 1.01f", "wrong", ""),
    "one too many": ("k < n; ++k) out", "k <= n; ++k) out", "damaged", ""),
    "always refuses": ("  *workspaceSize = 0;", "  return 161002;", "status", "in every case"),
    "accepts every shape": ("if (!fits)", "if (0)", None,
                            "has the wrong shape, which must be refused"),
    "accepts every dtype": ("if (p.x.dataType != ACL_FLOAT ||", "if (0 &&", None,
                            "has the wrong dtype, which must be refused"),
    "overflows": ("x[k * step] - most", "x[k * step] - 0 * most", "wrong", "with values large: "),
    "wrong status": ("161002, \"out must", "161001, \"out must", "status",
                     "has the wrong shape, which must be refused"),
    "writes the size first": ("  Plan p;\n", "  Plan p;\n  *workspaceSize = 0;\n", "refusal",
                              "which must be refused"),
}  # fmt: skip


@pytest.mark.programs
@needs_aten
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_library_is_judged(mistake, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("torch")
    old, new, kind, cause = MISTAKES[mistake]
    text = SOURCE.read_text(encoding="utf-8")
    assert old in text
    Path("mine.c").write_text(text.replace(old, new), encoding="utf-8")
    words = ["-O1", "-shared", "-fPIC", "mine.c", "-o", "libmine.so", "-lm"]
    subprocess.run(compile_command(words, {}), check=True)
    status, report = verified("library:libmine.so", "--op", "aclnnSoftmax", "--dtype", "fp32")
    found = report["findings"]
    assert status == (mistake != "none"), report
    if mistake != "none":
        assert any(kind in (None, f["kind"]) and cause in f["cause"] for f in found), found
        again = report["findings"][0]["command"].split()[3:]
        assert main(["verify", "library:libmine.so", "--quiet", *again]) == 1
        assert main(["verify", "library:libmine.so", "--quiet", *again, "--html", "r.html"]) == 1
        assert "aclnnSoftmax" in Path("r.html").read_text(encoding="utf-8")


def test_tensors_of_one_shape_have_a_longer_case():
    cases = generate([functions()["aclnnSoftshrink"]], ["FLOAT"], ANY, 1)
    longer = [case for case in cases if case.changed == "for tensors with a dim of 1,031"]
    assert [case.shapes[0][-1] for case in longer] == [1031]
    assert {shape for _, shape, _ in longer[0].tensors()} == set(longer[0].shapes)


def test_functions_of_two_inputs_have_broadcast_cases():
    cases = generate([functions()["aclnnAdd"]], ["FLOAT"], ANY, 1)
    (rows, columns) = (case for case in cases if case.changed.startswith("where inputs are broad"))
    (whole, row), (_, column) = rows.shapes, columns.shapes
    assert row == (1, *whole[1:])
    assert column == (*whole[:-1], 1)
    values = rows.call().given["self"]
    assert values.min() < values.max()  # a sample of zeros would show nothing


REFUSED = {
    "a provider must be openaclnn or library:PATH": ["torch", "--op", "aclnnSoftmax"],
    "no --cases, --list or --exhaustive": ["--op", "aclnnSoftmax", "--list"],
    "--op must name either functions that ATen computes": ["--op", "elu", "--op", "aclnnAdd"],
    "aclnnBernoulli has no golden value: its results are random": ["--op", "aclnnBernoulli"],
    "library:none.so: no such file": ["library:none.so", "--op", "aclnnAdd"],
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_cannot_be_verified_is_refused(sentence, capsys):
    assert main(["verify", *REFUSED[sentence]]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.programs
@needs_aten
def test_a_result_in_the_memory_of_an_input(tmp_path, monkeypatch):
    """Of functions that have an in-place form."""
    monkeypatch.chdir(tmp_path)
    status, report = verified("openaclnn", "--op", "aclnnAdd", "--op", "aclnnExp")
    assert status == 0
    a2 = next(p for p in PRODUCTS if p.key == "A2")
    for name in ("aclnnAdd", "aclnnExp", "aclnnSoftmax"):
        made = generate([functions()[name]], ["FLOAT"], a2, 1)
        assert [c.alias for c in made if c.alias] == ["self"] * 2 * (name != "aclnnSoftmax")
    assert len(report["results"]) > 40


def test_nearly_every_function_has_cases():
    """The others are collectives, and functions of complex numbers."""
    judged = [row for row in functions().values() if not why_not(row)]
    assert sum(not samples(row) for row in judged) < len(judged) / 15


def test_a_product_chooses_the_dtypes():
    row = functions()["aclnnMatmul"]
    every = {case.dtype for case in generate([row], ["FLOAT", "DOUBLE"], ANY, 1)}
    a2 = next(p for p in PRODUCTS if p.key == "A2")
    assert every == {"FLOAT", "DOUBLE"}
    assert {case.dtype for case in generate([row], ["FLOAT", "DOUBLE"], a2, 1)} == {"FLOAT"}
