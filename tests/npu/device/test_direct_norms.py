# SPDX-License-Identifier: Apache-2.0
"""Rows of normalisation, called as C functions. The parts that two devices compute of a batch must
together be those of the whole batch.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from tests.npu.device.direct_calls import gradients, image, out, x23, y23
from torch import Tensor
from torch.testing import assert_close


def test_batch_norm_in_parts(call):
    x, dy = torch.randn(6, 3, 2, 2), torch.randn(6, 3, 2, 2)
    weight, bias, eps = torch.randn(3), torch.randn(3), 1e-3
    running = [torch.randn(3), torch.rand(3)]
    expected_running = [t.clone() for t in running]
    again = [t.clone() for t in running]
    parts, counts = (x[:2].contiguous(), x[2:].contiguous()), torch.tensor([8.0, 16.0])
    means, invstds, sums, squares = (torch.zeros(2, 3) for _ in range(4))
    for i, part in enumerate(parts):
        call("aclnnBatchNormStats", part, eps, means[i], invstds[i])
        call("aclnnBatchNormReduce", part, sums[i], squares[i])
    mean, invstd, mean2, invstd2 = (out(3) for _ in range(4))
    call(
        "aclnnBatchNormGatherStatsWithCounts", x, means, invstds, *running, 0.2, eps, counts, mean,
        invstd,
    )  # fmt: skip
    call("aclnnSyncBatchNormGatherStats", sums, squares, counts, *again, 0.2, eps, mean2, invstd2)
    expected = F.batch_norm(x, *expected_running, weight, bias, True, 0.2, eps)
    assert_close(running, expected_running)
    assert_close(again, expected_running)
    assert_close((mean2, invstd2), (mean, invstd))
    y = torch.zeros_like(x)
    call("aclnnBatchNormElemt", x, weight, bias, mean, invstd, eps, y)
    assert_close(y, expected)

    def forward(*inputs: Tensor) -> Tensor:
        return F.batch_norm(inputs[0], None, None, *inputs[1:], True, 0.2, eps)

    of_x, of_weight, of_bias = gradients(forward, dy, x, weight, bias)
    sum_dy, sum_product, dweight, dbias = (out(3) for _ in range(4))
    call(
        "aclnnBatchNormReduceBackward", dy, x, mean, invstd, weight, True, True, True, sum_dy,
        sum_product, dweight, dbias,
    )  # fmt: skip
    assert_close((dweight, dbias), (of_weight, of_bias))
    dx = torch.zeros_like(x)
    call(
        "aclnnBatchNormElemtBackward", dy, x, mean, invstd, weight, sum_dy, sum_product, counts, dx
    )
    assert_close(dx, of_x)


def test_layer_norm_of_a_sum(call):
    a, b, dy, more = (torch.randn(4, 8) for _ in range(4))
    gamma, beta, bias, eps = *torch.randn(3, 8).unbind(), 1e-5
    y, total = torch.zeros(4, 8), torch.zeros(4, 8)
    mean, rstd = torch.zeros(4, 1), torch.zeros(4, 1)
    call("aclnnAddLayerNorm", a, b, gamma, beta, bias, eps, True, y, mean, rstd, total)
    assert_close(total, a + b + bias)
    assert_close(y, F.layer_norm(a + b + bias, (8,), gamma, beta, eps))
    call("aclnnAddLayerNorm", a, b, gamma, beta, None, eps, False, y, mean, rstd, None)

    def forward(x: Tensor, *affine: Tensor) -> Tensor:
        return F.layer_norm(x, (8,), *affine, eps)

    of_x, of_gamma, of_beta = gradients(forward, dy, a + b, gamma, beta)
    dx, dgamma, dbeta = torch.zeros(4, 8), torch.zeros(8), torch.zeros(8)
    call("aclnnAddLayerNormGrad", dy, a, b, rstd, mean, gamma, more, dx, dgamma, dbeta)
    assert_close((dx, dgamma, dbeta), (of_x + more, of_gamma, of_beta))
    call("aclnnFastLayerNorm", a, (8,), gamma, beta, eps, y, mean, rstd)
    assert_close(y, F.layer_norm(a, (8,), gamma, beta, eps))


def test_deep_norm(call):
    x, gx, dy = (torch.randn(4, 8) for _ in range(3))
    gamma, beta = torch.randn(2, 8).unbind()

    def forward(x: Tensor, gx: Tensor, beta: Tensor, gamma: Tensor) -> Tensor:
        return F.layer_norm(0.3 * x + gx, (8,), gamma, beta, 1e-6)

    y, mean, rstd = torch.zeros(4, 8), torch.zeros(4, 1), torch.zeros(4, 1)
    call("aclnnDeepNorm", x, gx, beta, gamma, 0.3, 1e-6, mean, rstd, y)
    assert_close(y, forward(x, gx, beta, gamma))
    results = [torch.zeros(4, 8), torch.zeros(4, 8), torch.zeros(8), torch.zeros(8)]
    call("aclnnDeepNormGrad", dy, x, gx, gamma, mean, rstd, 0.3, *results)
    for result, expected in zip(results, gradients(forward, dy, x, gx, beta, gamma), strict=True):
        assert_close(result, expected)


def test_other_norms(call):
    x, gamma = torch.randn(4, 8), torch.randn(8)
    y, rstd = torch.zeros(4, 8), torch.zeros(4, 1)
    call("aclnnGemmaRmsNorm", x, gamma, 1e-5, y, rstd)
    assert_close(y, F.rms_norm(x, (8,), 1 + gamma, 1e-5))
    assert_close(rstd, (x.square().mean(1, keepdim=True) + 1e-5).rsqrt())
    weight, bias = y23[0].contiguous(), x23[0].contiguous()
    y, mean, rstd = torch.zeros_like(image), torch.zeros(2, 3), torch.zeros(2, 3)
    call("aclnnGroupNormSilu", image, weight, bias, 3, 1e-5, y, mean, rstd)
    assert_close(y, F.silu(F.group_norm(image, 3, weight, bias, 1e-5)))
    assert_close(mean, image.mean((2, 3)))


def test_fake_quantisation(call):
    scale, zero = torch.tensor([0.1, 0.3]), torch.tensor([2, -1], dtype=torch.int32)
    y, mask = torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.bool)
    call("aclnnFakeQuantPerChannelAffineCachemask", x23, scale, zero, 0, -8, 7, y, mask)
    steps = (x23 / scale[:, None]).round() + zero[:, None]
    assert_close(y, (steps.clamp(-8, 7) - zero[:, None]) * scale[:, None])
    assert torch.equal(mask, (steps >= -8) & (steps <= 7))


@pytest.mark.parametrize("power", [float("inf"), -float("inf"), 2.0])
def test_norms_of_16_bit_floats(power):
    """torch_npu widens them by the type Cast of the interface before aclnn."""
    given = torch.randn(5, 7).bfloat16()
    found = torch.linalg.vector_norm(given.to("npu"), power)
    assert_close(found.cpu(), torch.linalg.vector_norm(given, power))
