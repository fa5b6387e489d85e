# SPDX-License-Identifier: Apache-2.0
"""Operators that ATen computes, on streams with callbacks, on threads with little stack and after
fork: waiting.c, small_stack.c and forking.c in tests/aten."""

from __future__ import annotations

import subprocess

import pytest
from tests.aten.aten_support import PROGRAMS, STRICT, alone, built, run


def test_phase_2_waits_only_where_it_may(programs):
    source = PROGRAMS / "waiting.c"
    done = run(built(programs, "waiting", "-std=gnu11", *STRICT, source, "-pthread"))
    assert (done.stdout, done.stderr, done.returncode) == ("good\n", "", 0)


@pytest.mark.parametrize("kib", [16, 32, 128])
def test_both_phases_on_a_thread_with_little_stack(programs, kib):
    source = PROGRAMS / "small_stack.c"
    program = built(programs, "small_stack", "-std=c11", *STRICT, source, "-pthread")
    done = run(program, kib << 10)
    assert (done.stdout, done.stderr, done.returncode) == ("good\n", "", 0)


def test_a_child_of_fork_computes(programs):
    source = PROGRAMS / "forking.c"
    program = built(programs, "forking", "-std=gnu11", *STRICT, source, "-pthread")
    threads = {**alone(), "OPENACLNN_NUM_THREADS": "4"}
    done = subprocess.run([program], env=threads, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr, done.returncode) == ("good\n", "", 0)
