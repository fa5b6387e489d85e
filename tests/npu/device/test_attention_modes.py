# SPDX-License-Identifier: Apache-2.0
"""Masks, biases and layouts of the fused attention and of rotary embedding, against their formulas
in float64.
"""

from __future__ import annotations

import pytest
import torch
import torch_npu
from tests.npu.device.direct_calls import gradients
from torch import Tensor
from torch.testing import assert_close

BATCHES, HEADS, SIZE = 2, 3, 8
SCALE = 0.3
ALL = 2147483647  # tokens, of a band without a border
# What the device expects where the mode and not the mask decides.
TRIANGLE = torch.ones(2048, 2048, dtype=torch.bool).triu(1)
PREFIX = [3, 4]  # at most the keys


def masked(mode: int, mask: Tensor | None, before: int, after: int, rows: int, columns: int):
    """Where a score does not count."""
    if mask is None:
        return torch.zeros(BATCHES, 1, rows, columns, dtype=torch.bool)
    i, j = torch.arange(rows)[:, None], torch.arange(columns)[None]
    shift = columns - rows
    hidden = {
        0: lambda: mask | (i - j > before) | (j - i > after),
        1: lambda: mask,
        2: lambda: j > i,
        3: lambda: j > i + shift,
        4: lambda: (i + shift - j > before) | (j - i - shift > after),
        5: lambda: mask,
        6: lambda: (j > i + shift) & (j >= torch.tensor(PREFIX)[:, None, None, None]),
    }[mode]()
    return hidden.expand(BATCHES, 1, rows, columns)


def attention(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor, bias=lambda s: SCALE * s):
    scores = bias(q @ k.transpose(-1, -2)).masked_fill(hidden, -torch.inf)
    return torch.softmax(scores, -1).nan_to_num(0) @ v


def both(mode, mask, before, after, rows, columns, **options):
    """Results and gradients by the formula and by the device."""
    torch.manual_seed(mode)
    q = torch.randn(BATCHES, HEADS, rows, SIZE)
    k, v = torch.randn(2, BATCHES, HEADS, columns, SIZE)
    dy = torch.randn(BATCHES, HEADS, rows, SIZE)
    bias = options.pop("formula", lambda s: SCALE * s)
    here = [x.double().requires_grad_() for x in (q, k, v)]
    there = [x.npu().requires_grad_() for x in (q, k, v)]
    want = attention(*here, masked(mode, mask, before, after, rows, columns), bias)
    run = torch_npu.npu_fusion_attention_v2 if "pse_type" in options else (
        torch_npu.npu_fusion_attention
    )  # fmt: skip
    names = ("pre_tokens", "next_tokens") if "pse_type" in options else (
        "pre_tockens", "next_tockens"
    )  # fmt: skip
    given = None if mask is None else (mask if mode in (0, 1, 5) else TRIANGLE).npu()
    got = run(
        *there, HEADS, "BNSD", atten_mask=given, scale=SCALE, sparse_mode=mode,
        prefix=PREFIX if mode in (5, 6) else None,
        **dict(zip(names, (before, after), strict=True)), **options,
    )[0]  # fmt: skip
    want.backward(dy.double())
    got.backward(dy.npu())
    pairs = [(got.detach(), want.detach())]
    pairs += [(x.grad, y.grad) for x, y in zip(there, here, strict=True)]
    for one, other in pairs:
        assert_close(one.cpu().double(), other, rtol=1e-4, atol=1e-5)


BANDS = [(ALL, ALL), (1, 0), (2, 1), (0, 2), (-1, 3)]


@pytest.mark.parametrize("shape", [(6, 6), (4, 7), (7, 4)])
@pytest.mark.parametrize("mode", range(7))
def test_sparse_modes(mode, shape):
    mask = torch.rand(BATCHES, 1, *shape) > 0.7
    for before, after in BANDS if mode in (0, 4) else BANDS[:2]:
        both(mode, mask, before, after, *shape)


@pytest.mark.parametrize("mode", range(7))
def test_without_a_mask_nothing_is_masked(mode):
    both(mode, None, 1, 0, 5, 6)


def shifted(s: Tensor, q: int, k: int) -> Tensor:
    """The distance of rows and columns."""
    return torch.arange(s.size(-2))[:, None] + q - torch.arange(s.size(-1))[None] - k


SLOPES = torch.tensor([0.5, 0.25, 0.125])
PSE = torch.randn(BATCHES, HEADS, 5, 6, generator=torch.Generator().manual_seed(3))
BIASES = {
    0: (PSE, lambda s: SCALE * s + PSE),
    1: (PSE, lambda s: SCALE * (s + PSE)),
    2: (SLOPES, lambda s: SCALE * s - SLOPES[:, None, None] * shifted(s, 2, 1).abs()),
    3: (SLOPES, lambda s: SCALE * s - SLOPES[:, None, None] * shifted(s, 2, 1).abs().sqrt()),
}


@pytest.mark.parametrize("kind", BIASES)
def test_types_of_biases(kind):
    pse, formula = BIASES[kind]
    starts = {"q_start_idx": [2], "kv_start_idx": [1]} if kind >= 2 else {}
    both(1, torch.rand(BATCHES, 1, 5, 6) > 0.8, ALL, ALL, 5, 6, formula=formula, pse=pse.npu(),
         pse_type=kind, **starts)  # fmt: skip


def turned(x: Tensor, mode: str) -> Tensor:
    if mode == "interleave":
        return torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
    parts = x.chunk(4 if mode == "quarter" else 2, -1)
    return torch.cat([y for a, b in zip(parts[::2], parts[1::2], strict=True) for y in (-b, a)], -1)


LAYOUTS = {
    "BSND": ((2, 3, 4, 8), (2, 3, 1, 8)),
    "SBND": ((3, 2, 4, 8), (3, 1, 1, 8)),
    "BNSD": ((2, 4, 3, 8), (2, 1, 3, 8)),
    "TND": ((6, 4, 8), (6, 1, 8)),
}


@pytest.mark.parametrize("mode", ["half", "quarter", "interleave"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rotary_embedding(layout, mode):
    shape, small = LAYOUTS[layout]
    query, key = torch.randn(2, *shape)
    cos, sin = torch.randn(2, *small)
    got = torch_npu.npu_apply_rotary_pos_emb(
        query.npu(), key.npu(), cos.npu(), sin.npu(), layout, mode
    )
    for one, x in zip(got, (query, key), strict=True):
        assert_close(one.cpu(), x * cos + turned(x, mode) * sin)


@pytest.mark.parametrize("mode", range(4))
def test_rotary_embedding_by_modes(call, mode):
    """Mode 3 has neighbours as halves in its result."""
    x, dy = torch.randn(2, 2, 4, 5, 8)
    cos, sin = torch.randn(2, 1, 1, 5, 8)

    def formula(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        if mode == 3:
            x = torch.cat([x[..., ::2], x[..., 1::2]], -1)
        return x * cos + turned(x, ("half", "interleave", "quarter", "half")[mode]) * sin

    y = torch.zeros_like(x)
    call("aclnnRotaryPositionEmbedding", x, cos, sin, mode, y)
    assert_close(y, formula(x, cos, sin))
    results = [torch.zeros_like(t) for t in (x, cos, sin)]
    call("aclnnRotaryPositionEmbeddingGrad", dy, cos, sin, x, mode, *results)
    for result, expected in zip(results, gradients(formula, dy, x, cos, sin), strict=True):
        assert_close(result, expected)
