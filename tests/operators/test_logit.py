# SPDX-License-Identifier: Apache-2.0
"""The clamp of Logit has several kinds. Registers are clamped as words for eps from 2^-24 to 1/2,
both excluded, unless the float nearest to eps has another result. For eps up to 2^-24 the upper
end is 1, and below 2^-100 everything is wide."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.support import SEED, bits

import openaclnn
from openaclnn.reference.evaluation import CANONICAL_NAN, REFERENCES, ulp_error

BELOW_HALF = math.nextafter(0.5, 0)
SMALL = [
    2.0**-n * factor
    for n in (100, 99, 26, 25, 24, 23, 22)
    for factor in (1 - 2.0**-30, 1, 1 + 2.0**-28, 1.25)
]


@pytest.mark.parametrize(
    "eps",
    [
        5e-324,
        2.0**-149,
        2.0**-60,
        2.0**-54,
        2.0**-53,
        1e-15,
        *SMALL,
        1e-6,
        0.1,
        0.3,
        0.4,
        0.49,
        BELOW_HALF,
        0.5,
        0.51,
    ],
)
def test_clamp(eps):
    near = np.array([eps, 1 - eps, 0.5, 1], np.float32)
    near = np.concatenate([near, np.nextafter(near, 2), np.nextafter(near, -2), -near])
    ends = np.array([0.0, -0.0, 1e-45, 1e-38, 3e38, -3e38, math.inf, -math.inf], np.float32)
    random = np.random.default_rng(SEED).random(2000, np.float32)
    x = np.concatenate([near, ends, random, random * np.float32(2.0**-24), 1 - random / 2**20])
    result = openaclnn.logit(x, eps)
    with np.errstate(all="ignore"):
        exact = REFERENCES["logit"].formula(x.astype(np.float64), eps=eps)
    error = ulp_error(result, exact, "FLOAT")
    worst = error.argmax()
    assert error[worst] <= 1, f"logit({x[worst]}, {eps}) is {result[worst]}, not {exact[worst]}"


@pytest.mark.parametrize("eps", [2.0**-26, 1e-6, 0.5, 0.75, -1.0])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("count", [1, 15, 16, 100])
def test_nan_of_either_sign(count, sign, eps):
    x = np.full(count, 0.25, np.float32)
    expected = bits(openaclnn.logit(x, eps))
    for at in {0, count // 2, count - 1}:
        x[at], expected[at] = np.copysign(np.float32(math.nan), sign), CANONICAL_NAN["FLOAT"]
    assert (bits(openaclnn.logit(x, eps)) == expected).all()


@pytest.mark.parametrize("eps", [5e-324, 1e-300, 2.0**-60, 2.0**-54, 2.0**-53, 1e-15])
def test_one_is_above_one_less_eps(eps):
    """Whatever eps > 0 is, though 1 - eps in float64 may be 1: logit(1 - eps) is -logit(eps)."""
    one = np.ones(3, np.float32)
    assert ulp_error(openaclnn.logit(one, eps), -math.log(eps) + 0 * one, "FLOAT").max() <= 1
    assert (openaclnn.logit_grad(one, one, eps) == 0).all()
