# SPDX-License-Identifier: Apache-2.0
"""Group norm at the ends of fp32: huge and tiny values, infinities, rstd = inf, for short and long
channels."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support import SEED, all_rows, assert_accurate, bits, results

import openaclnn
from openaclnn.reference.evaluation import REFERENCES, absolute_terms, evaluate
from openaclnn.reference.formulas_group_norm import BOUND

FORWARD, GRADIENT = sorted(
    (p.values[0] for p in all_rows(lambda op: op.family == "group_norm")),
    key=lambda op: "grad" in op.python,
)
POSITIONS = (1, 4, 64, 65, 600)  # channels are short below 65
GAMMA = np.array([1, 2, 0, -1.5], np.float32)
BETA = np.array([0.5, 0, 1, 2], np.float32)


def attributes_of(op, **more):
    return {**REFERENCES[op.kernel].attributes[0], "num_groups": 1, **more}


def ends(positions):
    """Values near ±3.4e38, a distance to the mean beyond it, constants and subnormal numbers."""
    n = 4 * positions
    i = np.arange(n)
    return {
        "huge": np.where(i % 2, 3.2e38, -3.2e38),
        "one huge": np.where(i == n - 1, 3.3e38, -3e38),
        "one of both": np.where(i == 0, 3.4e38, np.where(i == 1, -3.4e38, 0)),
        "subnormal": i * 2.0**-149,
        "a few subnormal": i % 3 * 1e-41,
        "constant": np.full(n, 0.3),
    }


@pytest.mark.parametrize("activate", [True, False], ids=["swish", "plain"])
@pytest.mark.parametrize("scale", [1.0, 0.0, 1e-38, 100.0])
@pytest.mark.parametrize("positions", POSITIONS)
def test_forward_without_eps(positions, scale, activate):
    """rstd = inf makes NaN, as 0 * inf in the formula; everything else is a number."""
    attributes = attributes_of(FORWARD, eps=0.0, swish_scale=scale, activate_swish=activate)
    for name, values in ends(positions).items():
        x = values.astype(np.float32).reshape(1, 4, positions)
        y, mean, _ = results(FORWARD, [x, GAMMA, BETA], attributes)
        assert np.isnan(y).all() if name == "constant" else np.isfinite(y).all(), name
        assert np.isfinite(mean).all()
        with np.errstate(all="ignore"):
            exact = evaluate(FORWARD, [x, GAMMA, BETA], attributes)[0]
        scaled = np.abs(y - exact) / (1 + np.abs(exact))
        assert name == "constant" or scaled.max() <= 4e-6, f"{name}: {scaled.max()}"


@pytest.mark.parametrize("scale", [1e-44, 1e-46, -1e-46, 5e-324, 0.0])
@pytest.mark.parametrize("positions", POSITIONS)
def test_infinite_beta_and_a_scale_that_fp32_rounds_to_0(positions, scale):
    """swish(±inf) is an infinity or NaN by the sign of the scale; 0 alone makes NaN of both."""
    x = np.linspace(-1, 1, 4 * positions, dtype=np.float32).reshape(1, 4, positions)
    beta = np.array([np.inf, 0, -np.inf, 1], np.float32)
    attributes = attributes_of(FORWARD, swish_scale=scale)
    y = results(FORWARD, [x, GAMMA, beta], attributes)[0]
    with np.errstate(all="ignore"):
        exact = evaluate(FORWARD, [x, GAMMA, beta], attributes)[0]
    assert (np.isnan(y) == np.isnan(exact)).all()
    assert (y == exact)[np.isinf(exact)].all()
    assert np.isinf(exact).any() == (scale != 0)


@pytest.mark.parametrize("activate", [True, False], ids=["swish", "plain"])
@pytest.mark.parametrize("positions", [8, 32, 600])
def test_forward_of_a_mean_that_fp32_rounds_up(positions, activate):
    """To 2^103, from which the distance of -3.4e38 rounds to infinity."""
    n, step, total = 4 * positions, 2.0**80, 4 * positions * (2.0**103 - 2.0**77)
    x = np.full(n, total / (n - 2) // step * step)
    x[:2] = -np.finfo(np.float32).max, np.finfo(np.float32).max
    x[2:][: int((total - x.sum()) / step)] += step
    x = x.astype(np.float32)
    mean = x.astype(np.float64).mean()
    assert mean < 2.0**103 == np.float32(mean)
    x = x.reshape(1, 4, positions)
    attributes = attributes_of(FORWARD, eps=0.0, swish_scale=1e-2, activate_swish=activate)
    y = results(FORWARD, [x, GAMMA, BETA], attributes)[0]
    exact = evaluate(FORWARD, [x, GAMMA, BETA], attributes)[0]
    assert np.abs(y - exact).max() <= 4e-6 * np.abs(exact).max(), y.reshape(-1)[:3]


@pytest.mark.parametrize(
    ("mean", "rstd", "gamma"),
    [(2.9e38, 1e-38, 1), (2.9e38, 1e-8, 1e30), (0, 1e20, 1e25), (0, 1.0, 1)],
)
@pytest.mark.parametrize("positions", POSITIONS)
def test_gradient(positions, mean, rstd, gamma):
    """x - mean, or rstd γ, is beyond fp32; so may be dx, and then it is an infinity, not NaN."""
    n = 4 * positions
    size = np.float32(3e38 if mean else 1)
    x = np.where(np.arange(n) % 2, size, -size).astype(np.float32).reshape(1, 4, positions)
    dy = np.linspace(-1, 1, n, dtype=np.float32).reshape(x.shape)
    one = np.ones((1, 1), np.float32)
    inputs = [dy, one * np.float32(mean), one * np.float32(rstd), x, GAMMA * np.float32(gamma)]
    inputs.append(BETA)
    attributes = attributes_of(GRADIENT)
    found = results(GRADIENT, inputs, attributes)
    exact, terms = (f(GRADIENT, inputs, attributes) for f in (evaluate, absolute_terms))
    for result, value, scale in zip(found, exact, terms, strict=True):
        over = np.abs(value) > np.finfo(np.float32).max
        assert (result[over] == np.copysign(np.inf, value[over])).all()
        assert (np.abs(result - value)[~over] <= BOUND["FLOAT"] * scale[~over]).all()


@pytest.mark.parametrize("rstd", [2.0**-10, 2.0**-11, 2.0**10, 2.0**11])
@pytest.mark.parametrize("positions", POSITIONS)
def test_gradient_where_sums_of_x_hat_begin(positions, rstd):
    """Rows sum u (x - mean) for rstd from 2^-10 to 2^10, else u x̂; and |t| goes beyond 44.3, where
    elements are computed in fp64. The bits are those of every layout."""
    rng = np.random.default_rng(SEED)
    x = (rng.normal(0, 1, (1, 4, positions)) / rstd).astype(np.float32)
    dy = rng.normal(0, 1, x.shape).astype(np.float32)
    statistics = np.array([[[0.1 / rstd]], [[rstd]]], np.float32)
    for gamma in (GAMMA, 20 * GAMMA):
        inputs = [dy, *statistics, x, gamma, BETA]
        attributes = attributes_of(GRADIENT)
        found = results(GRADIENT, inputs, attributes)
        assert_accurate(GRADIENT, inputs, attributes, found, SEED)
        last = [np.moveaxis(np.moveaxis(t, 1, -1).copy(), -1, 1) for t in (dy, x)]
        moved = [last[0], *statistics, last[1], gamma, BETA]
        into = (np.zeros_like(last[0]), *map(np.zeros_like, found[1:]))
        for given, out in ((moved, into), (moved, None), (inputs, into)):
            for a, b in zip(results(GRADIENT, given, attributes, out), found, strict=True):
                assert (bits(a) == bits(b)).all(), f"seed {SEED}"


@pytest.mark.parametrize(
    ("rstd", "size"),
    [(1e-6, 1e33), (1e6, 1e-37), (1e-6, 1e-28), (2.0**-10, 1e-33), (2.0**10, 1e-32)],
)
@pytest.mark.parametrize("positions", POSITIONS)
def test_gradient_of_tiny_and_huge_dy(positions, rstd, size):
    """u (x - mean), or rstd^2 mean(u x̂), would leave fp32 or lose digits where u x̂ does not."""
    rng = np.random.default_rng(SEED)
    x = (rng.normal(0, 1, (1, 4, positions)) / rstd).astype(np.float32)
    for dy in (rng.normal(0, 1, x.shape), np.sign(x)):
        inputs = [(dy * size).astype(np.float32), *np.array([[[0]], [[rstd]]], np.float32), x]
        inputs += [GAMMA, BETA]
        attributes = attributes_of(GRADIENT)
        assert_accurate(GRADIENT, inputs, attributes, results(GRADIENT, inputs, attributes), SEED)


@pytest.mark.parametrize("positions", POSITIONS)
def test_gradient_of_huge_x_hat(positions):
    """x̂ and its products with u would leave fp32, while dy and x - mean are ordinary."""
    rng = np.random.default_rng(SEED)
    for of_dy, of_x, rstd in ((2e-6, 1e15, 1e24), (1e7, 1e15, 1e14), (1e-12, 1e-6, 1e24)):
        dy, x = rng.normal(0, 1, (2, 1, 4, positions)) * [[[[of_dy]]], [[[of_x]]]]
        statistics = np.array([[[0]], [[rstd]]], np.float32)
        zero = np.zeros(4, np.float32)
        inputs = [dy.astype(np.float32), *statistics, x.astype(np.float32), zero, zero]
        attributes = attributes_of(GRADIENT)
        found = results(GRADIENT, inputs, attributes)
        assert_accurate(GRADIENT, inputs, attributes, found, SEED)
        assert np.isfinite(found[1]).all()


def places(positions):
    """Every place of a group, or, where they are many, some of each block and lane."""
    n = 4 * positions
    return range(0, n, 1 if n <= 260 else 37)


BOTH = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@BOTH
@pytest.mark.parametrize("positions", POSITIONS)
def test_one_infinity_anywhere(positions, dtype):
    """The mean equals the sum: ±inf for infinities of one sign, else NaN; rstd and y are NaN."""
    openaclnn.set_product(None)  # which accepts DOUBLE
    n = 4 * positions
    clean = np.random.default_rng(SEED).normal(0, 1, n).astype(dtype)
    for at in places(positions):
        for value, more in ((np.inf, 0), (-np.inf, 0), (np.inf, np.inf), (np.inf, -np.inf)):
            x = clean.copy()
            x[at] = value
            if more:
                x[(at + n // 2) % n] = more
            inputs = [x.reshape(1, 4, positions), GAMMA.astype(dtype), BETA.astype(dtype)]
            y, mean, rstd = results(FORWARD, inputs, attributes_of(FORWARD))
            assert np.isnan(y).all()
            assert np.isnan(rstd).all()
            assert mean[0, 0] == value if value + more == value else np.isnan(mean[0, 0]), at


@BOTH
@pytest.mark.parametrize("positions", POSITIONS)
def test_gradient_of_one_infinity_anywhere(positions, dtype):
    """With finite statistics an infinite x makes dgamma and dbeta of its channel and dx NaN."""
    openaclnn.set_product(None)
    n = 4 * positions
    rng = np.random.default_rng(SEED)
    clean, dy = (rng.normal(0, 1, n).astype(dtype).reshape(1, 4, -1) for _ in range(2))
    of_groups = np.zeros((1, 1), dtype), np.ones((1, 1), dtype)
    of_channels = GAMMA.astype(dtype), BETA.astype(dtype)
    for at in places(positions):
        hit = np.arange(4) == at // positions
        for value in (np.inf, -np.inf):
            x, large = clean.copy(), dy.copy()
            x.flat[at] = large.flat[at] = value
            dx, dgamma, dbeta = openaclnn.group_norm_swish_grad(dy, *of_groups, x, *of_channels, 1)
            assert np.isnan(dx).all(), at
            assert (np.isnan(dgamma) == hit).all(), at
            assert (np.isnan(dbeta) == hit).all(), at
            # an infinite dy makes the sums of its channel infinite
            _, dgamma, dbeta = openaclnn.group_norm_swish_grad(
                large, *of_groups, clean, *of_channels, 1
            )
            assert (np.isinf(dgamma) == hit).all(), at
            assert (np.isinf(dbeta) == hit).all(), at


@BOTH
@pytest.mark.parametrize("positions", POSITIONS)
def test_gradient_of_infinite_parameters(positions, dtype):
    """Where a statistic or a parameter is infinite, so is t, and swish' has infinity times 0."""
    openaclnn.set_product(None)
    dy, x = np.random.default_rng(SEED).normal(0, 1, (2, 1, 4, positions)).astype(dtype)
    usual = [dy, *np.array([[[0.1]], [[1]]], dtype), x, GAMMA.astype(dtype), BETA.astype(dtype)]
    for i in (1, 2, 4, 5):
        for value in (np.inf, -np.inf):
            inputs = [t.copy() for t in usual]
            inputs[i].flat[-1] = value
            attributes = attributes_of(GRADIENT)
            with np.errstate(all="ignore"):
                exact = evaluate(GRADIENT, inputs, attributes)
            assert all(np.isnan(value).any() for value in exact)
            for found, value in zip(results(GRADIENT, inputs, attributes), exact, strict=True):
                assert (np.isnan(found) == np.isnan(value)).all(), f"input {i}, seed {SEED}"
