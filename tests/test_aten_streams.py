# SPDX-License-Identifier: Apache-2.0
"""Operators that ATen computes, on streams with callbacks: tests/aten/waiting.c."""

from __future__ import annotations

from aten_support import ROOT, STRICT, built, run


def test_phase_2_waits_only_where_it_may(programs):
    source = ROOT / "tests" / "aten" / "waiting.c"
    done = run(built(programs, "waiting", "-std=gnu11", *STRICT, source, "-pthread"))
    assert (done.stdout, done.stderr, done.returncode) == ("good\n", "", 0)
