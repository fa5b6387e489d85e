# SPDX-License-Identifier: Apache-2.0
"""openaclnn verify: its cases come from the rows, can be written down and made again, and a run
tells what it found, in a table, in JSON and in JUnit XML."""

from __future__ import annotations

import io
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from support import FLOATS

import openaclnn
from openaclnn.cli import main
from openaclnn.reference import REFERENCES, numpy_dtype
from openaclnn.standards import Standard
from openaclnn.table import OPS, PRODUCTS
from openaclnn.verify import values
from openaclnn.verify.cases import SCHEMA, from_data
from openaclnn.verify.generate import generate
from openaclnn.verify.progress import Progress
from openaclnn.verify.providers import Outcome
from openaclnn.verify.running import Runner

PRODUCT = next(p for p in PRODUCTS if p.key == "A2")


def all_cases(seed=1):
    return generate(OPS, FLOATS, PRODUCT, seed)


def test_cases_cover_the_rows():
    """Every row x dtype x attribute set, every kind of values, layouts, ranks, empty tensors."""
    cases = all_cases()
    assert len({case.id for case in cases}) == len(cases)
    for op in OPS:
        for dtype in op.accepted(PRODUCT):
            own = [case for case in cases if case.op is op and case.dtype == dtype]
            sets = {repr(case.attributes) for case in own}
            assert sets == {repr(a) for a in REFERENCES[op.kernel].attributes}
            assert {case.values for case in own} == set(values.names(op, dtype))
            assert len({case.layout for case in own}) == 6
            ranks = {len(case.shapes[0]) for case in own}
            assert {2, 3, 8} <= ranks
            assert any(sum(case.shapes[0]) == 0 for case in own) != values.is_summed(op)
            assert any(case.mistake for case in own)
            if op.shapes == "broadcast":
                assert any(len(set(case.shapes)) > 1 for case in own)


def test_a_case_is_made_again_from_its_seed_and_from_its_data():
    for case, same, other in zip(all_cases(), all_cases(), all_cases(2), strict=True):
        read = from_data(json.loads(json.dumps(case.as_data(), allow_nan=False)), 0)
        assert repr(read.as_data()) == repr(case.as_data())
        if case.values in ("special", "every") or case.shapes[0] > (1000,):
            continue  # the first has no seed; the others take long
        made, again, from_file = case.inputs(), same.inputs(), read.inputs()
        for x, y, z in zip(made, again, from_file, strict=True):
            assert x.tobytes() == y.tobytes() == z.tobytes()
        if made[0].size > 10:
            assert made[0].tobytes() != other.inputs()[0].tobytes()


def test_every_pattern_and_every_combination():
    for case in all_cases():
        if case.values == "every":
            for x in case.inputs():
                assert len(np.unique(x.view(np.uint16))) == 65_536
        elif case.values == "special" and len(case.shapes) == 2 and case.dtype == "FLOAT":
            one, two = (x.view(np.uint32) for x in case.inputs())
            combinations = len(np.unique(one.astype(np.uint64) << np.uint64(32) | two))
            assert combinations == len(np.unique(one)) * len(np.unique(two))


# ---- the run ----


class Wrong:
    """Computes as the library does, but for one element."""

    name = "wrong"

    def __init__(self, change):
        self.change = change

    def missing(self, case):
        return "no status codes" if case.mistake else ""

    def run(self, case, inputs):
        named = {p.python_name: x for p, x in zip(case.op.inputs_, inputs, strict=True)}
        found = getattr(openaclnn, case.op.python)(**named, **case.attributes)
        found = found if isinstance(found, tuple) else (found,)
        return Outcome(tuple(self.change(case, y) for y in found))

    def close(self):
        pass


def run_of(provider, cases, standard=None):
    return Runner([provider], standard or Standard()).run(cases, lambda case: None)


def plain_cases(kind="ordinary"):
    """One of each row and dtype, with its first attributes."""
    found = {(c.op.name, c.dtype): c for c in reversed(all_cases()) if c.values == kind}
    return list(found.values())


def test_what_is_right_passes():
    results = run_of(Wrong(lambda case, y: y), plain_cases())
    assert {r.status for r in results} == {"passed"}


def test_wrong_elements_are_found_with_their_inputs():
    def last_is_off(case, y):
        y = y.copy()
        y.reshape(-1)[-1] = np.nan
        return y

    for result in run_of(Wrong(last_is_off), plain_cases()):
        case = result.case
        assert (result.status, result.kind) == ("failed", "wrong")
        shape = case.shapes[0]
        assert result.worst[0].index == tuple(n - 1 for n in shape)
        for name, (value, _) in result.worst[0].inputs.items():
            p = [p.python_name for p in case.op.inputs_].index(name)
            given = case.inputs()[p].reshape(-1)[-1]
            np.testing.assert_equal(value, float(given))
            assert f"{name} = " in result.sentence
        assert "but made nan" in result.sentence


def test_wrong_shapes_and_missing_results():
    for change, told in ((lambda c, y: y[..., :-1], "shape"), (lambda c, y: None, "None")):
        for result in run_of(Wrong(change), plain_cases()):
            assert (result.status, result.kind) == ("failed", "wrong")
            assert told in result.sentence


@pytest.mark.parametrize("name", ["single", "allclose"])
def test_other_standards(name):
    # Not the ordinary values: half a step of a denormal is more than single allows.
    results = run_of(Wrong(lambda case, y: y), plain_cases("uniform"), Standard(name))
    for r in results:
        if r.case.dtype == "DOUBLE" and name == "single":
            assert r.status == "left out"
        else:
            assert r.status == "passed", r.sentence


