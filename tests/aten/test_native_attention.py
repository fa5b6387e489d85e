# SPDX-License-Identifier: Apache-2.0
"""Native sparse attention: sums of windows, the choice of blocks and attention to them, in training
and over pages, against loops and autograd in float64.
"""

from __future__ import annotations

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import torch
from tests.aten.attention_reference import attention
from tests.aten.quantised_support import HALVES, Refused, call, miss, random

Tensor = torch.Tensor
N, KV, D, E, SCALE = 4, 2, 16, 8, 0.3
SIZE, STRIDE, BLOCK, COUNT = 4, 2, 4, 3  # of windows and chosen blocks
ROWS, KEYS = [3, 5], [9, 12]
SLACK = {torch.float16: 2e-3, torch.bfloat16: 2e-2}


def sums(lengths: list[int]) -> list[int]:
    return torch.tensor(lengths).cumsum(0).tolist()


def windows(x: Tensor, weight: Tensor) -> Tensor:
    """[W, N, D] of one sequence."""
    if len(x) < SIZE:
        return x[:0]
    return torch.einsum("wndu,un->wnd", x.unfold(0, SIZE, STRIDE), weight)


@pytest.mark.parametrize("dtype", HALVES)
def test_windows_of_keys_are_summed_with_their_gradients(dtype):
    lengths = [0, 9, 3, 4]  # none of the third; running sums may begin with 0
    x, weight = random(18, KV, D, dtype=dtype), random(SIZE, KV, seed=1, dtype=dtype)
    wide = [x.double().requires_grad_(), weight.double().requires_grad_()]
    expected = torch.cat([windows(part, wide[1]) for part in wide[0][:16].split(lengths)])
    given = (sums(lengths), "TND", SIZE, STRIDE, 0)
    (out,) = call("aclnnNsaCompress", x, weight, *given, torch.empty(4, KV, D, dtype=dtype))
    assert miss(out, expected) == ""
    dy = random(4, KV, D, seed=2, dtype=dtype)
    got = call("aclnnNsaCompressGrad", dy, x, weight, sums(lengths), SIZE, STRIDE, 0, "TND",
               torch.empty_like(x), torch.empty_like(weight))  # fmt: skip
    for one, other in zip(got, torch.autograd.grad(expected, wide, dy.double()), strict=True):
        assert miss(one, other) == ""


def test_the_last_window_goes_to_the_cache_where_it_is_complete():
    dtype, page = torch.float16, 4
    pages, weight = random(5, page, KV, D, dtype=dtype), random(SIZE, KV, seed=1, dtype=dtype)
    table, slots = torch.tensor([[1, 3], [0, 4], [2, 1]]).int(), torch.tensor([5, 2, 0]).int()
    old = random(6, KV, D, seed=3, dtype=dtype)
    lengths = [8, 5, 4]  # the second ends within a window
    (cache,) = call("aclnnNsaCompressWithCache", pages, weight, slots, lengths, table, "TND", SIZE,
                    STRIDE, 1, page, old.clone())  # fmt: skip
    for b in (0, 2):
        rows = pages[table[b].long()].flatten(0, 1)[: lengths[b]].double()
        assert miss(cache[slots[b]], windows(rows, weight.double())[-1]) == ""
    assert torch.equal(cache[[1, 2, 3, 4]], old[[1, 2, 3, 4]])


def importance(p: Tensor, blocks: int) -> Tensor:
    """Of blocks, from the shares p[..., window]."""
    m, n = BLOCK // STRIDE, SIZE // STRIDE
    made = torch.zeros(*p.shape[:-1], blocks, dtype=p.dtype)
    for j in range(blocks):
        for e in (m * (j + 1) - a - c for a in range(m) for c in range(n)):
            if 0 <= e < p.shape[-1]:
                made[..., j] += p[..., e]
    return made


