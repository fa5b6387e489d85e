# SPDX-License-Identifier: Apache-2.0
"""`openaclnn bench`: what is measured, records and their comparison, and sentences. No test looks
at how long something took."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from tests.support import all_rows

import openaclnn
from openaclnn.bench import measure, timing
from openaclnn.bench.baseline import Baseline
from openaclnn.bench.baseline_table import BASELINES
from openaclnn.bench.cases import Case, arrays, ours
from openaclnn.bench.timing import Samples
from openaclnn.commands.cli import main
from openaclnn.plotting.curves import default_attributes
from openaclnn.reference.evaluation import REFERENCES, evaluate

QUICK = ["--rounds", "1", "--threads", "1"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """One call of each candidate a sample; nothing waits, nothing is compiled."""

    def once(candidates, rounds, cores):
        return Samples({name: [run(1) for _ in range(rounds)] for name, run in candidates.items()})

    monkeypatch.setattr(measure, "interleave", once)
    monkeypatch.setattr(measure.Loops, "build", classmethod(lambda cls: None))


def example_of(op):
    """A shape and the sizes that go with it, as words of the command."""
    shape = (3, 5, 7) if op.pointwise else REFERENCES[op.kernel].example
    words = ["--shape", "x".join(map(str, shape))]
    for p in op.attributes:
        if p.name in op.sizes:
            value = REFERENCES[op.kernel].attributes[0][p.python_name]
            words += [f"--{p.python_name.replace('_', '-')}", str(value)]
    return shape, words


def run(words, capsys):
    status = main(["bench", *words])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


@pytest.mark.parametrize("op", all_rows())
@pytest.mark.parametrize("baseline", ["torch", "numpy", "none"])
def test_every_row_beside_every_baseline(op, baseline, capsys):
    if baseline == "torch":
        pytest.importorskip("torch")
    shape, example = example_of(op)
    words = [op.name, *example, "--baseline", baseline, *QUICK, "--json", "-"]
    words += ["--dtype", "fp32", "bf16"] * (baseline != "numpy")
    words += ["--eps", "0.0078125"] * (op.python in ("logit", "logit_grad"))
    status, out, _ = run(words, capsys)
    data = json.loads(out)
    assert status == 0, data
    assert data["rows"][0]["dtype"] == "FLOAT"
    for row in data["rows"]:
        assert row["differs"] == []
        assert set(row["seconds"]) == {"ours", baseline} - {"none"}
        assert all(t["low"] <= t["median"] <= t["high"] for t in row["seconds"].values())
        assert row["gb_per_second"] == row["bytes"] / row["seconds"]["ours"]["median"] / 1e9
    if op.pointwise:
        assert data["rows"][0]["bytes"] == 4 * len(op.tensors) * math.prod(shape)


@pytest.mark.parametrize("op", all_rows())
def test_the_call_that_is_timed_computes_the_operator(op):
    attributes = default_attributes(op)
    case = Case(op, "FLOAT", (2, 12, 5, 7), attributes)
    data = arrays(case)
    due = evaluate(op, [x.copy() for x in data.inputs], attributes)
    ours(case, data, attributes)()
    for found, expected in zip(data.results, due, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_attributes_and_shapes_arrive(capsys):
    words = ["elu", "--alpha", "1.5", "--shape", "2x3", "7", "--baseline", "none", *QUICK]
    _, out, _ = run([*words, "--json", "-"], capsys)
    data = json.loads(out)
    assert data["attributes"] == {"alpha": 1.5, "scale": 1.0, "input_scale": 1.0}
    assert [row["shape"] for row in data["rows"]] == [[2, 3], [7]]
    assert data["about"]["threads"] == 1


def test_in_place_rows_keep_their_data(capsys):
    """With a slope of 0.01, the hundredth call would compute subnormals."""
    _, out, _ = run(["leaky_relu_", "--baseline", "none", *QUICK], capsys)
    assert out.startswith("leaky_relu_ with negative_slope = 1.0\n")


def test_threads_are_what_they_were_afterwards(capsys):
    before = openaclnn.config()["threads"]
    run(["elu", "--shape", "8", "--baseline", "none", "--threads", str(before + 1)], capsys)
    assert openaclnn.config()["threads"] == before


def test_a_baseline_that_computes_something_else_is_reported(capsys, monkeypatch):
    pytest.importorskip("torch")
    wrong = Baseline(lambda torch, t, a: lambda: t["out"].copy_(2 * t["x"]))
    monkeypatch.setitem(BASELINES, "elu", wrong)
    status, out, _ = run(["elu", "--shape", "64", *QUICK], capsys)
    assert status == 1
    assert "(results differ)" in out


def test_a_baseline_that_does_not_write_is_reported(capsys, monkeypatch):
    """Ours are not left in the memory of its results."""
    pytest.importorskip("torch")
    monkeypatch.setitem(BASELINES, "elu", Baseline(lambda torch, t, a: lambda: None))
    assert run(["elu", "--shape", "64", *QUICK], capsys)[0] == 1


@pytest.mark.parametrize("load", [0.0, 3.2])
def test_a_busy_machine_is_noted(load, capsys, monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    _, _, err = run(["elu", "--shape", "64", "--baseline", "none", *QUICK], capsys)
    note = "load average 3.2: the machine is busy, distrust these times"
    assert (note in err) == (load > 1)


@pytest.mark.programs
@pytest.mark.filterwarnings("ignore")  # of the compiler
def test_torch_compile_as_the_baseline(capsys):
    pytest.importorskip("torch")
    words = ["elu", "--shape", "4096", "--baseline", "compiled", *QUICK, "--json", "-"]
    status, out, _ = run(words, capsys)
    assert status == 0
    assert set(json.loads(out)["rows"][0]["seconds"]) == {"ours", "compiled"}


def test_torch_compile_fails(capsys, monkeypatch):
    torch = pytest.importorskip("torch")

    def refuse(*_, **__):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(torch, "compile", lambda function, **_: refuse)
    status, _, err = run(["elu", "--shape", "8", "--baseline", "compiled", *QUICK], capsys)
    assert status == 2
    assert "openaclnn bench: torch.compile: no compiler\n" in err


def test_a_result_of_ours_that_breaks_the_promise_is_not_timed(capsys, monkeypatch):
    monkeypatch.setattr(openaclnn, "elu", lambda x, *rest, out: np.multiply(x, 2, out=out))
    status, out, err = run(["elu", "--shape", "64", "--baseline", "none", *QUICK], capsys)
    assert (status, out) == (2, "")
    assert "elu in FLOAT breaks its promise" in err


def test_the_share_of_a_copy_counts_bytes(capsys, monkeypatch):
    """A gradient moves three arrays, a copy two: it is compared with one and a half copies."""

    class Loops:
        compiler = "none"

        def run(self, kind, inputs, out, threads, slope):
            assert out.ctypes.data % 64 == 0  # or a streaming store is a segmentation fault
            return lambda calls: 1.0 * calls

        def arithmetic(self, threads):
            return 0.0

    monkeypatch.setattr(measure.Loops, "build", classmethod(lambda cls: Loops()))
    for elements in (65, 66, 67, 64):
        shape = str(elements)
        words = ["elu_backward", "--shape", shape, "--baseline", "none", *QUICK, "--json", "-"]
        _, out, _ = run(words, capsys)
    (row,) = json.loads(out)["rows"]
    assert row["seconds"]["copy"]["median"] == 1.5
    assert row["ratios"]["copy"] == pytest.approx(1.5 / row["seconds"]["ours"]["median"])


@pytest.mark.programs
def test_real_rounds_and_loops(capsys, monkeypatch):
    monkeypatch.undo()
    words = ["elu", "--shape", "4096", "--baseline", "none", "--rounds", "2", "--threads", "1"]
    status, out, _ = run([*words, "--json", "-"], capsys)
    (row,) = json.loads(out)["rows"]
    assert status == 0
    assert row["seconds"]["ours"]["median"] > 0
    assert ("copy" in row["seconds"]) == (timing.Loops.build() is not None)


# ---- sweeps and documents ----


def test_sweep(tmp_path, capsys):
    path = tmp_path / "s.json"
    words = ["elu", "--sweep", "1Ki", "8Ki", "--baseline", "numpy", "--dtype", "fp32", "fp16"]
    status, out, _ = run([*words, *QUICK, "--json", str(path)], capsys)
    assert status == 0
    data = json.loads(path.read_text())
    assert [row["shape"] for row in data["rows"]] == 2 * [[1024], [4096], [8192]]
    assert "fp32: GB/s over elements" in out
    assert "fp16: GB/s over elements" in out


def test_sweep_picture(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path = tmp_path / "elu.svg"
    words = ["elu", "--sweep", "1Ki", "4Ki", "--baseline", "numpy", *QUICK, "--out", str(path)]
    assert run(words, capsys)[0] == 0
    assert path.read_text().startswith("<?xml")


def test_a_document_on_standard_output_is_alone(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["elu", "--shape", "64", "--baseline", "none", *QUICK, "--json", "-"]
    status, out, err = run(words, capsys)
    assert status == 0
    assert json.loads(out)["op"] == "elu"
    assert "elu with alpha = 1.0" in err
    assert list(tmp_path.iterdir()) == []


# ---- wrong use ----


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "an operator must be named, or --compare; see:  openaclnn ops"),
        (["elo"], "there is no operator elo; did you mean elu?"),
        (["elu", "--eps", "1"], "elu has no attribute eps; it has alpha, scale, input_scale"),
        (
            ["elu", "--baseline", "cuda"],
            "--baseline must be torch, compiled, numpy or none, but is cuda",
        ),
        (["elu", "--shape", "1024x"], "--shape must be sizes such as 1024x1024, but is 1024x"),
        (["elu", "--shape", "0"], "--shape must be sizes such as 1024x1024, but is 0"),
        (["elu", "--threads", "0"], "--threads must be at least 1, but is 0"),
        (["elu", "--rounds", "0"], "--rounds must be at least 1, but is 0"),
        (["elu", "--dtype", "int8"], "--dtype must be a float dtype"),
        (["elu", "--sweep", "4Ki"], "--sweep takes two sizes or none, but got 1"),
        (["elu", "--sweep", "4Ki", "1Ki"], "--sweep must have the lower size first, but is 4Ki"),
        (["elu", "--sweep", "1", "x"], "a size is a number, or one with Ki or Mi, but got x"),
        (["elu", "--sweep", "--shape", "4"], "--shape and --sweep must not both be given"),
        (["elu", "--out", "x.png"], "--out must come with --sweep"),
        (["elu", "--sweep", "--out", "x.gif"], "--out must be a .png or .svg file, but is x.gif"),
        (["elu", "--json", "no/x.json"], "--json no/x"),
        (["--compare", "a.json", "b.json"], "a.json cannot be read: No such file"),
        (["elu", "--compare", "a", "b"], "--compare takes two files and measures nothing"),
        (["group_norm_swish", "--sweep"], "--sweep needs an operator that takes any shape; group"),
        (
            ["group_norm_swish", "--swish-scale", "2"],
            "--baseline torch computes silu: swish_scale must",
        ),
        (
            ["group_norm_swish", "--shape", "3", "--baseline", "none"],
            "--shape must be (N, C, ...) for group_norm_swish, but is 3",
        ),
        (
            ["group_norm_swish", "--shape", "2x3x4", "--num-groups", "2", "--baseline", "none"],
            "aclnnGroupNormSwish: numGroups must divide the 3 channels of x, but got 2",
        ),
        (
            ["hardshrink", "--dtype", "fp64", "--baseline", "none"],
            "aclnnHardshrink: self must have",
        ),
        (["elu", "--shape", "1099511627776", "--baseline", "none"], "--shape 1099511627776 needs "),
    ],
)
def test_wrong_use_is_one_sentence(words, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if any("torch" in w for w in sentence.split()[:2]):
        pytest.importorskip("torch")
    status, out, err = run(words, capsys)
    said = [line for line in err.splitlines() if line.startswith("openaclnn bench: ")]
    assert (status, out, len(said)) == (2, "", 1)
    assert said[0].startswith(f"openaclnn bench: {sentence}")
    assert not Path("-").exists()
