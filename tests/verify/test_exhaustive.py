# SPDX-License-Identifier: Apache-2.0
"""openaclnn verify --exhaustive: every pattern once, one wrong pattern is found, and a run that was
interrupted goes on where it stopped, with the results of one that was not."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from tests.verify.verify_page_support import Mine, good

from openaclnn.commands.cli import main
from openaclnn.reference.standards import Standard
from openaclnn.rows.table import OPS, PRODUCTS
from openaclnn.verify import exhaustive
from openaclnn.verify.exhaustive import PATTERNS, State, chunks, has_every, targets
from openaclnn.verify.generate import generate
from openaclnn.verify.provider import Outcome
from openaclnn.verify.runner import Runner

PRODUCT = next(p for p in PRODUCTS if p.key == "A2")
STANDARD = Standard()


def cases_of(name, dtype, size=0):
    ops = [op for op in OPS if op.python == name]
    return chunks(targets(generate(ops, [dtype], PRODUCT, 1), chosen=False), size)


def quiet(case, done):
    pass


def test_chunks_have_every_pattern_once():
    """Of every row that has one input; the last chunk may be shorter."""
    rows = 0
    for op in OPS:
        for dtype in op.accepted(PRODUCT):
            if not has_every(op, dtype):
                continue
            rows += 1
            made = cases_of(op.python, dtype, 3_000_017 if dtype == "FLOAT" else 1_009)
            assert len({case.id for case in made}) == len(made)
            expected = 0
            for case in made:
                assert case.first == expected
                expected += case.shapes[0][0]
            assert expected == PATTERNS[dtype]
    assert rows >= 9
    patterns = [case.inputs()[0].view(np.uint16) for case in cases_of("elu", "FLOAT16", 1_009)]
    assert np.array_equal(np.concatenate(patterns), np.arange(1 << 16))
    last = cases_of("elu", "FLOAT")[-1].inputs()[0].view(np.uint32)
    assert last[-1] == 0xFFFFFFFF
    assert len(last) == exhaustive.CHUNK


def test_one_wrong_pattern_is_found():
    wrong = int(np.random.default_rng().integers(0x3000, 0x4000))  # 0.125 to 2: both branches
    print("pattern", hex(wrong))

    def spoil(case, inputs, made):
        at = inputs[0].view(np.uint16) == wrong
        return Outcome(((made.view(np.uint16) + at.astype(np.uint16)).view(np.float16),))

    cases = cases_of("hardshrink", "FLOAT16", 1 << 12)
    runner = Runner([Mine("mine", spoil)], STANDARD)
    results = exhaustive.run(runner, cases, State(None, {}, cases), quiet)
    (found,) = [r for r in results if r.status == "failed"]
    assert f"(0x{wrong:04x}): expected" in found.message
    assert found.case.first <= wrong < found.case.first + (1 << 12)
    assert sum(r.status == "passed" for r in results) == 15


class Interrupted(Mine):
    """Counts its calls; Ctrl-C at one of them."""

    def __init__(self, at=None):
        super().__init__("mine", good)
        self.calls, self._at = 0, at

    def run(self, case, inputs):
        self.calls += 1
        if self.calls == self._at:
            raise KeyboardInterrupt
        if case.first == 2 * 4096:
            return Outcome(kind="crashed", sentence="it fell")
        return super().run(case, inputs)


def taken(sample):
    """All of a sample, as something that can be compared."""
    output = sample.output
    arrays = (sample.at, sample.wrong, sample.unwritten, output.got, output.expected)
    texts = [x.tobytes() for x in (*arrays, *output.inputs)]
    return sample.shape, sample.wrong_in_all, sample.onset, output.name, texts


def halved(case, inputs, made):
    return Outcome((made / np.float16(2),))


@pytest.mark.parametrize("rest", [b"", b'{"id": "elu/FLO'])
@pytest.mark.parametrize("standard", [STANDARD, Standard("peer", ulp=0.0)], ids=lambda s: s.name)
def test_an_interrupted_run_goes_on(standard, rest, tmp_path):
    """`rest`: the line that was being written when the process ended. What is expected may come
    from another library."""
    other = Mine("other", halved) if standard.name == "peer" else None

    def runner(provider):
        return Runner([provider], standard, other, profiles=True)

    cases, file, head = cases_of("elu", "FLOAT16", 4096), tmp_path / "state", {"version": 1}
    whole = Interrupted()
    due = exhaustive.run(runner(whole), cases, State(None, head, cases), quiet)
    first = Interrupted(at=6)
    with pytest.raises(KeyboardInterrupt):
        exhaustive.run(runner(first), cases, State(file, head, cases), quiet)
    with file.open("ab") as opened:
        opened.write(rest)
    second, seen = Interrupted(), []
    got = exhaustive.run(
        runner(second), cases, State(file, head, cases), lambda case, done: seen.append(done)
    )
    assert (whole.calls, second.calls) == (16, 16 - 5)
    assert seen[0] == 5 * 4096
    timeless = [[{**vars(r), "seconds": 0, "samples": list(map(taken, r.samples))} for r in rs]
                for rs in (due, got)]  # fmt: skip
    assert timeless[0] == timeless[1]
    third = Interrupted()
    exhaustive.run(runner(third), cases, State(file, head, cases), quiet)
    assert third.calls == 0


def test_a_state_of_something_else_is_refused_and_kept(tmp_path, capsys):
    file = tmp_path / "state"
    command = ["verify", "openaclnn:v2", "--exhaustive", "--op", "elu", "--dtype", "fp16"]
    command += ["--state", str(file), "--quiet"]
    assert main(command) == 0
    before = file.read_bytes()
    assert len(before.splitlines()) == 2
    assert main([*command, "--ulp", "1"]) == 2
    assert capsys.readouterr().err == (
        f"openaclnn verify: {file} is the state of a run with other standard\n"
    )
    assert file.read_bytes() == before
    for other in (b"my only copy", b"my\nonly copy\n", b'{"schema": 1}\n'):
        file.write_bytes(other)
        assert main(command) == 2
        assert "must be a state file of --exhaustive or not exist" in capsys.readouterr().err
        assert file.read_bytes() == other
    assert main([*command[:-2], os.devnull, "--quiet"]) == 2  # /dev/zero would have no end
    assert "must be a state file of --exhaustive or not exist" in capsys.readouterr().err


def test_the_command_reports_and_names_a_chunk_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(exhaustive, "CHUNK", 1 << 14)
    file = tmp_path / "report.json"
    command = ["verify", "openaclnn:v2", "--exhaustive", "--op", "logit", "--dtype", "fp16"]
    command += ["--ulp", "0.4", "--quiet", "--json", str(file)]
    assert main(command) == 1
    failed = [
        r
        for r in json.loads(file.read_text(encoding="utf-8"))["results"]
        if r["status"] == "failed"
    ]
    again = failed[0]["command"]
    assert "--exhaustive" in again
    capsys.readouterr()
    assert main([*again.split()[1:], "--quiet"]) == 1
    assert "1 of 1 FAILED" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--state", "x"], "--state must come with --exhaustive"),
        (["--exhaustive", "--op", "elu_backward"], "--exhaustive needs an operator of one "),
        (["--exhaustive", "--op", "elu", "--dtype", "fp64"], "--exhaustive needs an operator of"),
        (["--exhaustive", "--op", "group_norm_swish"], "--exhaustive needs an operator of one"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_sentence(given, sentence, capsys):
    assert main(["verify", *given]) == 2
    seen = capsys.readouterr().err
    assert seen.startswith(f"openaclnn verify: {sentence}")
    assert seen.count("\n") == 1
