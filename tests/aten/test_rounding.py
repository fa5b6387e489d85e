# SPDX-License-Identifier: Apache-2.0
"""16-bit results of the functions that ATen computes are those in float, rounded once, with few
exceptions (numerics_aten.md). What ATen does depends on the CPU, so the calls run twice: on this
one, and as if it had no AVX-512.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_rounding import FLOAT_ONLY, HALVES, ROUNDED_TWICE, TWICE, error, too_far, ulp
from tests.aten.aten_samples import ROWS, lines, samples, torch

from openaclnn.rows.table import OPS

# Results that random numbers decide.
RANDOM = (
    "Bernoulli", "Dropout", "Exponential", "Multinomial", "Normal", "Rand", "RRelu", "Uniform",
)  # fmt: skip


@pytest.mark.programs
def test_results_of_this_cpu_are_rounded_once():
    assert too_far(seed=0) == []


@pytest.mark.programs
def test_results_of_a_cpu_without_avx512_are_rounded_once():
    code = "from tests.aten import aten_rounding; print(*aten_rounding.too_far(seed=1), sep='\\n')"
    older = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "default"}
    environment = {**os.environ, **older, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=Path(__file__).parents[2],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_every_function_has_a_call():
    known = {sample.row.name for sample in samples()}
    # Those that communicate have calls on two ranks.
    communicate = {
        name
        for name, row in ROWS.items()
        if any(p.kind == "text" and p.name.startswith("group") for p in row.given)
    }
    lacking = {name for name, row in ROWS.items() if not row.is_type} - known - communicate
    missing = {name for name in lacking if not any(word in name for word in RANDOM)}
    assert missing == set(), "add a call of each to src/openaclnn/golden/calls/written.txt"
    assert known >= (ROUNDED_TWICE | FLOAT_ONLY) & ROWS.keys()


def test_every_call_is_of_a_function():
    functions = {*ROWS, *(op.name for op in OPS)}
    assert {line.partition("(")[0] for line in lines()} <= functions


def test_the_page_names_the_exceptions():
    root = Path(__file__).resolve().parents[2]
    page = (root / "docs" / "reference" / "numerics_aten.md").read_text(encoding="utf-8")
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    forms = {name: name.replace("aclnnInplace", "aclnn") for name in ROUNDED_TWICE | FLOAT_ONLY}
    plain = {name: form.removeprefix("aclnn").removeprefix("acl") for name, form in forms.items()}
    twice = re.search(
        r"\| (\d+) functions in which .* exponent, to 16 bits: (.*) and in-place", page
    )
    refused = re.search(r"\| (\w+, .*); (\w+) in BFLOAT16 \| refused \|", page)
    assert twice is not None
    assert refused is not None
    assert int(twice[1]) == len(ROUNDED_TWICE)
    assert set(twice[2].split(", ")) == {plain[name] for name in ROUNDED_TWICE}
    assert {*refused[1].split(", "), refused[2]} == {plain[name] for name in FLOAT_ONLY}
    assert f"with {len(ROUNDED_TWICE)} exceptions" in changes


@pytest.mark.parametrize("dtype", HALVES)
def test_an_error_is_counted_in_neighbours(dtype):
    exact = torch.tensor([1.0, 1000.0, 0.0, 3e-6], dtype=torch.float64).to(dtype)
    up = (exact.view(torch.int16) + 3).view(dtype)
    found = error(up, exact.float(), exact.double())
    assert found == 3 > TWICE
    assert error(exact, exact.float(), exact.double()) == 0
    assert ulp(torch.tensor([1.0], dtype=torch.float64), dtype) == torch.finfo(dtype).eps
