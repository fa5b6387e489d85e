# SPDX-License-Identifier: Apache-2.0
"""Keys that an indexer chooses and attention to them, causal convolutions with states and adapters,
against loops in float64.
"""

from __future__ import annotations

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import arguments, samples, torch
from tests.aten.quantised_support import HALVES, Refused, call, miss, random

FAR = 1 << 40
B, S, N, D, L, COUNT = 2, 3, 4, 16, 9, 5


def indexed(q, k, w, count, causal=True):
    """Indices and values of one sequence."""
    index = torch.full((len(q), 1, count), -1, dtype=torch.int32)
    value = torch.full((len(q), 1, count), -torch.inf, dtype=torch.float64)
    for i in range(len(q)):
        seen = len(k) - len(q) + i + 1 if causal else len(k)
        score = (q[i].double() @ k[:seen, 0].double().t()).relu().t() @ w[i].double()
        order = score.argsort(descending=True, stable=True)[:count]
        index[i, 0, : len(order)], value[i, 0, : len(order)] = order, score[order]
    return index, value


def attended(q, k, v, index, block, scale, causal=True, sinks=None):
    out = torch.zeros(*q.shape[:2], v.shape[-1], dtype=torch.float64)
    largest, total = torch.zeros(2, *q.shape[:2], dtype=torch.float64)
    for i in range(len(q)):
        seen = len(k) - len(q) + i + 1 if causal else len(k)
        used = []
        for x in index[i, 0].tolist():
            if x < 0:
                break
            used += [j for j in range(x * block, (x + 1) * block) if j < seen]
        if used:
            score = q[i].double() @ k[used, 0].double().t() * scale
            all_ = score if sinks is None else torch.cat([score, sinks.double()[:, None]], 1)
            largest[i] = all_.detach().amax(1)
            total[i] = (all_.detach() - largest[i][:, None]).exp().sum(1)
            out[i] = all_.softmax(1)[:, : len(used)] @ v[used, 0].double()
    return out, largest, total


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("dtype", HALVES)
def test_indexer_and_sparse_attention(dtype, causal):
    q, k = random(B, S, N, D, dtype=dtype), random(B, L, 1, D, seed=1, dtype=dtype)
    w = random(B, S, N, seed=2, low=0, high=1, dtype=dtype)
    mode = (3 if causal else 0, FAR, FAR)
    index, value = call(
        "aclnnLightningIndexer", q, k, w, None, None, None, "BSND", "BSND", COUNT, *mode, True,
        torch.empty(B, S, 1, COUNT, dtype=torch.int32),
        torch.empty(B, S, 1, COUNT, dtype=dtype))  # fmt: skip
    for b in range(B):
        expected = indexed(q[b], k[b], w[b], COUNT, causal)
        assert torch.equal(index[b], expected[0])
        assert miss(value[b], expected[1]) == ""
    rope_q, rope_k = random(B, S, N, 8, seed=3, dtype=dtype), random(B, L, 1, 8, dtype=dtype)
    numbers = torch.empty(B, 1, S, N), torch.empty(B, 1, S, N)
    out, largest, total = call(
        "aclnnSparseFlashAttention", q, k, k, index, None, None, None, rope_q, rope_k, 0.3, 1,
        "BSND", "BSND", *mode, 2, True, torch.empty_like(q), *numbers)  # fmt: skip
    for b in range(B):
        whole = torch.cat([q[b], rope_q[b]], -1), torch.cat([k[b], rope_k[b]], -1)
        expected = attended(*whole, k[b], index[b], 1, 0.3, causal)
        for got, one in zip((out[b], largest[b, 0], total[b, 0]), expected, strict=True):
            assert miss(got, one) == ""


