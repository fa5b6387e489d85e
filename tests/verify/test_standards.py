# SPDX-License-Identifier: Apache-2.0
"""The standards of openaclnn.compare, at their limits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.support import SEED

import openaclnn
from openaclnn.commands.cli import main
from openaclnn.reference.evaluation import REFERENCES, numpy_dtype
from openaclnn.reference.steps import steps_between
from openaclnn.reference.verdicts import THRESHOLD
from openaclnn.rows.catalogue import find_operator

FLOAT_KERNELS = Path(__file__).parent / "float_kernels.py"
X = np.linspace(-4, 4, 1000, dtype=np.float32)


@pytest.mark.parametrize("dtype", THRESHOLD)
def test_the_single_benchmark_at_its_limits(dtype):
    """MERE < T and MARE < 10 T, T on either side."""
    x = np.full(1000, 2.0).astype(numpy_dtype(dtype))
    threshold = THRESHOLD[dtype]
    golden = x.astype(np.float64) + 1e-7

    def passes(error):
        mine = (x.astype(np.float64) + error * golden).astype(np.float32)
        return (
            openaclnn.compare(mine, "hardshrink", x, standard="single")
            and (mine.astype(np.float64) != 2).any()
        )

    standard = "single"
    spread = np.zeros(1000)
    spread[0] = 9 * 2.0**-13  # judged as FLOAT, whose T is 2^-13
    assert passes(spread)
    spread[0] = 11 * 2.0**-13
    assert not passes(spread)
    assert not passes(np.full(1000, 1.1 * 2.0**-13))
    assert passes(np.full(1000, 0.9 * 2.0**-13))
    step = x.copy()
    step[0] = 2 * (1 + 11 * threshold)
    assert not openaclnn.compare(step, "hardshrink", x, standard=standard)
    step[0] = 2 * (1 + 8 * threshold)
    assert openaclnn.compare(step, "hardshrink", x, standard=standard)


def test_the_double_benchmark():
    rng = np.random.default_rng(SEED)
    x = rng.uniform(-5, 5, 5000).astype(np.float32)
    y = openaclnn.elu(x)
    noise = rng.normal(0, 1e-6, x.size)

    def found(mine, other, level="L1"):
        options = {"standard": "double", "benchmark": other.astype(np.float32), "level": level}
        return openaclnn.compare(mine.astype(np.float32), "elu", x, **options)

    rough = y * (1 + noise)
    assert found(y, rough)
    assert found(rough, rough)
    assert found(y * (1 + 1.7 * noise), rough, "L0")
    assert not found(y * (1 + 1.7 * noise), rough, "L1")
    assert not found(y * (1 + 1.4 * noise), rough, "L2")
    broken = y.copy()
    broken[3] = np.nan
    verdict = found(broken, rough)
    assert not verdict
    assert "1 of 5,000 elements are NaN" in str(verdict)
    assert found(broken, broken)  # as the benchmark has it
    assert found(y, broken)  # what the benchmark lacks, the standard of one judges
    off = y.copy()
    off[3] *= 1.5
    verdict = found(off, broken)
    assert not verdict
    assert verdict.outputs[0].worst[0].index == (3,)
    text = (
        "greatest relative error where the benchmark is not finite is 0.5 (must be at most 0.00122)"
    )
    assert text in str(verdict)
    one, nan = np.array(1, np.float32), np.float32(np.nan)
    assert openaclnn.compare(one, "elu", one, standard="double", benchmark=nan)
    assert not openaclnn.compare(2 * one, "elu", one, standard="double", benchmark=nan)
    with pytest.raises(ValueError, match=r"^the double standard needs benchmark"):
        openaclnn.compare(y, "elu", x, standard="double")


@pytest.mark.parametrize("dtype", ["FLOAT16", "BFLOAT16", "FLOAT", "DOUBLE"])
def test_the_peer_standard_counts_representable_numbers(dtype):
    kind = numpy_dtype(dtype)
    x = np.linspace(-3, 3, 101).astype(kind)
    y = np.array(openaclnn.compare(x, "elu", x).outputs[0].output.nearest, dtype=kind)
    bits = y.view(f"u{kind.itemsize}")
    off = bits.copy()
    off[7] += 3  # 3 numbers away
    other = off.view(kind)

    def found(mine, benchmark, ulp=None):
        return openaclnn.compare(mine, "elu", x, standard="peer", benchmark=benchmark, ulp=ulp)

    assert found(y, y)
    assert found(other, other)  # whatever the formula says
    verdict = found(other, y)
    assert not verdict
    assert "1 of 101 elements are more than 0 ulp from the benchmark's" in str(verdict)
    assert "at most 0 ulp from the benchmark" in str(verdict).splitlines()[0]
    assert not found(other, y, 2)
    assert found(other, y, 3)
    with pytest.raises(ValueError, match=r"^the peer standard needs benchmark"):
        openaclnn.compare(y, "elu", x, standard="peer")


def test_steps_between_special_values():
    top, inf, nan = np.finfo(np.float32).max, np.inf, np.nan
    pairs = [(0, -0.0, 1), (top, inf, 1), (nan, nan, 0), (nan, 1, inf), (-inf, nan, inf),
             (inf, inf, 0), (1e-45, -1e-45, 3), (1, 2, 2**23)]  # fmt: skip
    a, b, steps = (np.array(column) for column in zip(*pairs, strict=True))
    found = steps_between(a.astype(np.float32), b.astype(np.float32))
    np.testing.assert_array_equal(found, steps)
    assert steps_between(np.float32(1), np.float32(nan)) == inf  # rank 0
    low, high = np.array([-np.finfo(float).max]), np.array([np.finfo(float).max])
    assert steps_between(low, high) == 2.0 * (0x7FEFFFFFFFFFFFFF) + 1


def test_allclose_and_ulp():
    y = openaclnn.elu(X)
    assert openaclnn.compare(y * np.float32(1 + 1e-6), "elu", X, standard="allclose")
    assert not openaclnn.compare(y * np.float32(1 + 1e-4), "elu", X, standard="allclose")
    assert openaclnn.compare(y * np.float32(1 + 1e-4), "elu", X, standard="allclose", rtol=1e-3)
    off = np.nextafter(np.nextafter(y, np.float32(9)), np.float32(9))
    assert not openaclnn.compare(off, "elu", X)
    assert openaclnn.compare(off, "elu", X, ulp=3)


def test_float_allows_what_computing_in_float_costs():
    y = openaclnn.elu(X)
    for steps, passes in ((3, True), (6, False)):
        off = (y.view(np.int32) + np.int32(steps)).view(np.float32)
        assert bool(openaclnn.compare(off, "elu", X, standard="float")) == passes
    x = X.astype(np.float16)
    exact = openaclnn.elu(x.astype(np.float32))
    cut = (np.abs(exact).view(np.int32) & ~np.int32(0x1FFF)).view(np.float32)
    assert openaclnn.compare(exact.astype(np.float16), "elu", x, standard="float")
    cut = np.copysign(cut, exact).astype(np.float16)
    assert not openaclnn.compare(cut, "elu", x, standard="float")
    with pytest.raises(ValueError, match=r"^the float standard is for FLOAT and 16 bits, but out"):
        openaclnn.compare(X.astype(np.float64), "elu", X.astype(np.float64), standard="float")


def test_float_allows_what_a_small_change_of_the_inputs_makes():
    """Where the formula is steep beside its result; not at a threshold."""
    x = np.array([0.5 - 2.0**-12, 0.9], np.float32)
    y = openaclnn.logit(x, 0.0)
    near = y + np.float32([2.0**-23, 0])  # 512 ulp of a small result
    assert openaclnn.compare(near, "logit", x, 0.0, standard="float")
    far = y + np.float32([2.0**-19, 0])
    assert not openaclnn.compare(far, "logit", x, 0.0, standard="float")
    x = np.array([0.5, 1.0], np.float32)  # hardshrink is 0 at lambd
    assert not openaclnn.compare(x, "hardshrink", x, lambd=0.5, standard="float")
    z, g = np.array([-95, -95, 1.0], np.float32), np.array([1e8, np.inf, 3e38], np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        plain = np.where(z > 0, g, g * np.exp(z))
    named = {"alpha": 1.0, "scale": 1.0, "input_scale": 1.0, "is_result": False}
    inputs = {"grad_output": g, "self_or_result": z}
    assert not openaclnn.compare(plain, "elu_backward", **inputs, **named)
    assert openaclnn.compare(plain, "elu_backward", **inputs, **named, standard="float")


def test_float_lets_subnormals_be_flushed_but_not_signs():
    x = np.array([-1e-39, -1.0], np.float32)
    for result, passes in ((-0.0, True), (0.0, False)):
        y = np.array([result, np.expm1(-1)], np.float32)
        assert bool(openaclnn.compare(y, "elu", x, standard="float")) == passes


def test_float_of_sums():
    rng = np.random.default_rng(SEED)
    x = rng.normal(0.5, 2, (2, 12, 5, 7)).astype(np.float32)
    gamma, beta = np.ones(12, np.float32), np.zeros(12, np.float32)
    y, mean, rstd = openaclnn.group_norm_swish(x, gamma, beta, 4)

    def passes(error, **options):
        mine = (y * np.float32(1 + error), mean, rstd)
        return bool(openaclnn.compare(mine, "group_norm_swish", x, gamma, beta, 4, **options))

    assert passes(1e-6, standard="float")
    assert not passes(1e-6)
    assert not passes(1e-4, standard="float")


@pytest.mark.programs
@pytest.mark.parametrize("op", ["elu_backward", "logit", "logit_grad", "group_norm_swish"])
def test_kernels_in_float_pass_by_float_only(op, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["verify", f"python:{FLOAT_KERNELS}:{op}", "--op", op, "--quiet"]
    seed = ["--seed", str(SEED)]  # a failure shows it
    assert main([*command, *seed, "--standard", "float"]) == 0, capsys.readouterr().out
    assert main([*command, *seed, "--dtype", "fp32"]) == 1


@pytest.mark.parametrize("op", [op for op, r in REFERENCES.items() if r.in_float])
def test_float_lets_no_nan_be_lost(op):
    """Whatever else is wrong with the inputs."""
    row = find_operator(op)
    inputs = {p.python_name: np.array([np.nan, 1e38], np.float32) for p in row.input_tensors}
    y = np.zeros(2, np.float32)
    for attributes in REFERENCES[op].attributes[:3]:
        found = openaclnn.compare(y, row.python, **inputs, **attributes, standard="float")
        assert found.outputs[0].verdict.wrong[0]


def test_float_is_of_formulas():
    with pytest.raises(ValueError, match=r"^standard float is for openaclnn's own operators"):
        openaclnn.compare(X, "aclnnRelu", X, standard="float")


@pytest.mark.programs
@pytest.mark.parametrize("standard", ["single", "allclose", "either"])
def test_elements_that_were_never_written_fail(standard, tmp_path, monkeypatch):
    """What was there before is as good as 0 for relative errors."""
    monkeypatch.chdir(tmp_path)
    source = """
