# SPDX-License-Identifier: Apache-2.0
"""Optimisers against those of torch and against their formulas, both in float64. Guards against
corrupted gradients.
"""

from __future__ import annotations

import math

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import Refused, torch
from tests.aten.golden import FLOATS, call, close

Tensor = torch.Tensor
LR, BETA1, BETA2, DECAY, EPS = 0.01, 0.9, 0.99, 0.1, 1e-6
SHAPES = ((3, 40), (7,))


def one(value: float, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.tensor([value]).to(dtype)


def states(dtype: torch.dtype, shape=(3, 40), seed: int = 0) -> list[Tensor]:
    """A parameter, its gradient, both moments, and a largest second moment."""
    torch.manual_seed(seed)
    p, g, m = (torch.randn(shape).to(dtype) for _ in range(3))
    return [p, g, m, torch.rand(shape).to(dtype) + 0.1, torch.rand(shape).to(dtype) + 0.1]


def by_torch(optimiser: torch.optim.Optimizer, given: list[Tensor], state: list[dict]) -> None:
    """One step of an optimiser of torch in float64, from that state."""
    for p, g, s in zip(optimiser.param_groups[0]["params"], given, state, strict=True):
        p.grad = g
        optimiser.state[p] = s
    optimiser.step()


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_adamw_of_a_list_is_that_of_torch(dtype, amsgrad, maximize):
    lists = [
        list(of) for of in zip(*(states(dtype, s, i) for i, s in enumerate(SHAPES)), strict=True)
    ]
    p, g, m, v, most = ([x.double() for x in of] for of in lists)
    expected = torch.optim.AdamW(
        p, LR, (BETA1, BETA2), EPS, DECAY, amsgrad, maximize=maximize, foreach=False)  # fmt: skip
    names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
    state = [
        dict(zip(names, of, strict=True), step=torch.tensor(3.0))
        for of in zip(m, v, most, strict=True)
    ]
    by_torch(expected, [x / 8 for x in g], state)
    steps = [torch.tensor(4.0), torch.tensor([4])]
    got = call("aclnnFusedAdamw", lists[0], lists[1], lists[2], lists[3],
               lists[4] if amsgrad else None, steps, one(8.0), one(0.0), LR, BETA1, BETA2, DECAY,
               EPS, amsgrad, maximize)  # fmt: skip
    close(got, [x.detach() for x in p] + m + v + (most if amsgrad else []))


def test_nothing_changes_where_infinities_were_found():
    p, g, m, v, _ = states(torch.float32)
    before = [x.clone() for x in (p, m, v)]
    got = call("aclnnFusedAdamw", [p], [g], [m], [v], None, [one(1.0)], None, one(1.0), LR, BETA1,
               BETA2, DECAY, EPS, False, False)  # fmt: skip
    assert all(map(torch.equal, got, before))


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_sgd_of_a_list_is_that_of_torch(dtype, first, nesterov):
    lists = [
        list(of) for of in zip(*(states(dtype, s, i) for i, s in enumerate(SHAPES)), strict=True)
    ]
    p, g, buffer = ([x.double() for x in of] for of in lists[:3])
    dampening = 0.0 if nesterov else 0.5
    expected = torch.optim.SGD(p, LR, 0.875, dampening, DECAY, nesterov, maximize=True)
    state = [{"momentum_buffer": None if first else b} for b in buffer]
    by_torch(expected, [x / 8 for x in g], state)
    got = call("aclnnFusedSgd", *lists[:3], one(8.0), DECAY, 0.875, LR, dampening, nesterov, True,
               first)  # fmt: skip
    made = [expected.state[x]["momentum_buffer"] for x in p]
    close(got, [x.detach() for x in p] + [x / 8 for x in g] + made)


def test_sgd_without_momentum_takes_the_gradient():
    p, g, *_ = states(torch.float32)
    expected = [p - LR * (g + DECAY * p), g.clone()]
    close(call("aclnnFusedSgd", [p], [g], None, None, DECAY, 0.0, LR, 0.0, False, False, True),
          expected)  # fmt: skip


def adam(p, g, m, v, beta1, beta2):
    return beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_adamw_with_its_numbers_in_tensors(dtype, amsgrad):
    given = states(dtype)
    p, g, m, v, most = (x.double() for x in given)
    numbers = [one(x, dtype) for x in (BETA1**3, BETA2**3, LR, DECAY, BETA1, BETA2, EPS)]
    power1, power2, lr, decay, beta1, beta2, eps = (x.double() for x in numbers)
    first, second = adam(p, -g, m, v, beta1, beta2)
    largest = torch.maximum(second, most) if amsgrad else second
    scale = (largest / (1 - power2 * beta2)).sqrt() + eps
    after = p - lr * first / (1 - power1 * beta1) / scale - lr * decay * p
    got = call("aclnnApplyAdamW", given[0], given[2], given[3], *numbers, given[1],
               given[4] if amsgrad else None, amsgrad, True)  # fmt: skip
    close(got, [after, first, second])


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_adam_with_its_numbers_in_tensors(dtype, nesterov):
    given = states(dtype)
    p, g, m, v, _ = (x.double() for x in given)
    numbers = [one(x) for x in (BETA1**4, BETA2**4, LR, BETA1, BETA2, EPS)]
    power1, power2, lr, beta1, beta2, eps = (x.double() for x in numbers)
    first, second = adam(p, g, m, v, beta1, beta2)
    step = lr * (1 - power2).sqrt() / (1 - power1)
    ahead = beta1 * first + (1 - beta1) * g if nesterov else first
    got = call("aclnnApplyAdam", given[0], given[2], given[3], *numbers, given[1], False, nesterov)
    close(got, [p - step * ahead / (second.sqrt() + eps), first, second])


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_adam_with_a_moving_average_of_the_parameter(dtype, corrected, mode):
    given = states(dtype)
    p, g, m, v, s = (x.double() for x in given)
    first, second = adam(p, g + DECAY * p if mode == 0 else g, m, v, BETA1, BETA2)
    c1, c2 = (1 - BETA1**4, 1 - BETA2**4) if corrected else (1, 1)
    change = first / c1 / ((second / c2).sqrt() + EPS) + (DECAY * p if mode == 1 else 0)
    after = p - LR * change
    got = call("aclnnApplyFusedEmaAdam", given[1], given[0], given[2], given[3], given[4],
               torch.tensor([4]), LR, 0.75, BETA1, BETA2, EPS, mode, corrected, DECAY)  # fmt: skip
    close(got, [after, first, second, 0.75 * s + 0.25 * after])


@pytest.mark.parametrize(
    ("index", "changed", "sentence"),
    [
        (1, [torch.ones(2)], r"grads\[0\] must have shape \[3\], but got \[2\]"),
        (2, [], "expAvgs must have as many tensors as params, 1, but has 0"),
        (4, None, "maxExpAvgSqs must have as many tensors as params, 1, but has 0"),
        (5, [], "stateSteps must have as many tensors as params, 1, but has 0"),
        (6, torch.ones(2), "gradScale"),
    ],
)
def test_lists_that_do_not_belong_together_are_refused(index, changed, sentence):
    lists = [[torch.ones(3)] for _ in range(5)]
    values = [*lists, [one(1.0)], one(1.0), None, LR, BETA1, BETA2, DECAY, EPS, True, False]
    values[index] = changed
    with pytest.raises(Refused, match=sentence):
        call("aclnnFusedAdamw", *values)
    assert torch.equal(lists[0][0], torch.ones(3))


@pytest.mark.parametrize(
    ("value", "detect", "code", "history", "steps"),
    [
        (5.0, 1, 0, [5, 0, 5], 3), (20.0, 1, 2, [20, 0, 20], 3), (math.nan, 1, 1, [0, 0, 2], 3),
        (200.0, 1, 1, [200, 0, 200], 3), (200.0, 2, 1, [1, 0, 2], 2),
    ],
)  # fmt: skip
def test_a_norm_is_watched_and_the_gradient_stays(value, detect, code, history, steps):
    gradient = torch.ones(4)
    got = call("aclnnSilentCheck", torch.tensor(value), gradient, torch.tensor([1.0, 0.0, 2.0]),
               torch.tensor([2]), 1, 100.0, 5.0, 10.0, 5.0, detect,
               torch.full((1,), 9, dtype=torch.int32))  # fmt: skip
    sfda, step, result = got
    assert torch.equal(gradient, torch.ones(4))
    assert sfda.nan_to_num().tolist() == history
    assert (step.item(), result.item()) == (steps, code)


def test_the_average_of_norms_takes_finite_ones():
    for value, average, code in ((4.0, 2.5, 0), (math.inf, 2.0, 1)):
        gradient = torch.ones(3)
        avg, step, result = call(
            "aclnnSilentCheckV2", one(value), one(9.0), one(2.0), gradient, torch.tensor([7]),
            [3], [1], [0], 1e6, 1e5, 0.75, 1, torch.full((1,), 9, dtype=torch.int32))  # fmt: skip
        assert (avg.item(), step.item(), result.item()) == (average, 8, code)
        assert torch.equal(gradient, torch.ones(3))
