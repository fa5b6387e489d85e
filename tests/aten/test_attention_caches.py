# SPDX-License-Identifier: Apache-2.0
"""Where attention for inference finds its keys: pages, padding, prefixes, quantised caches."""

from __future__ import annotations

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import torch
from tests.aten.golden import call, miss
from tests.aten.inference_calls import (
    HALF,
    KV,
    SMALL,
    B,
    D,
    K,
    L,
    N,
    Q,
    S,
    V,
    agree,
    both,
    drawn,
    empty,
    expected,
    infer,
)
from tests.aten.quantised_support import Int4, words

Tensor = torch.Tensor
MASK = torch.rand(B, 1, S + 2, L + 3, generator=torch.Generator().manual_seed(4)) < 0.4

# ---- where the keys are ----


def paged(x: Tensor, table: Tensor, blocks: int, size: int, form: int) -> Tensor:
    """[B, K, L, D] in pages of 3, 4 or 5 dims."""
    b, k, length, d = x.shape
    pages = torch.full((blocks, k, size, d), 9, dtype=x.dtype)
    for batch in range(b):
        for first in range(0, length, size):
            part = x[batch, :, first : first + size]
            pages[table[batch, first // size], :, : part.shape[1]] = part
    if form == 3:
        return pages.transpose(1, 2).flatten(2).contiguous()
    if form == 5:
        return pages.unflatten(3, (-1, 8)).permute(0, 1, 3, 2, 4).contiguous()
    return pages


TABLE = torch.tensor([[5, 0, 2, -9], [1, 6, 3, 99]], dtype=torch.int32)


@pytest.mark.parametrize("form", [3, 4, 5])
def test_pages_hold_the_keys_of_a_contiguous_cache(form):
    lengths, options = [9, 5], {"attenMask": SMALL, "sparseMode": 3}
    plain = infer(3, query=Q, key=[K], value=[V], actualSeqLengthsKv=lengths, **options,
                  out=empty(B, N, S, 8))[0]  # fmt: skip
    listed = infer(3, query=Q, key=[*K.split(1)], value=[*V.split(1)], actualSeqLengthsKv=lengths,
                   **options, out=empty(B, N, S, 8))[0]  # fmt: skip
    pages = [[paged(x, TABLE, 7, 4, form)] for x in (K, V)]
    got = infer(3, query=Q, key=pages[0], value=pages[1], blockTable=TABLE, blockSize=4,
                actualSeqLengthsKv=lengths, **options, out=empty(B, N, S, 8))[0]  # fmt: skip
    assert torch.equal(plain, listed)
    assert torch.equal(got, plain)
    rows = Q.transpose(1, 2).flatten(0, 1).contiguous()
    packed = infer(3, query=rows, key=pages[0], value=pages[1], blockTable=TABLE,
                   actualSeqLengths=[S, 2 * S], actualSeqLengthsKv=lengths, inputLayout="TND",
                   **options, out=empty(2 * S, N, 8))[0]  # fmt: skip
    assert torch.equal(packed, plain.transpose(1, 2).flatten(0, 1))


@pytest.mark.parametrize("function", ["Fused", "Incre"])
def test_a_decode_loop_over_pages_equals_one_over_a_contiguous_cache(function):
    """24 steps: each writes its key and value to a cache of pages and to a contiguous one."""
    steps, size = 24, 8
    random = torch.Generator().manual_seed(11)
    table = torch.randperm(B * steps // size, generator=random).reshape(B, -1).int()
    blocks = table.numel()
    caches = [torch.zeros(blocks, size, KV * D, dtype=HALF) for _ in range(2)]
    plain = [torch.zeros(B, steps, KV * D, dtype=HALF) for _ in range(2)]
    for step in range(steps):
        q, k, v = (drawn(B, 1, n * D, seed=100 * step + i) for i, n in enumerate((N, KV, KV)))
        slots = table[:, step // size].long() * size + step % size
        call("aclnnScatterPaKvCache", k.reshape(B, KV, D), caches[0].view(blocks, size, KV, D),
             slots, v.reshape(B, KV, D), caches[1].view(blocks, size, KV, D), None, None, None,
             "Norm", "None", [1, 1], [0, 0])  # fmt: skip
        for cache, x in zip(plain, (k, v), strict=True):
            cache[:, step] = x[:, 0]
        length = [step + 1, max(1, step)]
        if function == "Fused":
            got, whole = (
                infer(3, query=q, key=[c[0]], value=[c[1]], blockTable=t, inputLayout="BSH",
                      actualSeqLengthsKv=length, blockSize=size if t is not None else 0,
                      out=empty(B, 1, N * D))[0]
                for c, t in ((caches, table), (plain, None))
            )  # fmt: skip
        else:
            got, whole = (
                call("aclnnIncreFlashAttentionV4", q, [c[0]], [c[1]], None, None, length,
                     *[None] * 7, t, None, N, 0.25, "BSH", KV, size, 0, empty(B, 1, N * D))[0]
                for c, t in ((caches, table), (plain, None))
            )  # fmt: skip
        assert torch.equal(got, whole)
        for b in range(B):
            heads = [
                x[b].reshape(-1, n, D).transpose(0, 1)
                for x, n in ((q, N), (plain[0], KV), (plain[1], KV))
            ]
            wanted = expected(*heads, keys=length[b])[0].transpose(0, 1).reshape(1, N * D)
            assert miss(got[b], wanted) == ""


def test_rows_before_padding_at_the_end():
    lengths, kv_lengths = [3, 2], [6, 4]
    q_padding, kv_padding = torch.tensor([1]), torch.tensor([2, -4])
    mask = MASK[:, 0, :S, :L].contiguous()
    out, lse = torch.zeros(B, N, S, 8).double(), torch.full((B, N, S), torch.inf).double()
    for b in range(B):
        row, key = S - 1 - lengths[b], L - max(0, int(kv_padding[b])) - kv_lengths[b]
        rows, keys = slice(row, row + lengths[b]), slice(key, key + kv_lengths[b])
        y = expected(Q[b][:, rows], K[b][:, keys], V[b][:, keys], seen=~mask[b][rows, keys])
        out[b][:, rows], lse[b][:, rows] = y
    got = infer(3, query=Q, key=[K], value=[V], attenMask=mask, preTokens=0, nextTokens=0,
                actualSeqLengths=lengths, actualSeqLengthsKv=kv_lengths, queryPaddingSize=q_padding,
                kvPaddingSize=kv_padding, out=empty(B, N, S, 8),
                lse=empty(B, N, S, 1, dtype=torch.float32))  # fmt: skip
    agree(got, (out, lse[..., None]))


def test_a_prefix_is_before_the_keys_of_every_batch():
    k, v = drawn(1, KV, 6, D, seed=7), drawn(1, KV, 6, 8, seed=8)
    lengths = [L, 4]
    wanted = both([
        expected(Q[b], torch.cat([k[0, :, :4], K[b, :, : lengths[b]]], 1),
                 torch.cat([v[0, :, :4], V[b, :, : lengths[b]]], 1)) for b in range(B)
    ])  # fmt: skip
    got = infer(3, query=Q, key=[K], value=[V], keySharedPrefix=k, valueSharedPrefix=v,
                actualSharedPrefixLen=[4], actualSeqLengthsKv=lengths, out=empty(B, N, S, 8),
                lse=empty(B, N, S, 1, dtype=torch.float32))  # fmt: skip
    agree(got, wanted)


# ---- quantised ----

KQ = torch.randint(-99, 99, (B, KV, L, D), dtype=torch.int8)
VQ = torch.randint(-99, 99, (B, KV, L, 8), dtype=torch.int8)


def scales(*shape: int) -> Tensor:
    return drawn(*shape, seed=21, dtype=torch.float32) * 0.002 + 0.01


CACHES = {
    "one": (0, lambda d: scales(1), lambda s, d: s.reshape(1, 1, 1, 1)),
    "channels": (0, lambda d: scales(KV, d), lambda s, d: s.reshape(1, KV, 1, d)),
    "channels of a row": (0, lambda d: scales(1, KV * d), lambda s, d: s.reshape(1, KV, 1, d)),
    "tokens": (1, lambda d: scales(1, B, L), lambda s, d: s.reshape(B, 1, L, 1)),
    "heads": (2, lambda d: scales(KV), lambda s, d: s.reshape(1, KV, 1, 1)),
    "tokens of heads": (3, lambda d: scales(B, KV, L), lambda s, d: s.reshape(B, KV, L, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", CACHES)
def test_caches_of_int8_are_their_numbers_multiplied_out(name):
    mode, make, wide = CACHES[name]
    k_scale, v_scale, offset = make(D), make(8), make(D) * 100
    k = (KQ + wide(offset, D)) * wide(k_scale, D)
    v = VQ * wide(v_scale, 8)
    wanted = both([expected(Q[b], k[b], v[b]) for b in range(B)])
    got = infer(3, query=Q, key=[KQ], value=[VQ], keyAntiquantScale=k_scale,
                keyAntiquantOffset=offset, valueAntiquantScale=v_scale, keyAntiquantMode=mode,
                valueAntiquantMode=mode, out=empty(B, N, S, 8),
                lse=empty(B, N, S, 1, dtype=torch.float32))  # fmt: skip
    agree(got, wanted, 2e-5)


@pytest.mark.parametrize("form", [None, 3, 4, 5, "INT4"])
def test_caches_of_int4_are_their_numbers_multiplied_out(form):
    numbers = torch.Generator().manual_seed(8)
    kq, vq = (torch.randint(-8, 8, (B, KV, L, 64), generator=numbers) for _ in range(2))
    query, scale, offset = drawn(B, N, S, 64), scales(KV, 1, 64), scales(KV, 1, 64) * 100
    k, v = (kq + offset) * scale, vq * scale
    wanted = both([expected(query[b], k[b], v[b]) for b in range(B)])
    given = [Int4.of(x) if form == "INT4" else words(x) for x in (kq, vq)]
    where = {}
    if isinstance(form, int):
        given = [paged(x, TABLE, 7, 4, form) for x in given]
        where = dict(blockTable=TABLE, actualSeqLengthsKv=[L, L])
    got = infer(3, query=query, key=given[:1], value=given[1:], keyAntiquantScale=scale,
                keyAntiquantOffset=offset, valueAntiquantScale=scale, **where,
                out=empty(B, N, S, 64), lse=empty(B, N, S, 1, dtype=torch.float32))  # fmt: skip
    agree(got, wanted, 2e-5)


def test_scales_of_tokens_in_pages():
    k_scale, v_scale = scales(B, 1, L, 1), scales(B, KV, L, 1) + 0.01
    k, v = KQ * k_scale, VQ * v_scale
    wanted = both([expected(Q[b], k[b], v[b]) for b in range(B)])
    pages = {
        n: paged(x, TABLE, 7, 4, 4)
        for n, x in {"k": KQ, "v": VQ, "ks": k_scale, "vs": v_scale}.items()
    }
    got = infer(3, query=Q, key=[pages["k"]], value=[pages["v"]], blockTable=TABLE,
                actualSeqLengthsKv=[L, L], keyAntiquantScale=pages["ks"][:, 0, :, 0].contiguous(),
                valueAntiquantScale=pages["vs"].squeeze(-1), keyAntiquantMode=4,
                valueAntiquantMode=5, out=empty(B, N, S, 8),
                lse=empty(B, N, S, 1, dtype=torch.float32))  # fmt: skip
    agree(got, wanted, 2e-5)


def test_one_tensor_may_have_the_scales_of_keys_and_values():
    scale, offset = scales(2, 1, D) * torch.ones(2, KV, D), scales(2, KV, D) * 100
    v = torch.randint(-99, 99, (B, KV, L, D), dtype=torch.int8)
    k, wide = ((x + offset[i][:, None]) * scale[i][:, None] for i, x in enumerate((KQ, v)))
    wanted = both([expected(Q[b], k[b], wide[b]) for b in range(B)])
    got = infer(1, query=Q, key=[KQ], value=[v], antiquantScale=scale, antiquantOffset=offset,
                out=empty(B, N, S, D), lse=empty(B, N, S, 1, dtype=torch.float32))  # fmt: skip
    agree(got, wanted, 2e-5)


def test_int8_results_are_rounded_and_saturated():
    scale, offset = scales(N, 8) * 50000, scales(N, 8) * 100
    plain = both([expected(Q[b], K[b], V[b]) for b in range(B)])[0]
    wanted = (plain * scale[:, None] + offset[:, None]).round().clamp(-128, 127)
    got = infer(3, query=Q, key=[K], value=[V], quantScale2=scale, quantOffset2=offset,
                out=empty(B, N, S, 8, dtype=torch.int8))[0]  # fmt: skip
    assert (got.double() - wanted).abs().max() <= 1  # beside a tie
    assert (got.double() != wanted).double().mean() < 0.01
    assert {got.min().item(), got.max().item()} == {-128, 127}


def test_queries_keys_and_values_of_int8():
    """Exponentials are rounded to INT8 before they meet the values."""
    q = torch.randint(-99, 99, (B, N, S, D), dtype=torch.int8)
    deq1, quant1, deq2 = (torch.tensor([x]) for x in (3e-4, 100.0, 2e-4))
    x = (q.double() @ KQ.repeat_interleave(2, 1).double().mT) * deq1.double() * 0.25
    e = (x - x.amax(-1, keepdim=True)).exp()
    p = (e * 100).round().clamp(-128, 127)
    wanted = p @ VQ.repeat_interleave(2, 1).double() * deq2.double() / e.sum(-1, keepdim=True)
    bits = deq1.view(torch.int32).long()  # as INT64
    got = infer(3, query=q, key=[KQ], value=[VQ], deqScale1=bits, quantScale1=quant1,
                deqScale2=deq2, out=empty(B, N, S, 8))[0]  # fmt: skip
    assert miss(got, wanted, 2e-3) == ""


def test_queries_of_int8_with_a_scale_of_each_and_rope():
    q = torch.randint(-99, 99, (7, N, D), dtype=torch.int8)
    scale, one = scales(7, N, 1), torch.tensor([0.01])
    q_rope, k_rope = (drawn(7, n, 8, seed=n, dtype=torch.bfloat16) for n in (N, KV))
    k, v = KQ.transpose(1, 2).flatten(0, 1)[:7], VQ.transpose(1, 2).flatten(0, 1)[:7]
    wanted = expected(
        torch.cat([q * scale, q_rope], -1).transpose(0, 1),
        torch.cat([k * one, k_rope], -1).transpose(0, 1), (v * one).transpose(0, 1),
    )  # fmt: skip
    got = infer(4, query=q, key=[k.contiguous()], value=[v.contiguous()], queryRope=q_rope,
                keyRope=k_rope, dequantScaleQuery=scale, keyAntiquantScale=one,
                valueAntiquantScale=one, inputLayout="TND",
                out=empty(7, N, 8, dtype=torch.bfloat16))  # fmt: skip
    assert miss(got[0], wanted[0].transpose(0, 1), 2e-5) == ""