def hardshrink(self, lambd, out):
    for i in range(self.size):
        if not abs(self.flat[i]) <= max(lambd, 0):
            out.flat[i] = self.flat[i]
"""
    Path("mine.py").write_text(source, encoding="utf-8")
    words = ["--standard", standard, "--benchmark", "openaclnn"]
    words = words if standard == "either" else words[:2]
    words += ["--only", "hardshrink/FLOAT/0", "--json", "report.json", "--quiet"]
    assert main(["verify", "python:mine.py:hardshrink", *words]) == 1
    (finding,) = json.loads(Path("report.json").read_text(encoding="utf-8"))["findings"]
    assert "never written" in finding["cause"]


def test_a_wide_result_is_pointed_out():
    """A NumPy kernel whose output became float64 by accident passes, with a note."""
    text = str(openaclnn.compare(np.maximum(X, 0).astype(float), "leaky_relu", X, 0.0))
    assert "out is DOUBLE, but the inputs are FLOAT: if the kernel's output is not, round" in text
    assert "out is DOUBLE" not in str(openaclnn.compare(X.astype(float), "elu", X.astype(float)))


def test_the_peer_is_what_is_expected():
    mine, other = X * np.float32(1.00001), X * np.float32(1.0001)
    found = openaclnn.compare(mine, "leaky_relu", X, 1.0, standard="peer", benchmark=other)
    worst = found.outputs[0].worst[0]
    assert worst.nearest[0] == other[worst.index] != X[worst.index]


def test_double_has_no_threshold():
    x = X.astype(np.float64)
    openaclnn.set_product("any")
    with pytest.raises(ValueError, match=r"^the single standard has numbers for FLOAT16, BFLOAT16"):
        openaclnn.compare(openaclnn.elu(x), "elu", x, standard="single")