def test_pages_and_ends_of_sequences_with_sinks():
    dtype = torch.bfloat16
    ends, lengths = torch.tensor([2, 6]).int(), torch.tensor([7, 8]).int()
    q, sinks = random(6, N, D, dtype=dtype), random(N)
    pages, table = random(6, 4, 1, D, seed=4, dtype=dtype), torch.tensor([[1, 3], [5, 0]]).int()
    w = random(6, N, seed=2, low=0, high=1, dtype=dtype)
    index = call("aclnnLightningIndexer", q, pages, w, ends, lengths, table, "TND", "PA_BSND", 3, 3,
                 FAR, FAR, False, torch.empty(6, 1, 3, dtype=torch.int32), None)[0]  # fmt: skip
    blocks = torch.tensor([[0, 2, -1, 1]]).int().expand(6, 1, 4).contiguous()  # 1 does not count
    out = call("aclnnSparseFlashAttentionV2", q, pages, pages, blocks, table, ends, lengths, None,
               None, sinks, 0.3, 2, "TND", "PA_BSND", 3, FAR, FAR, 0, False, torch.empty_like(q),
               None, None)[0]  # fmt: skip
    for b, rows in enumerate((slice(0, 2), slice(2, 6))):
        k = pages[table[b].long()].flatten(0, 1)[: lengths[b]]
        assert torch.equal(index[rows], indexed(q[rows], k, w[rows], 3)[0])
        expected = attended(q[rows], k, k, blocks[rows], 2, 0.3, sinks=sinks)[0]
        assert miss(out[rows], expected) == ""


def test_quantised_indexer():
    q = random(B, S, N, D, low=-99, high=99, dtype=torch.int8)
    k = random(B, L, 1, D, low=-99, high=99, dtype=torch.int8)
    w, sq, sk = random(B, S, N, low=0, high=1), random(B, S, N, low=1), random(B, L, 1, low=1)
    (index,) = call(
        "aclnnQuantLightningIndexer", q, k, w, sq, sk, None, None, None, 0, 0, "BSND", "BSND",
        COUNT, 3, FAR, FAR, torch.empty(B, S, 1, COUNT, dtype=torch.int32))  # fmt: skip
    for b in range(B):
        expected = indexed(q[b] * sq[b, ..., None], k[b] * sk[b, ..., None], w[b], COUNT)
        assert torch.equal(index[b], expected[0])


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("masked", [True, False])
def test_masked_convolution_and_gradient(dtype, masked):
    x, g = random(5, B, 8, dtype=dtype), random(5, B, 8, seed=1, dtype=dtype)
    w = random(3, 8, seed=2, dtype=dtype)
    mask = torch.tensor([[1, 1, 0, 1, 1], [0, 1, 1, 1, 0]]).bool() if masked else None
    wide, weight = x.double().requires_grad_(), w.double().requires_grad_()
    padded = torch.cat([torch.zeros(2, B, 8), wide])
    y = sum(padded[i : i + 5] * weight[i] for i in range(3))
    y = y * mask.t()[..., None] if masked else y
    (out,) = call("aclnnMaskedCausalConv1d", x, w, mask, torch.empty_like(x))
    assert miss(out, y) == ""
    gradients = call("aclnnMaskedCausalConv1dBackward", g, x, w, mask, torch.empty_like(x),
                     torch.empty_like(w))  # fmt: skip
    for got, expected in zip(gradients, torch.autograd.grad(y, (wide, weight), g.double()),
                             strict=True):  # fmt: skip
        assert miss(got, expected) == ""


@pytest.mark.parametrize("rows", [1, 2**40])
def test_weights_beyond_the_first_row_meet_zeros(rows):
    """A stride of 0 makes as many of them as the shape says."""
    x = random(5, B, 8, dtype=torch.float32)
    w = torch.ones(1, 8).expand(rows, 8)
    (y,) = call("aclnnMaskedCausalConv1d", x, w, None, torch.empty_like(x))
    assert miss(y, x.double() if rows == 1 else x.double().cumsum(0)) == ""


def test_convolution_in_chunks_is_that_of_the_whole():
    """The states carry the last rows from call to call; the second slot stays out of it."""
    dtype, rows, h = torch.float16, 9, 6
    x, w, bias = random(rows, h, dtype=dtype), random(3, h, dtype=dtype), random(h, dtype=dtype)
    states = random(3, 4, h, seed=7, dtype=dtype)
    before, done, parts = states.clone(), 0, []
    for size in (4, 1, 1, 3):
        part = x[done : done + size].contiguous()
        starts, slot = torch.tensor([0, size, size]).int(), torch.tensor([2, -1]).int()
        _, y = call("aclnnFusedCausalConv1d", part, w, states, starts, slot, None, bias, None,
                    torch.tensor([done, 0]).int(), None, None, None, 1, -1, 0, -1, 1, 128, 0,
                    torch.empty_like(part))  # fmt: skip
        parts.append(y)
        done += size
    padded = torch.cat([torch.zeros(2, h), x.double()])
    conv = sum(padded[i : i + rows] * w[i].double() for i in range(3)) + bias.double()
    expected = conv * conv.sigmoid() + x.double()
    assert miss(torch.cat(parts), expected) == ""
    assert torch.equal(states[2], x[-4:])
    assert torch.equal(states[:2], before[:2])


