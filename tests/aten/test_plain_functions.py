# SPDX-License-Identifier: Apache-2.0
"""Functions of one expression, most of which only C programs call: their sample calls against
formulas in float64, in all floating-point dtypes.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import ROWS, samples, torch
from tests.aten.golden import FLOATS, call, misses
from tests.aten.plain_formulas import REFERENCES, by_autograd

# Results that amplify rounding errors of their inputs.
LOOSE = {"Logdet", "Qr"}


# A function that becomes openaclnn's own has other tests.
CASES = [
    (name, dtype)
    for name in REFERENCES
    if f"aclnn{name}" in ROWS
    for dtype in FLOATS[: 1 if name in LOOSE else 3]
]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_results_are_those_of_the_formula(name, dtype):
    calls = [sample for sample in samples() if sample.row.name == f"aclnn{name}"]
    assert calls
    assert [text for sample in calls for text in misses(sample, REFERENCES[name], dtype)] == []


def test_random_numbers_follow_their_seed_and_their_distribution():
    x = torch.empty(4096)
    drawn = [
        call("aclnnSimThreadExponential", x.clone(), 4096, 2.0, *pair)[0]
        for pair in ((1, 2), (1, 2), (1, 3))
    ]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    assert drawn[0].isfinite().all()
    assert drawn[0].min() > 0
    assert drawn[0].mean() == pytest.approx(0.5, abs=0.03)
    part = call("aclnnSimThreadExponential", torch.zeros(8), 3, 2.0, 1, 2)[0]
    assert (part > 0).tolist() == [True] * 3 + [False] * 5
    for name, p in (("Bernoulli", 0.3), ("BernoulliTensor", torch.full_like(x, 0.3))):
        ones = call(f"aclnn{name}", x, p, 1, 2, x.clone())[0]
        assert ones.mean() == pytest.approx(0.3, abs=0.03)


def test_dropout_always_has_a_mask_in_its_third_version():
    x = torch.randn(100)
    for p in (0.0, 0.4, 1.0):
        y, mask = call("aclnnDropoutV3", x, None, p, 1, 2, torch.empty_like(x),
                       torch.zeros(16, dtype=torch.uint8))  # fmt: skip
        bits = torch.from_numpy(np.unpackbits(mask.numpy(), bitorder="little"))[:100]
        assert abs(bits.double().mean() - (1 - p)) < 0.15
        assert torch.allclose(y, x * bits / (1 - p if p < 1 else 1), 1e-6)


def test_dropout_keeps_what_its_mask_says_and_its_gradient_too():
    x = torch.randn(3, 50, dtype=torch.float16)
    y, mask = call("aclnnDropout", x, 0.25, True, 1, 2, torch.empty_like(x),
                   torch.zeros(32, dtype=torch.uint8))  # fmt: skip
    bits = torch.from_numpy(np.unpackbits(mask.numpy(), bitorder="little"))[:150].reshape(3, 50)
    assert 0.6 < bits.double().mean() < 0.9
    expected = (x.double() * bits / 0.75).half()
    assert torch.equal(y, expected)
    (back,) = call("aclnnDropoutBackward", x, mask, 1 / 0.75, torch.empty_like(x))
    assert torch.equal(back, expected)


KL = {"same": ((4, 3), (4, 3)), "row": ((4, 3), (3,)), "self": ((3,), (4, 3))}


@pytest.mark.parametrize("logs", [False, True])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", KL)
def test_gradients_of_kl_are_those_of_atens_loss(name, reduction, logs):
    """By both arguments, with targets that are no probabilities, and broadcast."""
    shape, of_target = KL[name]
    x, t = torch.randn(shape), torch.randn(of_target)
    t.flatten()[0] = 0

    number = ("none", "mean", "sum").index(reduction)

    def loss(x, t):  # F.kl_div without its advice on "mean"
        return torch.ops.aten.kl_div(x, t, number, log_target=logs)

    dy = torch.randn((4, 3) if reduction == "none" else ())
    dx, dt = by_autograd(loss, dy.double(), x.double(), t.double())
    for back, right in (("KlDivBackward", dx), ("KlDivTargetBackward", dt)):
        (got,) = call(f"aclnn{back}", dy, x, t, number, logs, torch.empty(right.shape))
        assert torch.allclose(got.double(), right, 1e-5, 1e-6, equal_nan=True), back
    assert logs or dt.isnan().sum() > 0


def test_the_gradient_of_kl_by_the_batch():
    x, t = torch.randn(4, 3), torch.rand(3)
    dy = torch.tensor(1.5)
    (got,) = call("aclnnKlDivBackward", dy, x, t, 3, False, torch.empty(4, 3))
    assert torch.allclose(got, (-t * dy / 4).expand(4, 3))
