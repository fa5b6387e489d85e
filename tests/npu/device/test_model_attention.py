# SPDX-License-Identifier: Apache-2.0
"""torch_npu's attention, caches and rotary embeddings as programs of models call them: values
against the formula on device cpu. The functions by C name: tests/aten.
"""

from __future__ import annotations

import torch
import torch_npu
from tests.npu.device.test_experts import near
from torch.nn.functional import scaled_dot_product_attention

B, N, S, D = 2, 4, 6, 32


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).half()


def half_turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x.float().chunk(2, -1)
    return x.float() * cos + torch.cat([-b, a], -1) * sin


def neighbours_turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    return half_turned(torch.cat([x[..., ::2], x[..., 1::2]], -1), cos, sin)


def normed(x: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
    return x.float() * (x.float().square().mean(-1, True) + 1e-5).rsqrt() * gamma.float()


def on_npu(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(t.npu() for t in tensors)


def test_inference_attention_by_both_names():
    q, k, v = (numbers(B, N, S, D, seed=i) for i in range(3))
    expected = scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)
    mask = torch.ones(2048, 2048, dtype=torch.bool).triu(1).npu()
    form = dict(atten_mask=mask, sparse_mode=3, input_layout="BNSD")
    got, _ = torch_npu.npu_fused_infer_attention_score(
        *on_npu(q, k, v), num_heads=N, scale=D**-0.5, **form
    )
    assert near(got, expected)
    got, _ = torch_npu.npu_fused_infer_attention_score_v2(
        *on_npu(q, k, v), num_query_heads=N, softmax_scale=D**-0.5, **form
    )
    assert near(got, expected)
    got = torch_npu.npu_prompt_flash_attention(
        *on_npu(q, k, v), num_heads=N, scale_value=D**-0.5, next_tokens=0, **form
    )
    assert near(got, expected)


def test_attention_over_two_halves_is_joined():
    q, k, v = (numbers(1, N, S, D, seed=i) for i in range(3))
    parts = [
        torch_npu.npu_fused_infer_attention_score(
            *on_npu(q, k[..., rows, :], v[..., rows, :]), num_heads=N, scale=D**-0.5,
            input_layout="BNSD", softmax_lse_flag=True,
        )
        for rows in (slice(0, 2), slice(2, S))
    ]  # fmt: skip
    lse = [part[1].reshape(N * S) for part in parts]
    outputs = [part[0].reshape(N * S, D).float() for part in parts]
    got, _ = torch_npu.npu_attention_update(lse, outputs, 0)
    expected = scaled_dot_product_attention(q.float(), k.float(), v.float())
    assert near(got.view(1, N, S, D), expected)


def test_an_indexer_chooses_keys_for_sparse_attention():
    q, k, w = numbers(B, S, N, D), numbers(B, S, 1, D, seed=1), numbers(B, S, N, seed=2).abs()
    chosen, _ = torch_npu.npu_lightning_indexer(*on_npu(q, k, w), sparse_count=S)
    ends = [sorted(row.tolist()) for row in chosen.cpu()[0, :, 0]]
    assert ends == [[-1] * (S - 1 - i) + list(range(i + 1)) for i in range(S)]
    rope_q, rope_k = numbers(B, S, N, 16, seed=3), numbers(B, S, 1, 16, seed=4)
    got, _, _ = torch_npu.npu_sparse_flash_attention(
        *on_npu(q, k, k), chosen, 0.3, query_rope=rope_q.npu(), key_rope=rope_k.npu(),
        attention_mode=2,
    )  # fmt: skip
    whole = (torch.cat(pair, -1).transpose(1, 2).float() for pair in ((q, rope_q), (k, rope_k)))
    expected = scaled_dot_product_attention(
        *whole, k.transpose(1, 2).float(), is_causal=True, scale=0.3, enable_gqa=True
    )
    assert near(got, expected.transpose(1, 2))


def test_quantised_keys_of_indexer_and_sparse_attention():
    q, k = (torch.randint(-99, 99, (B, S, heads, D)).to(torch.int8) for heads in (N, 1))
    w, sq, sk = numbers(B, S, N).abs(), numbers(B, S, N).abs(), numbers(B, S, 1).abs()
    chosen = torch_npu.npu_quant_lightning_indexer(*on_npu(q, k, w, sq, sk), 0, 0, sparse_count=S)
    assert sorted(chosen.cpu()[1, -1, 0].tolist()) == list(range(S))
    width, rotated, tile = 32, 8, 16
    query, rope = numbers(B, S, N, width + rotated).bfloat16(), numbers(B, S, 1, rotated).bfloat16()
    k, factor = k[..., :width], torch.rand(B, S, 1, width // tile) * 0.01
    rows = torch.cat([k, rope.view(torch.int8), factor.view(torch.int8)], -1)
    got = torch_npu.npu_kv_quant_sparse_flash_attention(
        *on_npu(query, rows, rows), chosen, 0.2, 2, 2, attention_mode=2, quant_scale_repo_mode=1,
        tile_size=tile, rope_head_dim=rotated,
    )  # fmt: skip
    plain = k.float() * factor.repeat_interleave(tile, -1)
    keys = torch.cat([plain, rope.float()], -1)
    expected = scaled_dot_product_attention(
        *(t.transpose(1, 2).float() for t in (query, keys, plain)),
        is_causal=True, scale=0.2, enable_gqa=True,
    )  # fmt: skip
    assert near(got, expected.transpose(1, 2))


def test_rotary_embeddings():
    x, angles = numbers(B, N, S, 64), torch.rand(B, 1, S, 32)
    cos, sin = (f(angles).repeat(1, 1, 1, 2).half() for f in (torch.cos, torch.sin))
    assert near(torch_npu.npu_rotary_mul(*on_npu(x, cos, sin)), half_turned(x, cos, sin))
    got = torch_npu.npu_interleave_rope(*on_npu(x, cos, sin))
    assert near(got, neighbours_turned(x, cos, sin))
    tokens, heads, size = 5, 2, 16
    q, k = numbers(tokens, heads * size), numbers(tokens, heads * size, seed=1)
    table, positions = torch.rand(9, size).half(), torch.tensor([3, 0, 8, 1, 1])
    given = positions.npu(), *on_npu(q, k, table), size
    cos, sin = (t.repeat(1, 2)[:, None] for t in table[positions].float().chunk(2, -1))
    # Without sections the wheel passes numbers that it did not initialise: they are ignored here.
    for got in (torch_npu.npu_mrope(*given, mrope_section=[0, 0, 0]), torch_npu.npu_mrope(*given)):
        for result, x in zip(got, (q, k), strict=True):
            turned = half_turned(x.view(tokens, heads, size), cos, sin)
            assert near(result, turned.flatten(1))


def test_keys_are_normalised_rotated_and_cached():
    wide, rope, rows = 512, 64, 4
    kv, gamma = numbers(B, 1, 1, wide + rope), numbers(wide, seed=1)
    cos, sin = numbers(B, 1, 1, rope, seed=2), numbers(B, 1, 1, rope, seed=3)
    index, caches = torch.tensor([5, 2]), [torch.zeros(2, rows, 1, d).half() for d in (rope, wide)]
    given = on_npu(*caches)
    torch_npu.npu_kv_rmsnorm_rope_cache(
        *on_npu(kv, gamma, cos, sin, index), *given, cache_mode="PA"
    )
    key = neighbours_turned(kv[..., wide:], cos, sin)
    latent = normed(kv[..., :wide], gamma)
    for cache, expected in zip(given, (key, latent), strict=True):
        found = cache.cpu().flatten(0, 2)
        assert near(found[index], expected.flatten(0, 2))
        assert found.count_nonzero(1).ne(0).sum() == B


def test_a_prolog_of_latent_attention():
    tokens, inner, rank, heads, size, wide, rope = 3, 64, 48, 4, 16, 32, 16
    x, down = numbers(tokens, inner), numbers(inner, rank, seed=1)
    up, latent = numbers(rank, heads * (size + rope), seed=2), numbers(heads, size, wide, seed=3)
    kv = numbers(inner, wide + rope, seed=4)
    gammas = numbers(rank, seed=5), numbers(wide, seed=6)
    sin, cos = numbers(tokens, rope, seed=7), numbers(tokens, rope, seed=8)
    caches = (
        torch.zeros(2, 4, 1, wide).bfloat16().npu(),
        torch.zeros(2, 4, 1, rope).bfloat16().npu(),
    )
    slots = torch.tensor([6, 0, 3])
    x, down, up, latent, kv, *gammas = (
        t.bfloat16() for t in (x, down * 0.1, up * 0.1, latent * 0.1, kv * 0.1, *gammas)
    )
    tiles = (torch_npu.npu_format_cast(w.npu(), 29) for w in (down, up, kv))
    down_there, up_there, kv_there = tiles
    q, q_rope, *_ = torch_npu.npu_mla_prolog_v3(
        x.npu(), down_there, up_there, latent.npu(), kv_there, *on_npu(*gammas, sin.bfloat16(),
        cos.bfloat16()), *caches, cache_index=slots.npu(),
    )  # fmt: skip
    query = (normed(x.float() @ down.float(), gammas[0]) @ up.float()).view(tokens, heads, -1)
    both = x.float() @ kv.float()
    expected = (
        (q, torch.einsum("tnd,ndh->tnh", query[..., :size], latent.float())),
        (q_rope, neighbours_turned(query[..., size:], cos[:, None], sin[:, None])),
        (caches[0].cpu().view(8, -1)[slots], normed(both[:, :wide], gammas[1])),
        (caches[1].cpu().view(8, -1)[slots], neighbours_turned(both[:, wide:], cos, sin)),
    )
    for got, wanted in expected:
        assert torch.allclose(got.cpu().float(), wanted, rtol=2e-2, atol=4e-2)