def test_accepted_tokens_choose_the_state():
    dtype, h = torch.bfloat16, 6
    x, w = random(2, 2, h, dtype=dtype), random(3, h, dtype=dtype)
    states = random(2, 5, h, seed=7, dtype=dtype)
    old = states.clone()
    accepted = torch.tensor([1, 3]).int()
    got, _ = call("aclnnInplaceFusedCausalConv1d", x.clone(), w, states, None, None, None, None,
                  accepted, None, None, None, None, 0, -1, 1, -1, 0, 128, 0)  # fmt: skip
    for b in range(2):
        skipped = int(accepted[b]) - 1
        rows = torch.cat([old[b, skipped : skipped + 2], x[b]]).double()
        assert miss(got[b], sum(rows[i : i + 2] * w[i].double() for i in range(3))) == ""


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("with_a", [True, False])
def test_lora(dtype, with_a):
    y, x = random(5, 20, dtype=dtype), random(5, 12 if with_a else 4, dtype=dtype)
    b, a = random(3, 2, 8, 4, dtype=dtype), random(3, 2, 4, 12, dtype=dtype) if with_a else None
    of = torch.tensor([2, 0, -1, 2, 7]).int()  # -1 and 7 are nobody's
    expected = y.double().clone()
    for i, adapter in enumerate(of.tolist()):
        if 0 <= adapter < 3:
            z = x[i].double() if a is None else a[adapter, 1].double() @ x[i].double()
            expected[i, 6:14] += 0.5 * b[adapter, 1].double() @ z
    (out,) = call("aclnnAddLora", y, x, b, of, a, 1, 0.5, 6, 8, torch.empty_like(y))
    assert miss(out, expected) == ""


REFUSED = [
    ("aclnnAddLora", 5, 2, "layerIdx must be in [0, 2), but got 2"),
    ("aclnnAddLora", 7, 13, "yOffset must be in [0, 12], but got 13"),
    ("aclnnFusedCausalConv1d", 12, 3, "activation must be 0, none, 1, silu, or 2, swish"),
    ("aclnnFusedCausalConv1d", 4, torch.tensor([2, 4]).int(), "cacheIndices must be in [0, 4)"),
    ("aclnnFusedCausalConv1d", 3, torch.tensor([0, 3, 8]).int(), "queryStartLoc must ascend"),
    ("aclnnFusedCausalConv1d", 9, torch.tensor([2, 4]).int(), "pages are not supported"),
    ("aclnnLightningIndexer", 0, torch.zeros(2, 3, 0, 16).half(), "must have at least one head"),
    ("aclnnLightningIndexer", 9, 1, "sparseMode must be 0, all keys, or 3"),
    ("aclnnLightningIndexer", 7, "PA_BSND", "actualSeqLengths of keys must be given"),
    ("aclnnLightningIndexer", 4, torch.tensor([9, 10]).int(), "must have lengths from 0 to 9"),
    ("aclnnSparseFlashAttention", 3, torch.zeros(2, 3, 2, 4).int(), "sparseIndices must have"),
    ("aclnnSparseFlashAttention", 10, 0, "sparseBlockSize must be at least 1, but got 0"),
    ("aclnnSparseFlashAttentionV2", 4, torch.tensor([[1, 6], [5, 0]]).int(), "blockTable must be"),
    ("aclnnSparseFlashAttentionV2", 5, torch.tensor([2, 7]).int(), "must have lengths from 0"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "place", "value", "sentence"), REFUSED)
def test_refusals(name, place, value, sentence):
    sample = next(sample for sample in samples() if sample.row.name == name)
    given = arguments(sample, torch.float16, torch.float16)
    call(name, *given)
    given[place] = value
    with pytest.raises(Refused) as refusal:
        call(name, *given)
    assert sentence in str(refusal.value)
