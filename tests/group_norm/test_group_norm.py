# SPDX-License-Identifier: Apache-2.0
"""GroupNormSwish and its gradient: values against the reference, optional outputs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.support import (
    HALVES,
    SEED,
    all_rows,
    arguments,
    assert_accurate,
    bits,
    results,
)

import openaclnn
from openaclnn.reference.evaluation import REFERENCES, absolute_terms, numpy_dtype, sample
from openaclnn.reference.formulas_group_norm import BOUND

GROUPED = all_rows(lambda op: op.family == "group_norm")
# Shapes and groups: short and long channels, one position, one element a group, ragged rows,
# groups wider than what is worked on together, many samples, every rank.
SHAPES = (
    ((3, 6), 2), ((1, 4), 4), ((2, 4000), 1), ((300, 8), 2), ((2, 8, 5), 4), ((5, 40, 3, 2, 2), 4),
    ((1, 512, 1, 1), 512), ((4, 64, 7, 7), 1), ((1, 32, 8, 8), 8), ((2, 1200, 31), 1),
    ((70, 12, 33), 3), ((1, 2, 1, 1, 1, 2, 3, 7), 2), ((1, 1, 17000), 1), ((2, 6, 40, 30), 3),
    ((1, 3, 64, 1025), 1), ((1, 80, 4, 8), 2), ((1, 128, 7, 7), 128), ((1, 68, 60), 2),
    ((2, 512, 3, 3), 128),
)  # fmt: skip


def with_groups(op, groups, **more):
    return {**REFERENCES[op.kernel].attributes[0], "num_groups": groups, **more}


@pytest.mark.parametrize(("shape", "groups"), SHAPES, ids=str)
@pytest.mark.parametrize("op", GROUPED)
def test_shapes(op, shape, groups):
    attributes = with_groups(op, groups)
    for dtype in op.dtypes:
        inputs = sample(op, shape, dtype, SEED, attributes)
        assert_accurate(op, inputs, attributes, results(op, inputs, attributes), SEED)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("op", GROUPED)
def test_half_beside_float(op, dtype):
    """x, dy, y and dx of 16 bits, the rest FLOAT."""
    for shape, groups in SHAPES[::3]:
        attributes = with_groups(op, groups)
        inputs = sample(op, shape, dtype, SEED, attributes, companion="FLOAT")
        found = results(op, inputs, attributes)
        for p, x in zip(op.outputs, found, strict=True):
            assert x.dtype == numpy_dtype("FLOAT" if p.companion else dtype)
        assert_accurate(op, inputs, attributes, found, SEED)


def gradient_row():
    return next(p.values[0] for p in GROUPED if "grad" in p.values[0].python)


def forward_row():
    return next(p.values[0] for p in GROUPED if "grad" not in p.values[0].python)


@pytest.mark.parametrize("ratio", [0, 10, 1e3, 1e4])
@pytest.mark.parametrize("positions", [1, 40, 5000])
def test_a_mean_far_above_the_deviation(ratio, positions):
    forward, gradient = forward_row(), gradient_row()
    rng = np.random.default_rng(SEED)
    x = (rng.normal(0, 1, (2, 8, positions)) + ratio).astype(np.float32)
    dy = rng.normal(0, 1, x.shape).astype(np.float32)
    gamma, beta = np.linspace(0.5, 1.5, 8, dtype=np.float32), np.zeros(8, np.float32)
    attributes = with_groups(forward, 2)
    y, mean, rstd = results(forward, [x, gamma, beta], attributes)
    # the terms of y do not hold the mean: one fp32 mean of 1e4 would be far beyond the bound
    assert_accurate(forward, [x, gamma, beta], attributes, (y, mean, rstd), SEED)
    inputs, attributes = [dy, mean, rstd, x, gamma, beta], with_groups(gradient, 2)
    assert_accurate(gradient, inputs, attributes, results(gradient, inputs, attributes), SEED)


@pytest.mark.parametrize("scale", [1.0, -1.0, 1e30, 1e300])
def test_large_v(scale):
    """Finite in, finite out: where σ is 0 or 1 nothing becomes inf - inf."""
    for positions in (1, 64, 65, 1000):
        x = np.linspace(-2, 2, 4 * positions, dtype=np.float32).reshape(1, 4, positions)
        dy, gamma = np.ones_like(x), np.array([1e30, -1e20, 3e38, 90], np.float32)
        beta = np.array([-3e38, 3e38, 0, -90], np.float32)
        one = np.ones((1, 1), np.float32)
        with np.errstate(all="ignore"):
            y, *_ = openaclnn.group_norm_swish(x, gamma, beta, 1, swish_scale=scale)
            v = (x - 0.0) * gamma[None, :, None] + beta[None, :, None]
        assert not np.isnan(y).any()
        found = openaclnn.group_norm_swish_grad(
            dy, 0 * one, one, x, gamma, beta, 1, swish_scale=scale
        )
        dbeta = found[2]
        assert np.isfinite(dbeta).all()
        assert (np.abs(dbeta) <= 1.1 * positions).all(), v


def test_values_that_peers_flush():
    """σ(v) is subnormal below v = -87.3, v σ(v) is not."""
    v = -np.linspace(40, 100, 64, dtype=np.float32)  # below -44.3 in fp64
    dy, x = np.full((1, 1, 64), 1e6, np.float32), v.reshape(1, 1, 64)
    zero, one = np.zeros((1, 1), np.float32), np.ones((1, 1), np.float32)
    attributes = with_groups(gradient_row(), 1)
    for i in range(64):
        inputs = [dy[..., i], zero, one, x[..., i], one[0], zero[0]]
        dbeta = results(gradient_row(), inputs, attributes)[2]
        exact = 1e6 * np.exp(np.float64(v[i])) * (1 + np.float64(v[i]))
        assert abs(dbeta[0] - exact) <= 1e-5 * abs(exact), v[i]


@pytest.mark.parametrize("op", GROUPED)
def test_not_a_number_stays_in_its_group(op):
    for shape in ((2, 4, 3), (2, 4, 100)):
        attributes = with_groups(op, 2)
        inputs = sample(op, shape, "FLOAT", SEED, attributes)
        clean = results(op, inputs, attributes)[0]
        position = [p.name for p in op.input_tensors].index("x")
        inputs[position][1, 3, 1] = np.nan
        found = results(op, inputs, attributes)
        assert np.isnan(found[0][1, 2:]).all()
        assert (bits(found[0][0]) == bits(clean[0])).all()
        assert (bits(found[0][1, :2]) == bits(clean[1, :2])).all()
        assert_accurate(op, inputs, attributes, found, SEED)


# ---- gradients, checked against differences of the forward in float64 ----


def test_the_formula_is_the_derivative_of_the_forward():
    forward, gradient = forward_row(), gradient_row()
    rng = np.random.default_rng(SEED)
    shape, attributes = (2, 6, 5), with_groups(forward, 3, eps=0.0, swish_scale=1.3)
    x, dy = rng.normal(0.3, 1, shape), rng.normal(0, 1, shape)
    gamma, beta = rng.normal(1, 0.3, 6), rng.normal(0, 0.5, 6)
    formula = REFERENCES[forward.kernel].formula

    def loss(x, gamma, beta):
        return float((formula(x, gamma, beta, **attributes)[0] * dy).sum())

    _, mean, rstd = formula(x, gamma, beta, **attributes)
    found = REFERENCES[gradient.kernel].formula(
        dy, mean, rstd, x, gamma, beta, num_groups=3, swish_scale=1.3
    )
    step = 1e-5
    for place, derivative in enumerate(found):
        values = [x, gamma, beta]
        for index in np.ndindex(derivative.shape):
            up, down = ([v.copy() for v in values] for _ in range(2))
            up[place][index] += step
            down[place][index] -= step
            slope = (loss(*up) - loss(*down)) / (2 * step)
            assert abs(slope - derivative[index]) < 1e-7, (place, index)


def test_the_gradient_of_torch_in_float64():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    op, attributes = gradient_row(), with_groups(gradient_row(), 3)
    rng = np.random.default_rng(SEED)
    for shape in ((3, 6, 4, 5), (2, 12, 9, 8)):
        x, dy = (rng.normal(0.3, 1, shape).astype(np.float32) for _ in range(2))
        gamma, beta = (rng.normal(1, 0.3, shape[1]).astype(np.float32) for _ in range(2))
        leaves = [
            torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (x, gamma, beta)
        ]
        eps = 1e-5
        y = torch.nn.functional.silu(torch.nn.functional.group_norm(leaves[0], 3, *leaves[1:], eps))
        y.backward(torch.tensor(dy, dtype=torch.float64))
        parts = x.astype(np.float64).reshape(shape[0], 3, -1)
        mean, rstd = parts.mean(2), 1 / np.sqrt(parts.var(2) + eps)
        inputs = [dy, mean.astype(np.float32), rstd.astype(np.float32), x, gamma, beta]
        terms = absolute_terms(op, inputs, attributes)
        bound = BOUND["FLOAT"] + 2 * 2**-24  # mean and rstd are rounded
        for found, leaf, scale in zip(results(op, inputs, attributes), leaves, terms, strict=True):
            assert (np.abs(found - leaf.grad.numpy()) <= bound * scale).all()


# ---- outputs that may be absent ----


@pytest.mark.parametrize("shape", [(2, 12, 5), (2, 12, 50)])
def test_outputs_that_are_not_required(shape):
    op = gradient_row()
    for dgamma, dbeta in itertools.product((True, False), repeat=2):
        flags = {"dgamma_is_require": dgamma, "dbeta_is_require": dbeta}
        attributes = with_groups(op, 4) | flags
        inputs = sample(op, shape, "FLOAT", SEED, attributes)
        full = results(op, inputs, with_groups(op, 4))
        for x, wanted, whole in zip(
            results(op, inputs, attributes), (True, dgamma, dbeta), full, strict=True
        ):
            assert (x is not None) == wanted
            assert x is None or (bits(x) == bits(whole)).all()
        out = tuple(np.full_like(x, 7) for x in full)  # given, and yet left alone
        given = results(op, inputs, attributes, out)
        for x, wanted, whole in zip(given, (True, dgamma, dbeta), full, strict=True):
            assert (x == (whole if wanted else 7)).all()
        named = arguments(op, shape)
        for p in op.outputs:
            if p.condition:
                named[p.condition] = False
                named[p.name] = None
        openaclnn.plan(op.name, **named).run()


def test_statistics_of_any_shape():
    op = gradient_row()
    attributes = with_groups(op, 4)
    inputs = sample(op, (2, 12, 40), "FLOAT", SEED, attributes)
    expected = results(op, inputs, attributes)
    for shape in ((8,), (2, 4, 1, 1), (2, 2, 2), (2, 1, 4)):
        other = list(inputs)
        other[1:3] = (x.reshape(shape) for x in inputs[1:3])
        strided = [np.repeat(x, 2, axis=-1)[..., ::2] for x in other[1:3]]
        for statistics in (other[1:3], strided):
            other[1:3] = statistics
            for a, b in zip(results(op, other, attributes), expected, strict=True):
                assert (bits(a) == bits(b)).all()
