# SPDX-License-Identifier: Apache-2.0
"""Group norm from the least subnormal number to where fp32 ends: every output within 4e-7 of the
sum of its absolute terms, whatever the sizes of x, dy, gamma and eps. Products of the gradient are
held in fp32: each term may be wrong by the least subnormal number times its factors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.group_norm.test_bits import VIEWS
from tests.group_norm.test_range import FORWARD, GRADIENT, attributes_of
from tests.support import SEED, bits, results, same

from openaclnn.reference.evaluation import absolute_terms, evaluate
from openaclnn.reference.formulas_group_norm import BOUND

POSITIONS = (1, 4, 64, 65, 600)  # channels are short below 65
OF_X = (1e-45, 1e-43, 1e-40, 1e-36, 1e-25, 1e-10, 1.0, 1e20, 3e37)
OF_DY = (1e-45, 1e-42, 1e-38, 1e-30, 1e-22, 1e-10, 1.0, 1e10, 1e25, 1e36)
OF_GAMMA = (1e-45, 1e-37, 1e-20, 1.0, 1e20, 1e38)
LEAST = 2.0**-149  # a subnormal result may be rounded twice


def statistics(x, eps, groups=2):
    parts = x.astype(np.float64).reshape(x.shape[0], groups, -1)
    with np.errstate(all="ignore"):
        rstd = np.minimum(1 / np.sqrt(parts.var(axis=2) + eps), 3e38)
    return parts.mean(axis=2).astype(np.float32), rstd.astype(np.float32)


def drawn(positions):
    """For every size: x, dy, gamma, beta and attributes, and what they are called."""
    rng = np.random.default_rng(SEED)
    x, dy = rng.normal(0.3, 1, (2, 4, positions)), rng.normal(0, 1, (2, 4, positions))
    gamma, beta = np.float64([1, -2, 0.5, 1.5]), np.float64([1, 0, -0.5, 2])
    with np.errstate(all="ignore"):
        for of_x, eps, of_gamma, of_beta in itertools.product(
            OF_X, (0.0, 1e-12, 1e-5), OF_GAMMA, (0.0, 1.0)
        ):
            yield (
                *((x * of_x).astype(np.float32), dy, (gamma * of_gamma).astype(np.float32)),
                *((beta * of_beta).astype(np.float32), eps),
                f"x {of_x}, eps {eps}, gamma {of_gamma}, beta {of_beta}, seed {SEED}",
            )


def least_of(inputs, groups):
    """What the outputs of the gradient may be wrong by (numerics.md, "Small values")."""
    dy, _, rstd, x, gamma, _ = (np.abs(t.astype(np.float64)) for t in inputs)
    others = (0, *range(2, x.ndim))
    of_channels = rstd.reshape(x.shape[0], groups).repeat(x.shape[1] // groups, axis=1)
    of_channels = of_channels.reshape(*x.shape[:2], *(1,) * (x.ndim - 2))
    terms = x.size / x.shape[1]
    dx = 1 + of_channels * gamma.reshape(1, -1, *(1,) * (x.ndim - 2))
    return LEAST * dx, LEAST * ((1 + rstd.max()) * terms + dy.sum(axis=others)), LEAST * terms


def assert_within(op, inputs, attributes, case):
    """Where the result and the terms are in the range of fp32."""
    least = least_of(inputs, attributes["num_groups"]) if op is GRADIENT else 3 * (LEAST,)
    found = results(op, inputs, attributes)
    exact, terms = (f(op, inputs, attributes) for f in (evaluate, absolute_terms))
    with np.errstate(all="ignore"):
        for p, x, value, scale, more in zip(op.outputs, found, exact, terms, least, strict=True):
            known = np.isfinite(value) & (np.abs(value) < 3e38) & (scale < 1e300)
            error = np.abs(x - value) / (BOUND["FLOAT"] * scale + more)
            worst = np.where(known, np.where(np.isnan(error), np.inf, error), 0).max()
            assert worst <= 1, f"{p.name}, {case}: {worst:.3f} of the bound"


@pytest.mark.parametrize("activate", [True, False], ids=["swish", "plain"])
@pytest.mark.parametrize("positions", POSITIONS)
def test_forward(positions, activate):
    for x, _, gamma, beta, eps, case in drawn(positions):
        attributes = attributes_of(FORWARD, num_groups=2, eps=eps, activate_swish=activate)
        assert_within(FORWARD, [x, gamma, beta], attributes, case)


@pytest.mark.parametrize("positions", POSITIONS)
def test_gradient(positions):
    """A fifth of the combinations: every size of dy meets every size of each other one."""
    attributes = attributes_of(GRADIENT, num_groups=2)
    for i, (x, dy, gamma, beta, eps, case) in enumerate(drawn(positions)):
        mean, rstd = statistics(x, eps)
        for of_dy in OF_DY[i % 5 :: 5]:
            with np.errstate(all="ignore"):
                given = (dy * of_dy).astype(np.float32)
            inputs = [given, mean, rstd, x, gamma, beta]
            assert_within(GRADIENT, inputs, attributes, f"dy {of_dy}, {case}")


@pytest.mark.parametrize("positions", [(1,), (5, 8), (9, 60), (17000,)], ids=str)
def test_bits(positions):
    """Groups that need exact, beside groups that do not: the same bits in every layout, in place,
    over dy, and beside other samples."""
    rng = np.random.default_rng(SEED)
    shape = (2, 24, *positions)
    of_rows = 10.0 ** rng.choice([-42, -30, -12, 0, 30], (2, 24) + (1,) * len(positions))
    dy = (rng.normal(0, 1, shape) * of_rows).astype(np.float32)
    dy[:, ::5] = 0
    gamma, beta = (rng.normal(0, 1, 24).astype(np.float32) for _ in range(2))
    for of_x in (1e-41, 1e-20, 1.0):
        x = (rng.normal(0.3, 1, shape) * of_x).astype(np.float32)
        mean, rstd = statistics(x, 1e-5, 12)
        for op, inputs in (
            (FORWARD, [x, gamma, beta]),
            (GRADIENT, [dy, mean, rstd, x, gamma, beta]),
        ):
            attributes = attributes_of(op, num_groups=12)
            expected = results(op, inputs, attributes)
            for name, view in VIEWS.items():
                case = f"{op.name}, {name}, x {of_x}, seed {SEED}"
                given = [view(t) if t.ndim == len(shape) else t for t in inputs]
                assert same(results(op, given, attributes), expected), case
                for over in [t for t in given if t.ndim == len(shape)]:
                    target = view(over)
                    again = [target if t is over else t for t in given]
                    out = (target, *map(np.zeros_like, expected[1:]))
                    assert same(results(op, again, attributes, out), expected), f"{case}, in place"
                    for t, first in zip(given, inputs, strict=True):
                        assert (bits(t) == bits(first)).all(), "an input was written over"


def test_exact_tiles_beside_others():
    """A group of three tiles of short channels needs exact if one of them does; the call before
    does not count."""
    rng = np.random.default_rng(SEED)
    shape, tile = (1, 160, 8, 8), 64
    x, given = (rng.normal(0.3, 1, shape).astype(np.float32) for _ in range(2))
    mean, rstd = np.zeros((1, 1), np.float32), np.ones((1, 1), np.float32)
    gamma, beta = (rng.normal(0, 1, 160).astype(np.float32) for _ in range(2))
    attributes = attributes_of(GRADIENT, num_groups=1)
    first = {}
    for sizes in 2 * [(1e10, 1e-30, 1), (1e-30, 1, 1e10), (1, 1e10, 1e-42), (1, 1, 1)]:
        of_rows = np.repeat(np.float32(sizes), tile)[:160, None, None]
        inputs = [given * of_rows, mean, rstd, x, gamma, beta]
        case = f"dy {sizes}, seed {SEED}"
        assert_within(GRADIENT, inputs, attributes, case)
        found = results(GRADIENT, inputs, attributes)
        assert same(found, first.setdefault(sizes, found)), case


def test_a_group_needs_exact_by_its_own_values():
    """A group has the same sums beside one that needs exact and beside one that does not; a
    difference to the mean that overflows hides nothing."""
    one = np.float32([[[1, 1.1, 1.2, 1.3]]])
    statistics = np.float32([[[0, 0]], [[2.0**61, 1]]])
    gamma, beta = np.float32([[0, 1], [1, 0]])
    attributes = attributes_of(GRADIENT, num_groups=2)
    found = []
    for size in (1, 1e-30):
        dy = np.concatenate([2.0**-59 * 1.3 * one, size * one], axis=1).astype(np.float32)
        x = np.concatenate([2.0**60 * one, one], axis=1).astype(np.float32)
        found.append(results(GRADIENT, [dy, *statistics, x, gamma, beta], attributes))
    for first, second in zip(*found, strict=True):
        assert same(first.reshape(2, -1)[0], second.reshape(2, -1)[0])
    for positions in (64, 65):
        x = np.full((1, 4, positions), -3e38, np.float32)
        x[0, :, 5] = 3.3e38
        dy = np.random.default_rng(SEED).normal(0, 1e-42, x.shape).astype(np.float32)
        statistics = np.float32([[[-2.9e38]], [[1e-38]]])
        inputs = [dy, *statistics, x, np.ones(4, np.float32), np.zeros(4, np.float32)]
        assert_within(GRADIENT, inputs, attributes_of(GRADIENT, num_groups=1), f"{positions}")
