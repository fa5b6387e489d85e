# SPDX-License-Identifier: Apache-2.0
"""The command openaclnn verify: torch found out, reports, files of cases, sentences."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import openaclnn
from openaclnn.commands.cli import main
from openaclnn.rows.catalogue import shortest
from openaclnn.verify.cases import SCHEMA


@pytest.mark.programs
def test_torch_is_found_where_it_is_wrong(tmp_path, capsys):
    """Two of the known defects (numerics_peers.md): attributes rounded to the dtype of the
    tensor, and products that overflow on the way."""
    pytest.importorskip("torch")
    file = tmp_path / "cases.json"
    text = {
        "schema": SCHEMA,
        "cases": [
            {"id": "eps", "op": "logit", "dtype": "bf16", "attributes": {"eps": 1e-3},
             "values": "special"},
            {"id": "alpha", "op": "elu_backward", "dtype": "fp32", "attributes": {"alpha": 1e10},
             "values": "bits", "shape": [1 << 16]},
            {"id": "good", "op": "leaky_relu", "dtype": "fp16", "shape": [3, 5]},
        ],
    }  # fmt: skip
    file.write_text(json.dumps(text), encoding="utf-8")
    report = tmp_path / "report.json"
    command = ["verify", "torch", "--cases", str(file), "--json", str(report), "--quiet"]
    assert main(command) == 1
    printed = capsys.readouterr().out
    by_id = {r["id"]: r for r in json.loads(report.read_text(encoding="utf-8"))["results"]}
    assert by_id["good"]["status"] == "passed"
    assert by_id["eps"]["worst"][0]["got"]["value"] in ("inf", "-inf")
    assert by_id["alpha"]["kind"] == "wrong"
    again = by_id["eps"]["command"]
    assert again in printed
    assert main(again.split()[1:]) == 1
    assert "1 of 1 FAILED" in capsys.readouterr().out


@pytest.mark.programs
def test_the_double_benchmark_of_torch(capsys):
    pytest.importorskip("torch")
    command = ["verify", "openaclnn", "--op", "elu", "--dtype", "fp32", "--quiet"]
    main([*command, "--standard", "double", "--benchmark", "torch"])
    assert "double benchmark, L1" in capsys.readouterr().out
    assert main([*command, "--standard", "double", "--benchmark", "openaclnn"]) == 0


@pytest.mark.programs
def test_two_providers_against_each_other(capsys):
    pytest.importorskip("torch")
    command = ["verify", "openaclnn", "--op", "logit", "--dtype", "fp32", "--quiet"]
    peer = [*command, "--standard", "peer"]
    assert main([*peer, "--benchmark", "openaclnn"]) == 0
    assert "at most 0 ulp from the benchmark" in capsys.readouterr().out
    assert main([*peer, "--benchmark", "torch"]) == 1  # the formula would be kept by openaclnn
    assert "ulp from the benchmark's" in capsys.readouterr().out
    assert main([*command, "--benchmark", "torch"]) == 2
    sentence = "benchmark must come with standard double, either or peer, but it is ours\n"
    assert capsys.readouterr().err == f"openaclnn verify: {sentence}"


@pytest.mark.programs
def test_ours_is_green_and_reports_are_whole(tmp_path, capsys):
    files = [tmp_path / "r.json", tmp_path / "r.xml", tmp_path / "r.html"]
    command = ["verify", "--op", "aclnnLogitGrad", "--op", "group_norm_swish", "--dtype", "bf16"]
    command += ["--json", str(files[0]), "--junit", str(files[1]), "--html", str(files[2])]
    assert main(command) == 0
    shown = capsys.readouterr()
    assert "100%" not in shown.out
    assert shown.err == ""  # no terminal, no progress
    data = json.loads(files[0].read_text(encoding="utf-8"))
    providers = {entry["provider"] for entry in data["summary"]}
    assert data["passed"]
    assert data["environment"]["numpy"] == np.__version__
    assert f"All {len(data['results']):,} passed" in shown.out
    suites = ElementTree.parse(files[1]).getroot()
    assert len(suites) == 2 * len(providers)
    assert sum(int(suite.get("tests")) for suite in suites) == len(data["results"])
    assert {suite.get("failures") for suite in suites} == {"0"}
    page = files[2].read_text(encoding="utf-8")
    assert f"All {len(data['results']):,} results passed" in page
    assert 'aria-label="group_norm_swish BFLOAT16: ' in page


def test_listed_cases_are_a_file_of_cases(tmp_path, capsys):
    assert main(["verify", "--op", "hardshrink", "--dtype", "fp16", "--list"]) == 0
    text = capsys.readouterr().out
    file = tmp_path / "cases.json"
    file.write_text(text, encoding="utf-8")
    count = len(json.loads(text)["cases"])
    assert main(["verify", "openaclnn:v2", "--cases", str(file), "--quiet"]) == 0
    assert f"All {count} passed" in capsys.readouterr().out


SOURCE = str(Path(__file__).with_name("softmax.c"))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["no"], "a provider must be openaclnn, openaclnn:LEVEL, torch, torch:compiled, lib"),
        (["openaclnn:v9"], "openaclnn:v9 must be one of v2"),
        (["library:/no/such.so"], "library:/no/such.so: no such file"),
        ([f"library:{__file__}"], f"library:{__file__} cannot be loaded: "),
        ([f"python:{SOURCE}:no"], f"python:{SOURCE}:no cannot be loaded: a Python file must end"),
        ([f"python:{__file__}:no"], f"python:{__file__}:no cannot be loaded: no function no; "),
        (["--op", "elo"], "no operator 'elo'; did you mean elu"),
        (["--op", "matmull"], "no operator 'matmull'; did you mean aclnnMatmul, which ATen"),
        (["--op", "gelu"], "no operator 'gelu'; did you mean aclnnGelu, which ATen computes?"),
        ([f"library:{SOURCE}"], f"library:{SOURCE} is a source file; compile it first: "),
        (["--op", "hardshrink", "--dtype", "fp64"], "there are no such cases on product A2; "
                                                    "OPENACLNN_PRODUCT=any takes every dtype"),
        (["--dtype", "int8"], "--dtype must be a float dtype"),
        (["--only", "elu/FLOAT/99999"], "there is no case elu/FLOAT/99999; --list shows them"),
        (["--cases", "/no/file"], "/no/file cannot be read: No such file"),
        (["--standard", "best"], "standard must be one of ours, float, single, double, either"),
        (["--html", "/no/folder/r.html"], "--html /no/folder/r.html cannot be written"),
        (["--benchmark", "torch"], "benchmark must come with standard double"),
        (["--rtol", "5", "--level", "L0"], "level must come with standard double or either, but"),
        (["--standard", "single", "--ulp", "3"], "ulp must come with standard ours or peer"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_sentence(given, sentence, capsys):
    assert main(["verify", *given]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"openaclnn verify: {sentence}")
    assert printed.count("\n") == 1


GN = "group_norm_swish"


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ({}, 'case 0 must be an object with "op", but is {}'),
        ({"op": "elo"}, "case 0: there is no operator elo"),
        ({"op": "elu", "what": 1}, "case 0 has 'what', but the fields are "),
        ({"op": "elu", "dtype": "int8"}, "case 0: dtype must be a float dtype"),
        ({"op": "elu", "shape": [-1]}, "case 0: a shape must be a list of at most 8 sizes"),
        ({"op": "elu", "attributes": {"eps": 1}}, "case 0: elu has no attribute 'eps'; it has"),
        ({"op": "elu", "attributes": {"alpha": "x"}}, "case 0: alpha must be a number, but is 'x'"),
        ({"op": "elu", "values": "every", "dtype": "fp32"}, "case 0: values must be one of"),
        ({"op": "elu", "layout": "flipped"}, "case 0: layout must be one of contiguous"),
        ({"op": "elu", "mistake": "x"}, "case 0: mistake must be one of null input, wrong shape"),
        ({"op": "elu", "seed": None}, "case 0: seed must be an integer of at least 0, but is None"),
        ({"op": "elu", "seed": -1}, "case 0: seed must be an integer of at least 0, but is -1"),
        ({"op": "elu", "layout": []}, "case 0: layout must be one of contiguous"),
        ({"op": "elu_", "layout": "expanded"}, "case 0: elu_ writes its input, which must not have "
         "layout expanded"),
        ({"op": "elu", "alias": "alpha"}, "case 0: alias must be one of x, but is 'alpha'"),
        ({"op": "elu_", "alias": "x"}, 'case 0: elu_ has no input that "alias" can name'),
        ({"op": "elu", "alias": "x", "out": "fp64"}, 'case 0: "alias" goes with no "out"'),
        ({"op": "hardshrink_backward", "shapes": [[3, 1], [1, 4]], "alias": "x"},
         'case 0: hardshrink_backward has no input that "alias" can name'),
        ({"op": "elu", "shapes": None}, "case 0: shapes must be a list, but is None"),
        ({"op": GN, "attributes": {"num_groups": 0}}, "case 0: num_groups must be greater than 0"),
        ({"op": GN, "attributes": {"num_groups": "x"}}, "case 0: num_groups must be an integer"),
        ({"op": GN, "attributes": {"swish_scale": "inf"}}, "case 0: swish_scale must be finite"),
        ({"op": GN, "shapes": [[0], [4], [4]]}, "case 0: x must have 2 to 8 dimensions, but got 1"),
        ({"op": GN, "shapes": [[0, 4], [4], [4]]}, "case 0: x must not be empty, but has shape "),
        (
            {"op": "elu_backward", "attributes": {"alpha": -1, "is_result": True}},
            "case 0: alpha must be at least 0 when is_result is true, but got -1",
        ),
        ({"op": GN, "attributes": {"activate_swish": 1}}, "case 0: activate_swish must be true or"),
    ],
)  # fmt: skip
def test_mistakes_of_files_are_one_sentence(case, sentence, tmp_path, capsys):
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"schema": SCHEMA, "cases": [case]}), encoding="utf-8")
    assert main(["verify", "--cases", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"openaclnn verify: {sentence}")


def test_a_file_whose_cases_are_no_list(tmp_path, capsys):
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"schema": SCHEMA, "cases": 5}), encoding="utf-8")
    assert main(["verify", "--cases", str(file)]) == 2
    sentence = f'openaclnn verify: {file}: "cases" must be a list, but is 5\n'
    assert capsys.readouterr().err == sentence


def test_without_ml_dtypes(monkeypatch, capsys):
    """NumPy alone has no bfloat16: a line says it is left out; asking for it is an error."""
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    assert main(["verify", "openaclnn:v2", "--op", "hardshrink", "--quiet"]) == 0
    shown = capsys.readouterr()
    assert shown.err == (
        "openaclnn verify: BFLOAT16 is left out: it needs ml_dtypes (pip install ml_dtypes)\n"
    )
    assert "BFLOAT16" not in shown.out
    assert main(["verify", "--op", "hardshrink", "--dtype", "bf16"]) == 2
    printed = "openaclnn verify: --dtype BFLOAT16 needs ml_dtypes: pip install ml_dtypes\n"
    assert capsys.readouterr().err == printed
    x = np.zeros(3, np.uint16)
    with pytest.raises(
        ValueError, match=r"^dtype BFLOAT16 needs ml_dtypes: pip install ml_dtypes$"
    ):
        openaclnn.compare(x, "elu", x, dtype="bf16")


def test_double_on_product_any(capsys):
    """The product of the process is that of the library in the child."""
    openaclnn.set_product("any")
    assert main(["verify", "openaclnn:v2", "--op", "logit", "--dtype", "fp64", "--quiet"]) == 0
    assert "DOUBLE" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--json", "--junit", "--html"])
def test_a_report_to_standard_output(option, tmp_path, monkeypatch, capsys):
    """No file of the name -; the summary is for people and goes to standard error."""
    monkeypatch.chdir(tmp_path)
    one = ["verify", "openaclnn", "--only", "hardshrink/FLOAT/0", "--op", "hardshrink", "--quiet"]
    assert main([*one, option, "-"]) == 0
    shown = capsys.readouterr()
    assert list(tmp_path.iterdir()) == []
    assert shown.out.startswith({"--json": "{", "--junit": "<?xml", "--html": "<!doctype"}[option])
    assert "passed" in shown.err
    assert "openaclnn verify  1 cases" not in shown.out


def test_only_one_report_goes_to_standard_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    one = ["verify", "openaclnn", "--only", "hardshrink/FLOAT/0", "--op", "hardshrink"]
    assert main([*one, "--json", "-", "--html", "-"]) == 2
    sentence = "only one report must go to standard output, but --json and --html are -"
    assert capsys.readouterr().err == f"openaclnn verify: {sentence}\n"
    assert main(["verify", "--exhaustive", "--op", "elu", "--state", "-"]) == 2
    assert capsys.readouterr().err == "openaclnn verify: --state must be a file, but is -\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e10, "1e10"), (1e-5, "1e-5"), (1e30, "1e30"), (1e-30, "1e-30"), (1.5, "1.5"), (1.0, "1.0"),
     (-0.0, "-0.0"), (60.0, "60.0"), (1.6732632423543772, "1.6732632423543772"), (-2e9, "-2e9"),
     (1.234e-9, "1.234e-9"), (1234567.0, "1234567.0"), (float("inf"), "inf"), (True, "True"),
     (12, "12")],
)  # fmt: skip
def test_attributes_are_short(value, text):
    assert shortest(value) == text
    if isinstance(value, float):
        assert float(shortest(value)) == value


@pytest.mark.programs
def test_torch_compiled():
    """One compilation of some seconds; attributes beyond the first set are left out."""
    pytest.importorskip("torch")
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    words = ["--op", "leaky_relu", "--dtype", "fp32", "--quiet", "--json", "-"]
    command = [sys.executable, "-m", "openaclnn", "verify", "torch:compiled", *words]
    done = subprocess.run(command, capture_output=True, text=True)  # warnings of torch are its own
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)["results"]
    passed = [r for r in results if r["status"] == "passed"]
    assert len(passed) > 20
    assert {r["sentence"] for r in results if r["status"] == "left out"} == {
        "torch:compiled has the first attribute set of an operator only",
        "torch has no status codes",
        "torch's operators make their outputs",
    }