def shared(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, ...]:
    """Result, maximum and sum of one sequence by head, and the shares by head of the keys."""
    q, k, v = (x.double().transpose(0, 1) for x in (q, k, v))
    y, most, total = attention(q, k, v, scale=SCALE, seen=None if mask is None else ~mask)
    x = q @ k.repeat_interleave(N // KV, 0).mT * SCALE
    if mask is not None:
        x = x.masked_fill(mask, -torch.inf)
    p = ((x - most[..., None]).exp() / total[..., None]).nan_to_num()
    return y.transpose(0, 1), most, total, p.unflatten(0, (KV, -1)).sum(1)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", HALVES)
def test_attention_to_windows_chooses_blocks(dtype, masked):
    q = random(8, N, D, dtype=dtype)
    k, v = random(21, KV, D, seed=1, dtype=dtype), random(21, KV, E, seed=2, dtype=dtype)
    blocks = [5, 2]  # fewer than chosen in the second
    mask = torch.arange(12) > 2 * torch.arange(5)[:, None] + 1 if masked else None
    forced = torch.eye(5).bool() if masked else None
    most, total, out, index = call(
        "aclnnNsaCompressAttention", q, k, v, mask, forced, sums(ROWS), sums(KEYS), sums(blocks),
        SCALE, N, "TND", 1, SIZE, STRIDE, BLOCK, COUNT, torch.empty(8, N, 8),
        torch.empty(8, N, 8), torch.empty(8, N, E, dtype=dtype),
        torch.empty(8, KV, COUNT, dtype=torch.int32))  # fmt: skip
    first = key = 0
    for b, (rows, keys) in enumerate(zip(ROWS, KEYS, strict=True)):
        of, near = slice(first, first + rows), slice(key, key + keys)
        seen = None if mask is None else mask[:rows, :keys]
        y, its_most, its_total, p = shared(q[of], k[near], v[near], seen)
        assert miss(out[of], y) == ""
        # The statistics of a sequence are its [N, S], one sequence after the other.
        for got, wanted in ((most, its_most), (total, its_total)):
            assert miss(got[..., 0].flatten()[first * N : (first + rows) * N],
                        wanted.flatten(), slack=1e-6) == ""  # fmt: skip
        score = importance(p, blocks[b])
        if forced is not None:
            score = score.masked_fill(forced[:rows, : blocks[b]], 23333)
        order = score.sort(dim=-1, descending=True, stable=True)[1][..., :COUNT].transpose(0, 1)
        assert torch.equal(index[of, :, : order.shape[-1]], order.int())
        assert (index[of, :, order.shape[-1] :] == -1).all()
        first, key = first + rows, key + keys


def selected(q: Tensor, k: Tensor, v: Tensor, index: Tensor, causal: bool) -> tuple[Tensor, ...]:
    """One sequence in float64: result [S, N, E], maximum and sum [S, N]."""
    rows = []
    for i in range(len(q)):
        for h in range(KV):
            used = [j for x in index[i, h].tolist() if x >= 0
                    for j in range(x * BLOCK, min(len(k), (x + 1) * BLOCK))
                    if not causal or j <= i]  # fmt: skip
            heads = q[i, h * N // KV : (h + 1) * N // KV]
            x = heads @ k[used, h].t() * SCALE
            rows.append((x.softmax(1) @ v[used, h], x.amax(1), (x - x.amax(1, True)).exp().sum(1)))
    shape = (len(q), N)
    return tuple(torch.stack(t).reshape(*shape, *t[0].shape[1:]) for t in zip(*rows, strict=True))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", HALVES)
def test_attention_to_chosen_blocks_and_its_gradients(dtype, causal):
    q = random(8, N, D, dtype=dtype)
    k, v = random(21, KV, D, seed=1, dtype=dtype), random(21, KV, E, seed=2, dtype=dtype)
    dy = random(8, N, E, seed=3, dtype=dtype)
    index = torch.stack([torch.randperm(3)[:COUNT] for _ in range(16)]).reshape(8, KV, COUNT).int()
    index[..., 0] = 0  # so that every row has a key
    index[4, 1, 2] = -1
    mask = torch.ones(5, 12).triu(1).bool() if causal else None
    lists = sums(ROWS), sums(KEYS)
    most, total, out = call(
        "aclnnNsaSelectedAttention", q, k, v, index, mask, *lists, SCALE, N, "TND", 2, BLOCK, COUNT,
        torch.empty(8, N, 8), torch.empty(8, N, 8), torch.empty_like(dy))  # fmt: skip
    wide = [x.double().requires_grad_() for x in (q, k, v)]
    found = [selected(*one, causal) for one in zip(wide[0].split(ROWS), wide[1].split(KEYS),
             wide[2].split(KEYS), index.split(ROWS), strict=True)]  # fmt: skip
    y, largest, sum_ = (torch.cat(t) for t in zip(*found, strict=True))
    assert miss(out, y) == ""
    assert miss(most, largest[..., None].expand(8, N, 8), slack=1e-6) == ""
    assert miss(total, sum_[..., None].expand(8, N, 8), slack=1e-6) == ""
    got = call("aclnnNsaSelectedAttentionGrad", q, k, v, out, dy, most, total, index, *lists, mask,
               SCALE, BLOCK, COUNT, N, "TND", 2, *map(torch.empty_like, (q, k, v)))  # fmt: skip
    for one, other in zip(got, torch.autograd.grad(y, wide, dy.double()), strict=True):
        assert miss(one, other, slack=SLACK[dtype]) == ""


PAGE, TABLE, LENGTHS = 4, torch.tensor([[1, 3, 2], [0, 4, 5]]).int(), [11, 6]


def pages(size: int, seed: int, dtype: torch.dtype) -> tuple[Tensor, list[Tensor]]:
    """Pages [blocks, page, heads * size], and the keys of each sequence [L, heads, size]."""
    made = random(6, PAGE, KV * size, seed=seed, dtype=dtype)
    keys = [made[TABLE[b].long()].flatten(0, 1)[: LENGTHS[b]].unflatten(1, (KV, size))
            for b in range(2)]  # fmt: skip
    return made, keys


@pytest.mark.parametrize("layout", ["TND", "BSND"])
@pytest.mark.parametrize("dtype", HALVES)
def test_one_row_chooses_the_ends_and_the_best_blocks_between(dtype, layout):
    count, shape = 4, (2, N) if layout == "TND" else (2, 1, N)
    q = random(*shape, D, dtype=dtype)
    (k, keys), (v, values) = pages(D, 1, dtype), pages(E, 2, dtype)
    out, index = call(
        "aclnnNsaCompressAttentionInfer", q, k, v, None, TABLE, None, LENGTHS, None, None, N, KV,
        BLOCK, count, SIZE, STRIDE, SCALE, layout, PAGE, 0, torch.empty(*shape, E, dtype=dtype),
        torch.empty(2, KV, count, dtype=torch.int32))  # fmt: skip
    for b in range(2):
        y, _, _, p = shared(q.reshape(2, 1, N, D)[b], keys[b], values[b], None)
        assert miss(out.reshape(2, 1, N, E)[b], y) == ""
        blocks = -(-((LENGTHS[b] - 1) * STRIDE + SIZE) // BLOCK)
        middle = importance(p[:, 0], blocks)[:, 1 : blocks - 2]
        best = middle.sort(dim=-1, descending=True, stable=True)[1][:, : count - 3] + 1
        assert torch.equal(index[b, :, 3:], best.int())
        assert index[b, :, :3].tolist() == [[0, blocks - 2, blocks - 1]] * KV


@pytest.mark.parametrize("layout", ["TND", "BSND", "BSH"])
@pytest.mark.parametrize("dtype", HALVES)
def test_rows_read_chosen_blocks_of_pages(dtype, layout):
    rows = 1 if layout == "TND" else 2
    lead = {"TND": (2, N), "BSND": (2, rows, N), "BSH": (2, rows)}[layout]
    heads = N if layout == "BSH" else 1
    q = random(*lead, heads * D, dtype=dtype)
    (k, keys), (v, values) = pages(D, 1, dtype), pages(E, 2, dtype)
    index = torch.tensor([[[1, 0, -1], [1, -1, 0]]] * rows + [[[0, 1, -1], [1, 0, 0]]] * rows).int()
    index = index.reshape(2, *((rows,) if rows > 1 else ()), KV, COUNT)
    (out,) = call("aclnnNsaSelectedAttentionInfer", q, k, v, index, None, TABLE, None, LENGTHS,
                  layout, N, KV, BLOCK, COUNT, PAGE, SCALE, 0,
                  torch.empty(*lead, heads * E, dtype=dtype))  # fmt: skip
    lists = index.reshape(2, rows, KV, COUNT).clone()
    lists[0, :, 1, 2] = -1  # what follows -1 does not count
    for b in range(2):
        y = selected(q.reshape(2, rows, N, D)[b].double(), keys[b].double(), values[b].double(),
                     lists[b], False)[0]  # fmt: skip
        assert miss(out.reshape(2, rows, N, E)[b], y) == ""


REFUSED = [
    (4, torch.tensor([[1, 6, 2], [0, 4, 5]]).int(), "blockTable must be in"),
    (3, torch.ones(2, 2).bool(), "attentionMask and topKMask must be NULL"),
    (6, [11], "blockTable must have 1 rows"),
    (6, [11, 13], "lengths of keys must be from 0 to 12"),
    (10, 3, "the heads of query must be a multiple"),
    (12, 2, "selectBlockCount at least 3"),
    (14, 0, "must be multiples of compressStride"),
    (16, "SBH", "layout must be TND or BSND, but got SBH"),
    (17, 5, "key must have pages of 5 keys"),
]


@pytest.mark.parametrize(("place", "value", "sentence"), REFUSED)
def test_refusals(place, value, sentence):
    dtype = torch.float16
    given = [random(2, N, D, dtype=dtype), pages(D, 1, dtype)[0], pages(E, 2, dtype)[0], None,
             TABLE, None, LENGTHS, None, None, N, KV, BLOCK, 4, SIZE, STRIDE, SCALE, "TND", PAGE, 0,
             torch.empty(2, N, E, dtype=dtype),
             torch.empty(2, KV, 4, dtype=torch.int32)]  # fmt: skip
    given[place] = value
    with pytest.raises(Refused, match=sentence):
        call("aclnnNsaCompressAttentionInfer", *given)
