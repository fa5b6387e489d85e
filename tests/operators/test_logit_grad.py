# SPDX-License-Identifier: Apache-2.0
"""The precedence of LogitGrad as a lattice eps x x x dy, written out rule by rule."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.support import SEED, assert_accurate, bits

import openaclnn
from openaclnn.reference.evaluation import CANONICAL_NAN, dtype_name, numpy_dtype, ulp_error
from openaclnn.rows.table import OPS

INF, NAN = math.inf, math.nan
EPS_BEYOND = (NAN, INF, -INF, 1.5, 1.0 + 2.0**-52, 1.0, 0.75)
# next to a multiple of 2^-24, where 1 - eps in float64 is the float 1 - 2^-24, or 1
EPS_ROUNDED = (2.0**-24 * (1 + 2.0**-30), 2.0**-24 * (1 - 2.0**-30), 2.0**-54, 2.0**-60, 1e-20)
EPS = (*EPS_BEYOND, *EPS_ROUNDED, 0.5, 0.3, 1e-3, 1e-6, 1e-300, 0.0, -0.0, -1e-300, -1.0)
ENDS = (2.0**-24, 1 - 2.0**-8, 1e-45, 1e-38, 3e38, INF, -INF, NAN)
POINTS = (0.0, -0.0, 1.0, 0.5, 0.25, 0.75, -0.5, 1.5, *ENDS)
SLOPES = (1.0, -1.0, 0.0, -0.0, INF, -INF, NAN, -NAN, 1e-45, -1e-40, 3e38, 65504.0)


def expected(eps: float, x: float, dy: float) -> float:
    """The rules of the contract, the first that applies; x and dy are exact."""
    if math.isnan(eps):
        return NAN
    if eps == INF:
        return 0.0
    if eps > 1:
        return NAN
    if eps == 1:
        return math.copysign(INF, dy)
    if math.isnan(x):
        return NAN
    if eps >= 0 and (math.isinf(x) or not eps <= x <= 1 - Fraction(eps)):  # 1 - eps: all digits
        return 0.0
    if eps < 0 and not 0 <= x <= 1:
        return NAN
    with np.errstate(all="ignore"):
        return float(np.float64(dy) / np.float64(x * (1 - x)))


def lattice(dtype: str, eps: float):
    kind = numpy_dtype(dtype)
    with np.errstate(all="ignore"):
        near = [eps, 1 - eps] if 0 <= eps <= 1 else []
        points = np.array([*POINTS, *near]).astype(kind)
        unsigned = bits(points)
        around = np.concatenate([unsigned, unsigned + 1, unsigned - 1]).view(kind)  # and neighbours
        x, dy = np.meshgrid(around, np.array(SLOPES).astype(kind))
    return x.reshape(-1), dy.reshape(-1)


@pytest.mark.parametrize("eps", EPS)
@pytest.mark.parametrize("dtype", ["FLOAT", "FLOAT16", "BFLOAT16"])
def test_precedence(dtype, eps):
    x, dy = lattice(dtype, eps)
    result = openaclnn.logit_grad(x, dy, eps)
    for a, b, y in zip(x, dy, result, strict=True):
        with np.errstate(all="ignore"):
            exact = expected(eps, float(a), float(b))
            rounded = np.float64(exact).astype(np.float32).astype(result.dtype)  # or next to it
        what = f"logit_grad({a}, {b}, {eps}) is {y}, must be {exact}"
        if math.isnan(exact):
            assert bits(y.reshape(1))[0] == CANONICAL_NAN[dtype_name(result.dtype)], what
        elif math.isinf(exact) or exact == 0:
            assert (y == exact) & (np.signbit(y) == (math.copysign(1, exact) < 0)), what
        else:
            assert abs(int(bits(y.reshape(1))[0]) - int(bits(rounded.reshape(1))[0])) <= 1, what


def test_eps_is_never_rounded():
    """1e-3 is between two bfloat16 values: torch rounds it, and 1 - 1e-3 to 1, and returns inf."""
    one = np.ones(1, numpy_dtype("BFLOAT16"))
    assert openaclnn.logit_grad(one, one, 1e-3)[0] == 0
    assert float(openaclnn.logit(one, 1e-3)[0]) == 6.90625
    x = np.array([1e-3], np.float32)  # a little above 1e-3
    assert openaclnn.logit_grad(x, np.ones_like(x), float(x[0]))[0] > 0
    assert openaclnn.logit_grad(x, np.ones_like(x), np.nextafter(float(x[0]), 1))[0] == 0


def test_no_digits_are_lost_at_the_ends():
    x = np.array([2.0**-24, 1e-30, 1 - 2.0**-24, 0.1], np.float32)
    exact = 1 / (x.astype(np.float64) * (1 - x.astype(np.float64)))
    assert ulp_error(openaclnn.logit_grad(x, np.ones_like(x)), exact, "FLOAT").max() <= 0.51


@pytest.mark.parametrize("eps", [-1, 0, 2.0**-60, 2.0**-40, 1e-6, 0.0078125])
def test_digits_of_results_from_one_end_of_the_range_to_the_other(eps):
    """At most 0.51 ulp and 2^-150. Usual values alone, which `fast` computes, have the bits that
    they have among unusual ones."""
    rng = np.random.default_rng(SEED)
    n, half = 300_000, 0x3F000000
    near_0 = rng.integers(0, half, n, dtype=np.uint32).view(np.float32)  # subnormal ones, too
    near_1 = 1 - rng.integers(half - (24 << 23), half, n, dtype=np.uint32).view(np.float32)
    x = np.concatenate([near_0, near_1, rng.random(n, np.float32)])
    dy = rng.integers(0, 0xFF800001, 3 * n, dtype=np.uint32).view(np.float32)
    ordinary = rng.standard_normal(3 * n).astype(np.float32)
    dy = np.where(np.isnan(dy) | (rng.random(3 * n) < 0.5), ordinary, dy)
    result = openaclnn.logit_grad(x, dy, eps)
    (op,) = (op for op in OPS if op.python == "logit_grad")
    assert_accurate(op, [x, dy], {"eps": eps}, result, SEED)
    usual = (np.minimum(x, 1 - x) >= 2.0**-51) & (np.abs(result) < 2.0**100)
    alone = openaclnn.logit_grad(x[usual], dy[usual], eps)
    assert usual.sum() > n
    assert (bits(alone) == bits(result[usual])).all(), f"seed {SEED}"
