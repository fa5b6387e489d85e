# SPDX-License-Identifier: Apache-2.0
"""The clamp of Logit, where it is of one kind or another: registers are clamped as integers from
eps = 2^-100 up to where 1 - eps is no longer below 1."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support import SEED, bits

import openaclnn
from openaclnn.reference import CANONICAL_NAN, REFERENCES, ulp_error

BELOW_HALF = math.nextafter(0.5, 0)
SMALL = [2.0**-n * factor for n in (100, 99, 26, 25, 24) for factor in (1 - 2.0**-30, 1, 1.25)]


@pytest.mark.parametrize("eps", [5e-324, 2.0**-149, *SMALL, 0.49, BELOW_HALF, 0.5, 0.51])
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
@pytest.mark.parametrize("count", [1, 15, 16, 100])
def test_nan_of_either_sign(count, eps):
    x = np.full(count, 0.25, np.float32)
    x[count // 2] = np.copysign(np.float32(math.nan), -1)
    x[-1] = math.nan
    result = bits(openaclnn.logit(x, eps))
    assert result[count // 2] == result[-1] == CANONICAL_NAN["FLOAT"]
    assert (result[: count // 2] == bits(openaclnn.logit(x[:1], eps))).all()
