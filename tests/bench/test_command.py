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
from tests.browser import CHROMIUM, CONTRAST, NEEDED, Browser
from tests.support import all_rows

import openaclnn
from openaclnn.bench import measure, running
from openaclnn.bench.measure import Samples
from openaclnn.bench.peers import PEERS
from openaclnn.bench.tensors import ours, tensors
from openaclnn.commands.cli import main
from openaclnn.plotting.curves import default_attributes
from openaclnn.reference.evaluation import REFERENCES, evaluate

QUICK = ["--rounds", "1", "--threads", "1"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """One call of each candidate a sample; nothing waits, nothing is compiled."""

    def once(candidates, rounds, cores):
        return Samples({name: [run(1) for _ in range(rounds)] for name, run in candidates.items()})

    monkeypatch.setattr(running, "interleave", once)
    monkeypatch.setattr(running.Loops, "build", classmethod(lambda cls: None))


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
@pytest.mark.parametrize("peer", ["torch", "numpy", "none"])
def test_every_row_beside_every_peer(op, peer, capsys):
    if peer == "torch":
        pytest.importorskip("torch")
    if PEERS[op.python].numpy is None and peer == "numpy":
        pytest.skip("has no such peer; a test of sentences has it")
    shape, example = example_of(op)
    words = [op.name, *example, "--peer", peer, *QUICK, "--json", "-"]
    words += ["--dtype", "fp32", "bf16"] * (peer != "numpy")
    words += ["--eps", "0.0078125"] * (op.python in ("logit", "logit_grad"))
    status, out, _ = run(words, capsys)
    data = json.loads(out)
    assert status == 0, data
    assert data["rows"][0]["dtype"] == "FLOAT"
    for row in data["rows"]:
        assert row["differs_from_peer"] is False
        assert set(row["seconds"]) == {"ours", peer} - {"none"}
        assert all(t["low"] <= t["median"] <= t["high"] for t in row["seconds"].values())
        assert row["gb_per_second"] == row["bytes"] / row["seconds"]["ours"]["median"] / 1e9
    if op.pointwise:
        assert data["rows"][0]["bytes"] == 4 * len(op.tensors) * math.prod(shape)


@pytest.mark.parametrize("op", all_rows())
def test_the_call_that_is_timed_computes_the_operator(op):
    attributes = default_attributes(op)
    inputs, results = tensors(op, (2, 12, 5, 7), "FLOAT", attributes)
    due = evaluate(op, [x.copy() for x in inputs], attributes)
    ours(op, inputs, results, attributes)()
    for found, expected in zip(results, due, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_attributes_and_shapes_arrive(capsys):
    words = ["elu", "--alpha", "1.5", "--shape", "2x3", "7", "--peer", "none", *QUICK]
    _, out, _ = run([*words, "--json", "-"], capsys)
    data = json.loads(out)
    assert data["attributes"] == {"alpha": 1.5, "scale": 1.0, "input_scale": 1.0}
    assert [row["shape"] for row in data["rows"]] == [[2, 3], [7]]
    assert data["about"]["threads"] == 1


def test_in_place_rows_keep_their_data(capsys):
    """With a slope of 0.01, the hundredth call would compute subnormals."""
    _, out, _ = run(["leaky_relu_", "--peer", "none", *QUICK], capsys)
    assert out.startswith("leaky_relu_ with negative_slope = 1.0\n")


def test_threads_are_what_they_were_afterwards(capsys):
    before = openaclnn.config()["threads"]
    run(["elu", "--shape", "8", "--peer", "none", "--threads", str(before + 1)], capsys)
    assert openaclnn.config()["threads"] == before


def test_a_peer_that_computes_something_else_is_reported(capsys, monkeypatch, tmp_path):
    peer = PEERS["elu"]
    wrong = type(peer)(peer.torch, lambda t, a: lambda: np.multiply(t["x"], 2, out=t["out"]))
    monkeypatch.setitem(PEERS, "elu", wrong)
    page = tmp_path / "bench.html"
    words = ["elu", "--shape", "64", "--peer", "numpy", *QUICK, "--html", str(page)]
    status, out, _ = run(words, capsys)
    assert status == 1
    assert "(results differ)" in out
    assert "results of numpy differ from ours" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("load", [0.0, 3.2])
def test_a_busy_machine_is_noted_on_the_page(load, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    page = tmp_path / "bench.html"
    words = ["elu", "--shape", "64", "--peer", "none", *QUICK, "--html", str(page)]
    _, _, err = run(words, capsys)
    note = "load average 3.2: the machine is busy, distrust these times"
    assert (note in err) == (note in page.read_text(encoding="utf-8")) == (load > 1)


def test_a_result_of_ours_that_breaks_the_promise_is_not_timed(capsys, monkeypatch):
    monkeypatch.setattr(openaclnn, "elu", lambda x, *rest, out: np.multiply(x, 2, out=out))
    status, out, err = run(["elu", "--shape", "64", "--peer", "none", *QUICK], capsys)
    assert (status, out) == (2, "")
    assert "elu in FLOAT breaks its promise" in err


def test_the_share_of_a_copy_counts_bytes(capsys, monkeypatch):
    """A gradient moves three arrays, a copy two: it is compared with one and a half copies."""

    class Loops:
        compiler = "none"

        def run(self, kind, inputs, out, threads, slope):
            return lambda calls: 1.0 * calls

        def arithmetic(self, threads):
            return 0.0

    monkeypatch.setattr(running.Loops, "build", classmethod(lambda cls: Loops()))
    words = ["elu_backward", "--shape", "64", "--peer", "none", *QUICK, "--json", "-"]
    _, out, _ = run(words, capsys)
    (row,) = json.loads(out)["rows"]
    assert row["seconds"]["copy"]["median"] == 1.5
    assert row["ratios"]["copy"] == pytest.approx(1.5 / row["seconds"]["ours"]["median"])


@pytest.mark.programs
def test_real_rounds_and_loops(capsys, monkeypatch):
    monkeypatch.undo()
    words = ["elu", "--shape", "4096", "--peer", "none", "--rounds", "2", "--threads", "1"]
    status, out, _ = run([*words, "--json", "-"], capsys)
    (row,) = json.loads(out)["rows"]
    assert status == 0
    assert row["seconds"]["ours"]["median"] > 0
    assert ("copy" in row["seconds"]) == (measure.Loops.build() is not None)


# ---- sweeps and documents ----


@pytest.fixture
def sweep(tmp_path, capsys):
    files = {name: tmp_path / f"s.{name}" for name in ("json", "html")}
    words = ["elu", "--sweep", "1Ki", "8Ki", "--peer", "numpy", "--dtype", "fp32", "fp16", *QUICK]
    words += [w for name, path in files.items() for w in (f"--{name}", str(path))]
    status, out, _ = run(words, capsys)
    assert status == 0
    return files, out


def test_sweep(sweep):
    files, out = sweep
    data = json.loads(files["json"].read_text())
    assert [row["shape"] for row in data["rows"]] == 2 * [[1024], [4096], [8192]]
    assert "fp32: GB/s over elements" in out
    assert "fp16: GB/s over elements" in out


def test_sweep_picture(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path = tmp_path / "elu.svg"
    words = ["elu", "--sweep", "1Ki", "4Ki", "--peer", "numpy", *QUICK, "--out", str(path)]
    assert run(words, capsys)[0] == 0
    assert path.read_text().startswith("<?xml")


@pytest.mark.programs
@pytest.mark.skipif(CHROMIUM is None, reason=NEEDED)
def test_the_page_in_a_browser(sweep, tmp_path):
    page = sweep[0]["html"]
    browser = Browser(tmp_path / "profile")
    try:
        browser.open(page.as_uri())
        assert browser.run("document.querySelectorAll('figure svg path').length") == 4
        assert browser.run("document.querySelectorAll('tbody tr').length") == 6
        for scheme in ("light", "dark"):
            browser.scheme(scheme)
            ratio, element = browser.run(CONTRAST)[0]
            assert ratio >= 4.5, (scheme, element)
        browser.size(400, 800)
        assert browser.run("document.documentElement.scrollWidth") <= 400
        heard = [n["name"] for n in browser.accessible() if n["role"] in ("image", "img")]
        assert heard == ["elu in fp32, GB/s", "elu in fp16, GB/s"]
        assert (browser.errors, browser.requests) == ([], [page.as_uri()])
    finally:
        browser.close()


@pytest.mark.parametrize("name", ["json", "html"])
def test_a_document_on_standard_output_is_alone(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["elu", "--shape", "64", "--peer", "none", *QUICK, f"--{name}", "-"]
    status, out, err = run(words, capsys)
    assert status == 0
    assert out.startswith("{" if name == "json" else "<!doctype html>")
    assert out.rstrip().endswith("}" if name == "json" else "</html>")
    assert "elu with alpha = 1.0" in err
    assert list(tmp_path.iterdir()) == []


# ---- wrong use ----


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "an operator must be named, or --compare; see:  openaclnn ops"),
        (["elo"], "there is no operator elo; did you mean aclnnElu?"),
        (["elu", "--eps", "1"], "elu has no attribute eps; it has alpha, scale, input_scale"),
        (["elu", "--peer", "cuda"], "--peer must be torch, numpy or none, but is cuda"),
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
        (["elu", "--json", "-", "--html", "-"], "--json and --html must not both be -"),
        (["elu", "--json", "no/x.json"], "--json no/x"),
        (["--compare", "a.json", "b.json"], "a.json is not a JSON file: "),
        (["elu", "--compare", "a", "b"], "--compare takes two files and measures nothing"),
        (["group_norm_swish", "--sweep"], "--sweep needs an operator that takes any shape; group"),
        (["group_norm_swish", "--peer", "numpy"], "--peer numpy has no group_norm_swish; there"),
        (
            ["group_norm_swish", "--swish-scale", "2"],
            "--peer torch computes silu: swish_scale must",
        ),
        (
            ["group_norm_swish", "--shape", "3", "--peer", "none"],
            "--shape must be (N, C, ...) for group_norm_swish, but is 3",
        ),
        (
            ["group_norm_swish", "--shape", "2x3x4", "--num-groups", "2", "--peer", "none"],
            "aclnnGroupNormSwish: numGroups must divide the 3 channels of x, but got 2",
        ),
        (["hardshrink", "--dtype", "fp64", "--peer", "none"], "aclnnHardshrink: self must have"),
        (["elu", "--shape", "1099511627776", "--peer", "none"], "--shape 1099511627776 needs "),
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


def test_references_draw_numbers():
    """What is timed has no special values: NaN and subnormals have speeds of their own."""
    for op in (row.values[0] if hasattr(row, "values") else row for row in all_rows()):
        inputs, _ = tensors(op, (2, 12, 5, 7), "FLOAT", default_attributes(op))
        assert all(math.isfinite(float(abs(x).max())) for x in inputs), op.name
        assert REFERENCES[op.kernel].domain
