# SPDX-License-Identifier: Apache-2.0
"""Check mode: bounds of memory, and which bytes have a value, compared with models."""

from __future__ import annotations

import os
import re

import pytest
from tests.check.check_mode import (
    REPORT,
    WITHOUT_LINES,
    built_once,
    needs_compiler,
    openaclnn_command,
)

pytestmark = [pytest.mark.programs, needs_compiler]


UNIT = 32  # of what is reserved


def reserved(allocator: str, size: int) -> int:
    """The runtime's rule (docs/howto/check_mode.md)."""
    spare = UNIT if allocator in ("aclrtMalloc", "aclrtMallocCached") else 0
    return -(-size // UNIT) * UNIT + spare


def bounds_cases(text: str) -> list[tuple[str, str, int, int, int, list[str], str]]:
    """For each case: allocator, way, bytes allocated and used, status, kinds, the sentence."""
    found, kinds = [], []
    for line in text.splitlines():
        if report := REPORT.match(line):
            kinds.append(report[1])
        elif line.startswith("case "):
            _, allocator, way, *numbers = line.split()
            found.append([allocator, way, *map(int, numbers), kinds, ""])
            kinds = []
        elif line.startswith("sentence "):
            found[-1][-1] = line
    return found


@pytest.mark.parametrize("checked", [True, False], ids=["check mode", "without"])
def test_bounds(checked, programs):
    """Sizes around the units of 32 bytes: exact in check mode, and otherwise what is reserved."""
    command = ["check", "--exit-code", "0"] if checked else ["run"]
    words = [] if checked else ["without operators"]
    path = built_once("check_mode_bounds.cpp", programs)
    done = openaclnn_command(*command, path, *words, env=WITHOUT_LINES)
    ways = set()
    for allocator, way, size, used, status, kinds, sentence in bounds_cases(done.stderr):
        ways.add(way)
        operator, room = way.startswith("operator"), reserved(allocator, size)
        refusal = 161002 if operator else 107000
        case = f"{allocator} {way}: {used} of {size} bytes"
        assert status == (0 if used <= room else refusal), case
        kind = "view_outside_allocation" if operator else "past_allocation"
        assert kinds == ([kind] if checked and used > size else []), case
        if status == 107000:
            expected = f"at most {room}, the bytes reserved from "
            assert expected in sentence, sentence
            assert f"(the program asked for {size} of them)" in sentence, sentence
            assert sentence.endswith(f"but got {used}"), sentence
    assert len(ways) == (10 if checked else 8), done.stderr


FIRST_SEED = int(os.environ.get("OPENACLNN_TEST_SEED", "1"))


@pytest.fixture(scope="module")
def values(programs):
    """With -O2, since its model has a flag for each byte: the tests take 3 s instead of 25 s."""
    return built_once("check_mode_values.cpp", programs, "-O2")


def test_right_programs_read_only_what_was_written(values):
    done = openaclnn_command("check", values, str(FIRST_SEED), "300", "right", env=WITHOUT_LINES)
    assert (done.returncode, done.stderr) == (0, "openaclnn check: no mistakes\n")


def test_programs_that_read_what_was_never_written(values):
    """The same bytes as a model with a flag for each."""
    done = openaclnn_command("check", values, str(FIRST_SEED), "150", "wrong", env=WITHOUT_LINES)
    cases = re.split(r"^(?=seed )", done.stderr, flags=re.M)[1:]
    partly = 0
    for case in cases:
        seed, missing, size = re.match(r"seed (\d+) reads (\d+) of (\d+)\n", case).groups()  # type: ignore[union-attr]
        (report,) = REPORT.findall(case.partition("openaclnn check: 1 mistake\n")[0])
        none = "but none of them was ever given a value."
        some = f"but {missing} of them were never given a value, the first at byte "
        assert report[0] == "never_written", f"seed {seed}: {report}"
        assert f"reads self, {size} bytes" in report[1], f"seed {seed}: {report}"
        assert (none if missing == size else some) in report[1], f"seed {seed}: {report}"
        partly += missing != size
    assert len(cases) > 75
    assert partly > 25
