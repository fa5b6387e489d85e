# SPDX-License-Identifier: Apache-2.0
"""Attention over chosen blocks and over paths of edges, and linear attention, against every score
written out in float64; gradients by autograd.
"""

from __future__ import annotations

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import torch
from tests.aten.attention_reference import attention
from tests.aten.golden import FLOATS, call, miss

Tensor = torch.Tensor
# Errors that come from the rounded result of the forward.
LOOSE = {torch.float32: 1e-5, torch.float16: 3e-3, torch.bfloat16: 2e-2}


def drawn(*shape: int, seed: int = 1, dtype: torch.dtype = torch.float32) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return (torch.rand(shape, generator=random) * 2 - 1).to(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("layout", ["TND", "BNSD"])
def test_attention_over_blocks_is_attention_with_the_mask_of_all_their_pairs(layout, dtype):
    rows, keys, heads, kv = [5, 3], [7, 9], 4, 2
    mask = torch.rand(2, heads, 3, 3, generator=torch.Generator().manual_seed(2)) < 0.6
    mask[0, 1] = False  # a head without keys
    room = (sum(rows), sum(keys)) if layout == "TND" else (6, 9)

    def tensor(n: int, count: int, d: int, seed: int) -> Tensor:
        shape = (count, n, d) if layout == "TND" else (2, n, count, d)
        return drawn(*shape, seed=seed, dtype=dtype)

    q, k, v, dy = (tensor(heads, room[0], 16, 1), tensor(kv, room[1], 16, 2),
                   tensor(kv, room[1], 8, 3), tensor(heads, room[0], 8, 4))  # fmt: skip
    wide = [x.double().requires_grad_() for x in (q, k, v)]
    out = torch.zeros_like(dy, dtype=torch.float64)
    lse = torch.full((*dy.shape[:-1], 1), torch.inf, dtype=torch.float64)
    first = (0, 0)
    for b in range(2):
        seen = mask[b].repeat_interleave(2, 1).repeat_interleave(4, 2)[:, : rows[b], : keys[b]]

        def at(x: Tensor, i: int, b: int = b, first: tuple[int, ...] = first) -> Tensor:
            count = (rows, keys)[i][b]
            if layout == "BNSD":
                return x[b, :, :count]
            return x[first[i] : first[i] + count].transpose(0, 1)

        y, most, total = attention(*(at(x, min(i, 1)) for i, x in enumerate(wide)), scale=0.3,
                                   seen=seen)  # fmt: skip
        at(out, 0).copy_(y)
        at(lse, 0).copy_(torch.where(total > 0, most + total.log(), torch.inf)[..., None])
        first = (first[0] + rows[b], first[1] + keys[b])
    out.backward(dy.double())
    words = [[2, 4], rows, keys]
    got = [torch.full_like(dy, 77), torch.full(lse.shape, 77.0)]
    call("aclnnBlockSparseAttention", q, k, v, mask.char(), None, *words, None, layout, layout, kv,
         0, 0.3, 1, 0, 9, 9, 1, *got)  # fmt: skip
    assert miss(got[0], out.detach()) == ""
    assert miss(got[1], lse.detach(), 1e-5) == ""
    grads = [torch.full_like(x, 77) for x in (q, k, v)]
    call("aclnnBlockSparseAttentionGrad", dy, q, k, v, *got, mask.char(), None, *words, layout,
         layout, kv, 0, 0.3, 9, 9, *grads)  # fmt: skip
    for found, x in zip(grads, wide, strict=True):
        assert miss(found, x.grad, LOOSE[dtype]) == ""


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("masked", [False, True])
def test_attention_over_paths_of_two_edges(masked, dtype):
    b, h, n, m, k, d = 2, 2, 3, 4, 5, 8
    shapes = [(b, h, n, m, d), *[(b, h, n, k, d)] * 2, *[(b, h, k, m, d)] * 2]
    inputs = [drawn(*s, seed=i, dtype=dtype) for i, s in enumerate(shapes)]
    dy, mask = drawn(*shapes[0], seed=9, dtype=dtype), None
    if masked:
        mask = torch.zeros(b, 1, n, 1, k, dtype=torch.bool)
        mask[0, 0, 1, 0, 2:], mask[1, 0, 2] = True, True
    wide = [x.double().requires_grad_() for x in inputs]
    q, k0, v0, k1, v1 = wide
    keys = k0[:, :, :, None] + k1.transpose(2, 3)[:, :, None]  # [B, H, N, M, K, D]
    values = v0[:, :, :, None] + v1.transpose(2, 3)[:, :, None]
    s = (q[..., None, :] * keys).sum(-1) * 0.3
    if masked:
        s = s.masked_fill(mask, -torch.inf)
    empty = (s == -torch.inf).all(-1, keepdim=True)
    p = torch.softmax(s.masked_fill(empty, 0), -1).masked_fill(empty, 0)
    out = (p[..., None] * values).sum(-2)
    out.backward(dy.double())
    got = [torch.full((b, h, n, m, 8), 77.0), torch.full((b, h, n, m, 8), 77.0),
           torch.full_like(dy, 77)]  # fmt: skip
    call("aclnnFusedFloydAttention", *inputs, mask, 0.3, *got)
    assert miss(got[2], out.detach(), 3e-6) == ""
    log = (got[0].double() + got[1].double().log())[..., 0]
    finite = ~empty[..., 0]
    assert miss(log[finite], torch.logsumexp(s.detach(), -1)[finite], 1e-5) == ""
    grads = [torch.full_like(x, 77) for x in inputs]
    call("aclnnFusedFloydAttentionGrad", *inputs, dy, mask, *got, 0.3, *grads)
    for found, x in zip(grads, wide, strict=True):
        assert miss(found, x.grad, LOOSE[dtype]) == ""


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("decays", [False, True])
def test_a_delta_rule_over_sequences(decays, dtype):
    lengths, heads, kv = [4, 0, 3], 4, 2
    q, k = (drawn(8, kv, 8, seed=i, dtype=dtype) for i in (1, 2))
    v, beta = drawn(8, heads, 6, seed=3, dtype=dtype), drawn(8, heads, seed=4, dtype=dtype).abs()
    state = drawn(3, heads, 6, 8, seed=5, dtype=dtype)
    g = -drawn(8, heads, seed=6).abs() if decays else None
    states, out = state.double().clone(), torch.zeros(8, heads, 6, dtype=torch.float64)
    token = 0
    for b, length in enumerate(lengths):
        for t in range(token, token + length):
            for h in range(heads):
                s, key = states[b, h], k[t, h // 2].double()
                if decays:
                    s *= g[t, h].double().exp()
                s += torch.outer(beta[t, h] * (v[t, h].double() - s @ key), key)
                out[t, h] = s @ q[t, h // 2].double() * 0.4
        token += length
    got = [torch.full(v.shape, 77, dtype=dtype), torch.full(state.shape, 77, dtype=dtype)]
    call("aclnnChunkGatedDeltaRule", q, k, v, beta, state, torch.tensor(lengths), 0.4, g, *got)
    assert miss(got[0], out, 3e-6) == ""
    assert miss(got[1], states, 3e-6) == ""


@pytest.mark.parametrize("dtype", FLOATS)
def test_exponentials_of_sums_of_segments(dtype):
    x, dy = drawn(2, 3, 9, dtype=dtype), drawn(2, 3, 9, 9, seed=2, dtype=dtype)
    wide = x.double().requires_grad_()
    rows = [
        torch.stack([
            wide[..., j + 1 : i + 1].sum(-1).exp() if j <= i else torch.zeros(2, 3).double()
            for j in range(9)
        ], -1) for i in range(9)
    ]  # fmt: skip
    expected = torch.stack(rows, -2)
    (got,) = call("aclnnExpSegsum", x, torch.full((2, 3, 9, 9), 77, dtype=dtype))
    assert miss(got, expected.detach()) == ""
    y = expected.detach().to(dtype)
    (back,) = call("aclnnExpSegsumBackward", dy, y, torch.full((2, 3, 9), 77, dtype=dtype))
    products = dy.double() * y.double()
    wanted = torch.stack([products[..., t:, :t].sum((-1, -2)) for t in range(9)], -1)
    assert miss(back, wanted, 3e-6) == ""
    expected.backward(dy.double())
    if dtype == torch.float32:
        assert miss(back, wide.grad, 1e-5) == ""


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_transport_plan_has_equal_sums(dtype):
    cost = drawn(4, 6, dtype=dtype)
    (p,) = call("aclnnSinkhorn", cost, 1e-7, torch.full((4, 6), 77, dtype=dtype))
    wide, slack = p.double(), {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}
    assert (wide.sum(0) * 6 - 1).abs().max() < slack[dtype]
    assert (wide.sum(1) * 4 - 1).abs().max() < slack[dtype]
    ratio = wide / cost.double().exp()  # of rank 1
    assert (ratio * ratio[0, 0] / (ratio[:, :1] * ratio[:1]) - 1).abs().max() < 3 * slack[dtype]
