# SPDX-License-Identifier: Apache-2.0
"""Cross entropy of classes and of a vocabulary in parts, with gradients, in float64."""

from __future__ import annotations

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import Refused, torch
from tests.aten.golden import FLOATS, call, close

Tensor = torch.Tensor
N, C, IGNORED = 6, 5, -3


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.25])
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_loss_and_its_gradient_are_those_of_torch(dtype, smoothing, reduction):
    torch.manual_seed(0)
    x, weight = torch.randn(N, C).to(dtype), torch.rand(C)
    target = torch.tensor([0, 4, IGNORED, 2, 2, 1])
    shape = (N,) if reduction == "none" else (1,)
    wide = x.double().requires_grad_()
    loss = torch.nn.functional.cross_entropy(
        wide, target, weight.double(), ignore_index=IGNORED, reduction=reduction,
        label_smoothing=smoothing).reshape(shape)  # fmt: skip
    log_prob = wide.detach().log_softmax(-1)
    out = torch.empty(shape, dtype=dtype), torch.empty_like(x)
    got = call("aclnnCrossEntropyLoss", x, target, weight, reduction, IGNORED, smoothing, 0.0,
               False, *out, None, None)  # fmt: skip
    close(got, [loss.detach(), log_prob])
    g = torch.randn(shape).to(dtype)
    # The gradient takes the rounded logarithms: that of the softmax that they are of.
    rounded = got[1].double()
    (expected,) = torch.autograd.grad(loss, wide, g.double())
    (back,) = call("aclnnCrossEntropyLossGrad", g, got[1], target, weight, None, None, reduction,
                   IGNORED, smoothing, 0.0, torch.empty_like(x))  # fmt: skip
    off = (rounded.exp() - log_prob.exp()).abs().max().item()
    close([back], [expected], slack=4e-6 + 4 * off / expected.abs().max().item())


def test_targets_weights_and_z_losses_are_checked():
    def loss(target: Tensor, weight: Tensor | None, reduction: str, z: bool = False) -> None:
        call("aclnnCrossEntropyLoss", torch.randn(2, 3), target, weight, reduction, -100, 0.0, 0.0,
             z, torch.empty(1), torch.empty(2, 3), None, None)  # fmt: skip

    good = torch.tensor([0, 2])
    for values, sentence in (
        ((torch.tensor([0, 3]), None, "mean"), "target"),
        ((good, torch.ones(2), "mean"), "weight must have shape"),
        ((good, None, "max"), "reduction must be none, mean or sum, but got max"),
        ((good, None, "mean", True), "returnZloss must be false"),
    ):
        with pytest.raises(Refused, match=sentence):
            loss(*values)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("dtype", FLOATS[1:])
def test_ranks_with_parts_of_a_vocabulary_have_the_loss_of_the_whole(dtype, stored):
    torch.manual_seed(1)
    rows, width, classes, ranks = 11, 16, 12, 3
    x = torch.randn(rows, width).to(dtype)
    weight = torch.randn(classes, width).to(dtype)
    target, g = torch.randint(classes, (rows,)), torch.randn(rows)
    wide = [t.double().requires_grad_() for t in (x, weight)]
    loss = torch.nn.functional.cross_entropy(wide[0] @ wide[1].T, target, reduction="none")
    expected = torch.autograd.grad(loss, wide, g.double())
    parts = []
    for rank in range(ranks):
        first = rank * 4
        outputs = [torch.empty(rows), torch.empty(rows), torch.empty(rows),
                   torch.zeros(2, dtype=torch.uint8), torch.empty_like(target),
                   torch.empty(rows, 4, dtype=dtype) if stored else None]  # fmt: skip
        own = weight[first : first + 4]
        got = call("aclnnFusedLinearOnlineMaxSum", x, own, target, first, first + 3, *outputs)
        outside = (target < first) | (target >= first + 4)
        bits = [int(b) for byte in got[3].tolist() for b in f"{byte:08b}"]
        assert bits == [*outside.int().tolist(), *[1] * 5]
        parts.append((own, got))
    most = torch.stack([got[0] for _, got in parts]).amax(0)
    shares = [(got[0] - most).exp() for _, got in parts]
    sums = sum(got[1] * share for (_, got), share in zip(parts, shares, strict=True))
    # Of the rank that has the target; callers shift it by their maximum, then add.
    predicted = sum(
        torch.where(got[4] + rank * 4 == target, got[2] + got[0] - most, 0)
        for rank, (_, got) in enumerate(parts)
    )
    dx, dw = torch.zeros(rows, width).double(), []
    for own, got in parts:
        softmax = torch.empty(rows, 4) if stored else None
        made = call("aclnnFusedCrossEntropyLossWithMaxSum", most, sums, predicted, 0.0, None, None,
                    got[5] if stored else None, torch.empty(rows), softmax)  # fmt: skip
        close(made[:1], [loss.detach()], slack=4e-6)
        given = (None, None, made[1]) if stored else (most, sums, None)
        back = call("aclnnFusedLinearCrossEntropyLossGrad", g, x, own, got[3], got[4], 0.0, *given,
                    torch.empty_like(x), torch.empty_like(own))  # fmt: skip
        dx += back[0].double()
        dw.append(back[1])
    # Each rank rounds its share of dx, and stored logits are rounded.
    slack = 8 * torch.finfo(dtype).eps
    close([dx, torch.cat(dw)], list(expected), slack=slack)
