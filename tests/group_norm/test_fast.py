# SPDX-License-Identifier: Apache-2.0
"""Swish where fp32 computes it and where fp64 takes over: in groups whose |t| may exceed 44."""

from __future__ import annotations

import numpy as np
import pytest
from tests.group_norm.test_bits import VIEWS
from tests.group_norm.test_range import FORWARD, attributes_of
from tests.support import SEED, bits, results, same

from openaclnn.reference.evaluation import evaluate, ulp_error

ENDS = np.float32([-44, 44])
SCALES = (1.0, 1 - 2.0**-24, 1 + 2.0**-23, 1.702, -1.0)
POSITIONS = (1, 64, 65, 600)  # channels are short below 65


def silu(v):
    return v / (1 + np.exp(-v.astype(np.float64)))


def around(value, count=16):
    """So many neighbours on each side."""
    word = np.float32(value).view(np.int32)
    return (word + np.arange(-count, count + 1, dtype=np.int32)).view(np.float32)


def y_of(beta, positions, attributes):
    """y and the inputs with γ = 0, so that v is β; each channel is a group."""
    rng = np.random.default_rng(SEED)
    x = rng.normal(0, 1, (1, len(beta), positions)).astype(np.float32)
    inputs = [x, np.zeros_like(beta), beta]
    attributes["num_groups"] = len(beta)
    return results(FORWARD, inputs, attributes)[0], inputs


@pytest.mark.parametrize("positions", [1, 65])
def test_error_of_exact_t(positions):
    """The bound of swish.h: 1.63 ulp above zero, 3.89 below (all 2^32); 1 where fp64 computes y."""
    rng = np.random.default_rng(SEED)
    v = np.concatenate([rng.uniform(-60, 60, 3000), rng.normal(0, 1, 800), [0, 1e-40, -1e-30]])
    v = np.concatenate(
        [v.astype(np.float32), *map(around, ENDS), around(1.27678), around(-16.6805)]
    )
    y, _ = y_of(v, positions, attributes_of(FORWARD, swish_scale=1.0))
    error = ulp_error(y[0], np.broadcast_to(silu(v)[:, None], y[0].shape), "FLOAT").max(1)
    inside = np.abs(v) <= ENDS[1]
    for where, limit in ((v >= 0, 1.63), (v < 0, 3.89), (~inside, 1.0)):
        at = np.argmax(np.where(where, error, -1))
        assert error[at] <= limit, f"silu({v[at]!r}) is off by {error[at]:.3f} ulp, seed {SEED}"
    assert error[inside].max() > 1, "the formula is better than swish.h says"


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("positions", POSITIONS)
def test_ends(positions, scale):
    """t is s β rounded, and E as wrong as that: |t| 2^-24."""
    beta = np.concatenate([around(end / scale) for end in ENDS])
    attributes = attributes_of(FORWARD, swish_scale=scale)
    y, inputs = y_of(beta, positions, attributes)
    exact = evaluate(FORWARD, inputs, attributes)[0]
    error = np.abs(y - exact) / np.abs(exact)
    assert error.max() <= (50 if scale != 1.0 else 4) * 2.0**-23, f"{error.max() * 2**23} ulp"


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("positions", [(1,), (64,), (65,), (600,), (25, 24)], ids=str)
def test_bits_at_ends(positions, scale):
    """Each group is near or not by itself: tiles with both kinds, in every layout and in place."""
    rng = np.random.default_rng(SEED)
    beta = np.concatenate([around(end / scale) for end in ENDS] + [np.float32([0, -0.0])])
    x = rng.normal(0, 1, (1, len(beta), *positions)).astype(np.float32)
    attributes = attributes_of(FORWARD, swish_scale=scale, num_groups=len(beta))
    for gamma in (1e-5, 3.0, 0.0):
        gammas = np.full(len(beta), gamma, np.float32)
        expected = results(FORWARD, [x, gammas, beta], attributes)
        second = results(FORWARD, [x.repeat(2, 0), gammas, beta], attributes)[0][1:]
        assert (bits(second) == bits(expected[0])).all()
        for name, view in VIEWS.items():
            case = f"{name}, gamma {gamma}, seed {SEED}"
            assert same(results(FORWARD, [view(x), gammas, beta], attributes), expected), case
            given = view(x)
            out = (given, *map(np.zeros_like, expected[1:]))
            assert same(results(FORWARD, [given, gammas, beta], attributes, out), expected), case
