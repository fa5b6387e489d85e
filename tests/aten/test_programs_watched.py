# SPDX-License-Identifier: Apache-2.0
"""Check mode and traces of programs that use operators that ATen computes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.aten.aten_support import PROGRAMS, STRICT, alone, built, command, run

pytestmark = pytest.mark.programs


@pytest.fixture(scope="module")
def mistakes(programs) -> Path:
    return built(
        programs,
        "mistakes",
        "-std=c11",
        *STRICT,
        PROGRAMS / "mistakes.c",
    )


MISTAKES = [
    (1, "read_before_sync: aclrtMemcpy reads src, 16 bytes at 0x[0-9a-f]+, while aclnnAdd"),
    (2, "use_after_free: aclnnAdd would work on self"),
    (3, "never_written: aclnnAdd reads self, 16 bytes"),
    (4, "view_outside_allocation: aclnnAdd got self, whose view spans bytes 0 to 20"),
    (
        8,
        r"refused: aclnnAddGetWorkspaceSize returned 161002: The size of .*\n +here .*: main in mi",
    ),
    (10, r"refused: aclnnAddGetWorkspaceSize returned 161002: Boolean alpha .* results\.\n"),
    (9, "read_before_sync: aclrtMemcpy reads src, 16 bytes at 0x[0-9a-f]+, while aclnnAdd"),
    (5, r"unsynchronised_streams: aclnnInplaceAdd writes self, .* aclnnAdd writes it \(out\)"),
]


@pytest.mark.parametrize(("mistake", "report"), MISTAKES)
def test_check_mode_sees_the_mistake(mistakes, mistake, report):
    done = command("check", "--aten", mistakes, mistake, env=alone())
    assert done.returncode == 66
    assert re.search(report, done.stderr), done.stderr


@pytest.mark.parametrize(("number", "values"), [(0, "0 3 6 9"), (6, "30 3 6 9")])
def test_check_mode_finds_nothing_in_what_is_right(mistakes, number, values):
    """6 makes its plan repeatable."""
    done = command("check", "--aten", mistakes, number, env=alone())
    assert (done.returncode, done.stdout) == (0, f"{values}\n"), done.stderr
    assert "openaclnn check: no mistakes" in done.stderr


def test_check_mode_finds_nothing_in_the_calls_and_the_layer(aten_calls, aten_layer):
    for words in ((aten_calls, 1), (aten_layer,)):
        done = command("check", "--aten", *words, env=alone())
        assert done.returncode == 0, done.stderr
        assert done.stderr == "openaclnn check: no mistakes\n"


LEFT = [  # what follows the size of what is read
    (1, r"reads src, 12 bytes at 0x[0-9a-f]+, but none of them was ever given a value\."),
    (2, r"reads src, 32 bytes at 0x[0-9a-f]+, but 16 of them were never given a value, the first "),
]


def test_outputs_that_stay_as_they_were(programs):
    source = PROGRAMS / "left_outputs.c"
    program = built(programs, "left_outputs", "-std=c11", *STRICT, source)
    done = command("check", "--aten", program, 0, env=alone())
    assert (done.returncode, done.stderr) == (0, "openaclnn check: no mistakes\n"), done.stdout
    for mistake, report in LEFT:
        done = command("check", "--aten", program, mistake, env=alone())
        assert done.returncode == 66
        assert re.search("never_written: aclrtMemcpy " + report, done.stderr), done.stderr
        assert "openaclnn check: 1 mistake\n" in done.stderr


def test_an_address_is_not_set(mistakes):
    done = run(mistakes, 7)
    assert "the addresses of an operator that ATen computes cannot be changed" in done.stdout


def test_trace_shows_both_phases_and_the_work_of_the_stream(aten_calls, aten_layer):
    plain = run(aten_layer).stdout
    done = command("trace", "--aten", aten_layer, env=alone())
    assert (done.returncode, done.stdout) == (0, plain)
    for line in (
        r" host .* aclnnMatmulGetWorkspaceSize\(self: FLOAT \[6, 32\] at .*, other: FLOAT16 "
        r"\[32, 32\] at .*, out: FLOAT \[6, 32\] at .*, cubeMathType: 0, workspaceSize: &0, .* = 0",
        r" host .* aclnnMatmul\(workspace: NULL, workspaceSize: 0, executor: .*, stream: stream 1",
        r" stream  1 .* aclnnInplaceAdd\(self: FLOAT \[6, 32\] .*, other: .*, alpha: FLOAT 1\)",
        r"^stream 1 +aclnnMatmul +6 ",
    ):
        assert re.search(line, done.stderr, re.M), line
    done = command("trace", "--aten", aten_calls, 1, env=alone())  # of the most arguments, too
    assert done.returncode == 0
    assert "aclnnFusedInferAttentionScoreV2GetWorkspaceSize(query: " in done.stderr
    assert 'inputLayout: "BSND"' in done.stderr
