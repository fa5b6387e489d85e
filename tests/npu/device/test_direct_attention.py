# SPDX-License-Identifier: Apache-2.0
"""Rows of attention, called as C functions."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from tests.npu.device.direct_calls import gradients
from torch import Tensor
from torch.testing import assert_close


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Pair i of a head, (x[i], x[i + D/2]), turned by its angle."""
    a, b = x.chunk(2, -1)
    c, s = cos[..., : a.size(-1)], sin[..., : a.size(-1)]
    return torch.cat([a * c - b * s, b * c + a * s], -1)


def angles(*shape: int) -> tuple[Tensor, Tensor]:
    half = torch.rand(*shape[:-1], shape[-1] // 2) * 6
    both = torch.cat([half, half], -1)
    return both.cos(), both.sin()


@pytest.mark.parametrize("behind", [(), ("half",)])
def test_rotary_embedding_in_place(call, behind):
    query, key = torch.randn(2, 5, 4, 8), torch.randn(2, 5, 1, 8)
    cos, sin = angles(2, 5, 1, 8)
    expected = [rotated(x, cos, sin) for x in (query, key)]
    call("aclnnApplyRotaryPosEmb" + "V2" * len(behind), query, key, cos, sin, 1, *behind)
    assert_close([query, key], expected)


def test_rotary_embedding_of_neighbours(call):
    x = torch.randn(2, 4, 5, 8)
    cos, sin = angles(2, 1, 5, 8)
    result = torch.zeros_like(x)
    call("aclnnInterleaveRope", x, cos, sin, result)
    assert_close(result, rotated(torch.cat([x[..., ::2], x[..., 1::2]], -1), cos, sin))


def test_flash_attention_of_the_second_version(call):
    query, key, value, dy = torch.randn(4, 2, 3, 6, 8)
    largest, total, y = torch.zeros(2, 3, 6, 8), torch.zeros(2, 3, 6, 8), torch.zeros(2, 3, 6, 8)
    mask = torch.ones(6, 6, dtype=torch.bool).triu(1)
    numbers = (8**-0.5, 1.0, 65536, 65536, 3, "BNSD", 0, 0, 1)
    call(
        "aclnnFlashAttentionScoreV2", query, key, value, None, None, None, mask, (), (0,), (0,),
        *numbers, largest, total, None, y,
    )  # fmt: skip

    def forward(*inputs: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(*inputs, is_causal=True)

    assert_close(y, forward(query, key, value))
    results = [torch.zeros_like(query) for _ in range(3)]
    call(
        "aclnnFlashAttentionScoreGradV2", query, key, value, dy, None, None, None, mask, largest,
        total, None, y, (), (0,), (0,), *numbers, *results, None,
    )  # fmt: skip
    for result, expected in zip(results, gradients(forward, dy, query, key, value), strict=True):
        assert_close(result, expected)


def test_projections_of_attention(call):
    qkv, bias = torch.randn(2, 5, 24), torch.randn(24)
    results = [torch.zeros(2, 2, 5, 4) for _ in range(3)]
    call("aclnnTransformBiasRescaleQkv", qkv, bias, 2, *results)
    q, k, v = ((qkv + bias).reshape(2, 5, 3, 2, 4).permute(2, 0, 3, 1, 4)).unbind()
    assert_close(results, [q / 2, k, v])