def test_instruction_sets_that_differ_are_found():
    """Within the promise, but not the same bits."""

    def up(case, y):
        return np.nextafter(y, y + 1) if y.dtype == np.float64 else y

    cases = [c for c in plain_cases() if c.op.python == "elu"]
    one, two = Wrong(lambda case, y: y), Wrong(up)
    one.name, two.name = "openaclnn:v2", "openaclnn:v3"
    results = Runner([one, two], Standard(ulp=4)).run(cases, lambda case: None)
    found = {(r.provider, r.case.dtype): r for r in results if r.status == "failed"}
    assert set(found) == {("openaclnn:v3", "DOUBLE")}
    assert found["openaclnn:v3", "DOUBLE"].kind == "differs"
    assert found["openaclnn:v3", "DOUBLE"].sentence == "the bits are not those of openaclnn:v2"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_on_a_terminal_and_elsewhere():
    cases = [c for c in all_cases() if c.op.python in ("elu", "logit")]
    lines, live = io.StringIO(), Terminal()
    for stream in (lines, live):
        progress = Progress(stream, len(cases))
        for case in cases:
            progress(case)
        progress.close()
    groups = len({(c.op.python, c.dtype) for c in cases})
    told = lines.getvalue().splitlines()
    assert len(told) == groups
    assert told[0].endswith(f"0 of {len(cases):,} cases  elu FLOAT")
    assert re.search(r"s, \d+ s left$", told[1])
    assert live.getvalue().count("\n") == 0
    assert live.getvalue().endswith("\r\033[K")  # nothing of it stays


# ---- the command ----


def test_torch_is_found_where_it_is_wrong(tmp_path, capsys):
    """Two of the known defects (docs/numerics_peers.md): attributes rounded to the dtype of the
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
    told = capsys.readouterr().out
    by_id = {r["id"]: r for r in json.loads(report.read_text(encoding="utf-8"))["results"]}
    assert by_id["good"]["status"] == "passed"
    assert by_id["eps"]["worst"][0]["got"]["value"] in ("inf", "-inf")
    assert by_id["alpha"]["kind"] == "wrong"
    again = by_id["eps"]["command"]
    assert again in told
    assert main(again.split()[1:]) == 1
    assert "1 of 1 FAILED" in capsys.readouterr().out


def test_the_double_benchmark_of_torch(capsys):
    pytest.importorskip("torch")
    command = ["verify", "openaclnn", "--op", "elu", "--dtype", "fp32", "--quiet"]
    main([*command, "--standard", "double", "--benchmark", "torch"])
    assert "double benchmark, L1" in capsys.readouterr().out
    assert main([*command, "--standard", "double", "--benchmark", "openaclnn"]) == 0


def test_ours_is_green_and_reports_are_whole(tmp_path, capsys):
    files = [tmp_path / "r.json", tmp_path / "r.xml"]
    command = ["verify", "--op", "aclnnLogitGrad", "--op", "group_norm_swish", "--dtype", "bf16"]
    assert main([*command, "--json", str(files[0]), "--junit", str(files[1])]) == 0
    shown = capsys.readouterr()
    assert "100%" not in shown.out
    assert "cases  logit_grad BFLOAT16" in shown.err
    data = json.loads(files[0].read_text(encoding="utf-8"))
    providers = {entry["provider"] for entry in data["summary"]}
    assert data["passed"]
    assert data["environment"]["numpy"] == np.__version__
    assert f"All {len(data['results']):,} passed" in shown.out
    suites = ElementTree.parse(files[1]).getroot()
    assert len(suites) == 2 * len(providers)
    assert sum(int(suite.get("tests")) for suite in suites) == len(data["results"])
    assert {suite.get("failures") for suite in suites} == {"0"}


def test_listed_cases_are_a_file_of_cases(tmp_path, capsys):
    assert main(["verify", "--op", "hardshrink", "--dtype", "fp16", "--list"]) == 0
    text = capsys.readouterr().out
    file = tmp_path / "cases.json"
    file.write_text(text, encoding="utf-8")
    count = len(json.loads(text)["cases"])
    assert main(["verify", "openaclnn:v2", "--cases", str(file), "--quiet"]) == 0
    assert f"All {count} passed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["no"], "a provider must be openaclnn, openaclnn:LEVEL, torch or library:PATH"),
        (["openaclnn:v9"], "openaclnn:v9 must be one of v2"),
        (["library:/no/such.so"], "library:/no/such.so must be a file, but there is none"),
        ([f"library:{__file__}"], f"library:{__file__} must be a library that loads, but: "),
        (["--op", "elo"], "no operator 'elo'; did you mean aclnnElu"),
        (["--dtype", "int8"], "--dtype must be a float dtype"),
        (["--only", "elu/FLOAT/99999"], "there is no case elu/FLOAT/99999; --list shows them"),
        (["--cases", "/no/file"], "/no/file must be a JSON file, but: "),
        (["--standard", "best"], "standard must be one of ours, single, double, allclose"),
        (["--benchmark", "torch"], "--benchmark must come with --standard double"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_sentence(given, sentence, capsys):
    assert main(["verify", *given]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"openaclnn verify: {sentence}")
    assert told.count("\n") == 1


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
    ],
)  # fmt: skip
def test_mistakes_of_files_are_one_sentence(case, sentence, tmp_path, capsys):
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"schema": SCHEMA, "cases": [case]}), encoding="utf-8")
    assert main(["verify", "--cases", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"openaclnn verify: {sentence}")


def test_double_on_product_any(monkeypatch, capsys):
    """The product of the process is that of the library in the child."""
    openaclnn.set_product("any")
    assert main(["verify", "openaclnn:v2", "--op", "logit", "--dtype", "fp64", "--quiet"]) == 0
    assert "DOUBLE" in capsys.readouterr().out
    assert numpy_dtype("DOUBLE") == np.float64
