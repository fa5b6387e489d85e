# SPDX-License-Identifier: Apache-2.0
"""`openaclnn compare`: files of every row, verdicts as exit status, JSON, and sentences."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.support import SEED, all_rows, results

import openaclnn
from openaclnn.commands.cli import main
from openaclnn.reference.evaluation import REFERENCES, sample


def words(op, attributes):
    """The attributes as options of the command."""
    given = {name: value for name, value in attributes.items() if value is not None}
    return [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]


@pytest.mark.parametrize("op", all_rows())
@pytest.mark.parametrize("dtype", ["FLOAT", "BFLOAT16"])
def test_every_row(op, dtype, tmp_path, capsys):
    attributes = REFERENCES[op.kernel].attributes[0]
    inputs = sample(op, REFERENCES[op.kernel].example, dtype, SEED, attributes)
    got = results(op, inputs, attributes)
    files = []
    for i, x in enumerate((*got, *inputs)):
        files.append(str(tmp_path / f"{i}.npy"))
        np.save(files[-1], x)
    command = ["compare", *files, "--op", op.name, *words(op, attributes)]
    command += ["--dtype", "bf16"] * (dtype == "BFLOAT16")
    assert main(command) == 0
    assert capsys.readouterr().out.startswith(f"PASSED {op.name}")
    wrong = got[0].astype(got[0].dtype, copy=True)
    wrong.flat[3] = np.nan if not np.isnan(wrong.flat[3]) else 1
    np.save(files[0], wrong)
    assert main([*command, "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["outputs"][0]["worst"][0]["index"] == [
        int(i) for i in np.unravel_index(3, wrong.shape)
    ]


def test_groups_that_do_not_divide_the_channels_are_not_judged(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.ones((2, 6, 4), np.float32))
    np.save("w.npy", np.ones(6, np.float32))
    command = ["compare", "x.npy", "-", "-", "x.npy", "w.npy", "w.npy", "--op", "group_norm_swish"]
    for groups, what in (("4", "divide the 6 channels of x"), ("0", "be greater than 0")):
        assert main([*command, f"--num-groups={groups}"]) == 2
        must = f"num_groups must {what}, but got {groups}"
        sentence = f"openaclnn compare: group_norm_swish: {must}\n"
        assert capsys.readouterr().err == sentence


def test_calls_that_no_operator_accepts_are_not_judged(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.ones((2, 6, 4), np.float32))
    np.save("w.npy", np.ones(6, np.float32))
    normed = ["x.npy", "-", "-", "x.npy", "w.npy", "w.npy", "--op", "group_norm_swish"]
    gradient = ["x.npy", "x.npy", "x.npy", "--op", "elu_backward", "--scale=1", "--input-scale=1"]
    for command, sentence in (
        ([*normed, "--num-groups=2", "--data-format=NHWC"], 'data_format must be "NCHW" or "ND"'),
        ([*normed, "--num-groups=2", "--swish-scale=inf"], "swish_scale must be finite, but got"),
        ([*gradient, "--alpha", "-1", "--is-result=true"], "alpha must be at least 0 when is_resu"),
    ):
        assert main(["compare", *command]) == 2
        name = command[command.index("--op") + 1]
        assert capsys.readouterr().err.startswith(f"openaclnn compare: {name}: {sentence}")


def test_empty_files_are_not_compared(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.ones((0, 4), np.float32))
    assert main(["compare", "x.npy", "x.npy", "--op", "elu"]) == 2
    assert capsys.readouterr().out.startswith("NOTHING COMPARED aclnnElu")


def test_negative_numbers_are_values(tmp_path, monkeypatch, capsys):
    """Those with an exponent too, which argparse takes for options."""
    monkeypatch.chdir(tmp_path)
    x = np.linspace(-4, 4, 100, dtype=np.float32)
    np.save("x.npy", x)
    for text in ("-1e-3", "-2.5E+1", "-.5e1", "-3", "-inf", "-nan"):
        np.save("y.npy", openaclnn.leaky_relu(x, float(text)))
        command = ["compare", "y.npy", "x.npy", "--op", "leaky_relu", "--negative-slope", text]
        assert main(command) == 0
        assert f"negative_slope = {float(text)}" in capsys.readouterr().out.replace("1e-3", "0.001")
    with pytest.raises(SystemExit):
        main([*command, "-1e"])
    assert "unrecognized arguments: -1e" in capsys.readouterr().err


@pytest.mark.programs
def test_a_reader_that_goes_away_does_not_change_the_verdict(tmp_path):
    """Of a command that had more to print than was read, nobody knows the status."""
    x = np.linspace(-4, 4, 100, dtype=np.float32)
    files = [str(tmp_path / name) for name in ("y.npy", "wrong.npy", "x.npy")]
    for file, array in zip(files, (openaclnn.elu(x), x, x), strict=True):
        np.save(file, array)
    commands = [(["compare", file, files[2], "--op", "elu"], i) for i, file in enumerate(files[:2])]
    for words_, status in (*commands, (["verify", "--op", "elu", "--list"], 141)):
        command = [sys.executable, "-m", "openaclnn", *words_]
        process = subprocess.Popen(
            command,
            env=os.environ | {"PYTHONUNBUFFERED": ""},  # what fits a buffer is printed at the end
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        process.stdout.close()
        with process.stderr as errors:
            assert errors.read() == b""
        assert process.wait() == status


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["y.npy", "--op", "elu"], "elu takes 2 files (out, x), but got 1"),
        (["y.npy", "-", "--op", "elu"], "x must be a file, but is -, which stands for a result"),
        (["y.npy", "y.npy", "--op", "elo"], "there is no operator elo; did you mean elu?"),
        (["y.npy", "no.npy", "--op", "elu"], "no.npy cannot be read: No such file"),
        (["y.npy", "x.txt", "--op", "elu"], "x.txt is not a .npy file: it does not begin"),
        (["y.npy", "y.npy", "--op", "elu", "--eps", "1"], "elu takes x, alpha, scale, input_scale"),
        (["y.npy", "y.npy", "--op", "elu", "--dtype", "int8"], "dtype must be a float dtype"),
        (["y.npy", "y.npy", "--op", "elu", "--standard", "x"], "standard must be one of ours"),
    ],
)
def test_wrong_use_is_one_sentence(given, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("y.npy", openaclnn.elu(np.zeros(3, np.float32)))
    Path("x.txt").write_text("1 2 3\n")
    assert main(["compare", *given]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"openaclnn compare: {sentence}")
    assert printed.count("\n") == 1


def test_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    x = np.linspace(-4, 4, 100, dtype=np.float32)
    np.save("x.npy", x)
    np.save("y.npy", openaclnn.elu(x))
    for file, status, verdict in (("y.npy", 0, "passed"), ("x.npy", 1, "failed")):
        command = ["compare", file, "x.npy", "--op", "elu", "--html"]
        assert main([*command, "page.html"]) == status
        assert capsys.readouterr().out.startswith(f"{verdict.upper()} aclnnElu")
        page = Path("page.html").read_text(encoding="utf-8")
        assert f"<title>openaclnn compare: aclnnElu {verdict}</title>" in page
        assert ("The worst elements" in page, "<td" in page) == (True, True)
    assert main([*command, "missing/page.html"]) == 2
    assert main([*command, "-"]) == 1
    assert capsys.readouterr().out.startswith("<!doctype html>")


def test_a_standard_by_which_a_failed_result_passes_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    x = np.linspace(-4, -0.01, 1000, dtype=np.float32)
    in_float = np.float32(1.67) * (np.float32(1.05) * np.expm1(x))
    np.save("x.npy", x)
    advice = "If the kernel is to compute in FLOAT, judge it by --standard float: it passes\n"
    words = ["x.npy", "--op", "elu", "--alpha", "1.67", "--scale", "1.05"]
    for y, advised in ((in_float, True), (2 * in_float, False)):
        np.save("y.npy", y)
        assert main(["compare", "y.npy", *words]) == 1
        assert capsys.readouterr().out.endswith(advice) == advised
    np.save("y.npy", in_float)
    assert main(["compare", "y.npy", *words, "--standard", "Float"]) == 0
