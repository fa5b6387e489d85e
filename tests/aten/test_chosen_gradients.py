# SPDX-License-Identifier: Apache-2.0
"""Gradients of attention to chosen keys and of the indexer, the loss that trains it, and caches of
quantised rows, against autograd of loops in float64.
"""

from __future__ import annotations

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import torch
from tests.aten.quantised_support import HALVES, Refused, call, miss, random
from tests.aten.test_chosen_attention import FAR, attended

Tensor = torch.Tensor
B, S, N, D, L, COUNT, SCALE = 2, 3, 4, 16, 9, 5, 0.3
ROWS, KEYS = [1, 3], [7, 5]  # of packed sequences
# Results of the forward are rounded before the gradients read them.
SLACK = {torch.float16: 2e-3, torch.bfloat16: 2e-2}


def drawn(packed: bool, dtype: torch.dtype, keys: bool, *last: int, seed: int = 0) -> Tensor:
    rows = KEYS if keys else ROWS
    lead = (sum(rows),) if packed else (B, L if keys else S)
    return random(*lead, *last, seed=seed, dtype=dtype)


def parts(x: Tensor, packed: bool, keys: bool = False) -> list[Tensor]:
    return list(x.split(KEYS if keys else ROWS) if packed else x)


def ends(packed: bool) -> tuple[list[int] | None, list[int] | None]:
    return ([1, 4], [7, 12]) if packed else (None, None)


def chosen(packed: bool, count: int = COUNT) -> Tensor:
    """Keys without repetition, some past the row, and -1 at the end of one list."""
    random_ = torch.Generator().manual_seed(5)
    lists = []
    for b in range(B):
        keys, rows = (KEYS[b], ROWS[b]) if packed else (L, S)
        for i in range(rows):
            order = torch.randperm(keys, generator=random_)[:count]
            lists.append(torch.nn.functional.pad(order, (0, count - len(order)), value=-1))
            if i == 1:
                lists[-1][2:] = -1
    made = torch.stack(lists).int()
    return made[:, None] if packed else made.reshape(B, S, 1, count)


def gradients(outputs: list[Tensor], inputs: list[Tensor], to: list[Tensor]) -> list[Tensor]:
    return list(torch.autograd.grad(outputs, inputs, [g.double() for g in to]))


def wide(*given: Tensor) -> list[Tensor]:
    return [x.double().requires_grad_() for x in given]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("rotated", [0, 8])
def test_gradients_of_sparse_attention(dtype, packed, rotated):
    layout, mode = "TND" if packed else "BSND", (3, FAR, FAR)
    q, k = drawn(packed, dtype, False, N, D), drawn(packed, dtype, True, 1, D, seed=1)
    v, dy = drawn(packed, dtype, True, 1, 8, seed=2), drawn(packed, dtype, False, N, 8, seed=3)
    ropes = [None, None]
    if rotated:
        ropes = [drawn(packed, dtype, False, N, rotated, seed=4),
                 drawn(packed, dtype, True, 1, rotated, seed=5)]  # fmt: skip
    index = chosen(packed)
    lengths = [None if x is None else torch.tensor(x).int() for x in ends(packed)]
    statistics = (1, 4, N) if packed else (B, 1, S, N)
    out, most, total = call(
        "aclnnSparseFlashAttention", q, k, v, index, None, *lengths, *ropes, SCALE, 1, layout,
        layout, *mode, 2, True, torch.empty_like(dy), torch.empty(statistics),
        torch.empty(statistics))  # fmt: skip
    inputs = wide(q, k, v, *(x for x in ropes if x is not None))
    whole = [torch.cat([x, r], -1) if rotated else x
             for x, r in zip(inputs[:2], inputs[3:] or inputs[:2], strict=True)]  # fmt: skip
    outs = [
        attended(*one, 1, SCALE)[0]
        for one in zip(parts(whole[0], packed), parts(whole[1], packed, True),
                       parts(inputs[2], packed, True), parts(index, packed), strict=True)
    ]  # fmt: skip
    expected = gradients(outs, inputs, parts(dy, packed))
    got = call("aclnnSparseFlashAttentionGrad", q, k, v, index, dy, out, most, total, *lengths,
               *ropes, SCALE, 1, layout, *mode, True, *map(torch.empty_like, (q, k, v)),
               *(torch.empty(0) if r is None else torch.empty_like(r) for r in ropes))  # fmt: skip
    for one, other in zip(got, expected, strict=False):
        assert miss(one, other, slack=SLACK[dtype]) == ""


def scores(q: Tensor, k: Tensor, w: Tensor) -> Tensor:
    """[S, L] of one sequence, in float64."""
    return torch.einsum("snl,sn->sl", torch.einsum("snd,ld->snl", q, k[:, 0]).relu(), w)


def seen(rows: int, keys: int, index: Tensor | None) -> Tensor:
    """Whether a row of the query reads a key: up to the row, and in its list."""
    mask = torch.ones(rows, keys).tril(keys - rows).bool()
    if index is not None:
        listed = torch.zeros(rows, keys).bool()
        for i, row in enumerate(index[:, 0].tolist()):
            listed[i, [j for j in row if j >= 0]] = True
        mask &= listed
    return mask


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("packed", [False, True])
def test_gradients_of_the_indexer(dtype, packed):
    q, k = drawn(packed, dtype, False, N, D), drawn(packed, dtype, True, 1, D, seed=1)
    w, index = drawn(packed, dtype, False, N, seed=2), chosen(packed)
    dy = random(*index.squeeze(-2).shape, seed=3, dtype=dtype)
    inputs, total = wide(q, k, w), torch.zeros((), dtype=torch.float64)
    for one in zip(parts(inputs[0], packed), parts(inputs[1], packed, True),
                   parts(inputs[2], packed), parts(index, packed), parts(dy, packed),
                   strict=True):  # fmt: skip
        x, its, g = scores(*one[:3]), one[3][:, 0].long(), one[4].double()
        counts = (its >= 0) & (its <= x.shape[1] - x.shape[0] + torch.arange(len(x))[:, None])
        total = total + (x.gather(1, its.clamp(min=0)) * g * counts).sum()
    expected = torch.autograd.grad(total, inputs)
    lengths = [None if x is None else torch.tensor(x).int() for x in ends(packed)]
    got = call("aclnnLightningIndexerGrad", q, k, dy, index, w, *lengths, N,
               "TND" if packed else "BSND", 3, FAR, FAR, True,
               *map(torch.empty_like, (q, k, w)))  # fmt: skip
    for one, other in zip(got, expected, strict=True):
        assert miss(one, other) == ""


@pytest.mark.parametrize("kv", [1, 2])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("form", ["Dense", "Sparse"])
def test_the_loss_of_the_indexer_and_its_gradients(form, packed, kv):
    """Shares of attention sum to 1, so the gradient is that of the divergence by autograd."""
    dtype, layout = torch.float16, "TND" if packed else "BSND"
    q, k = drawn(packed, dtype, False, N, D), drawn(packed, dtype, True, kv, D, seed=1)
    qr, kr = drawn(packed, dtype, False, N, 8, seed=6), drawn(packed, dtype, True, kv, 8, seed=7)
    qi, ki = drawn(packed, dtype, False, 3, 8, seed=2), drawn(packed, dtype, True, 1, 8, seed=3)
    w = drawn(packed, dtype, False, 3, seed=4)
    index = chosen(packed) if form == "Sparse" else None
    inputs, loss = wide(qi, ki, w), torch.zeros((), dtype=torch.float64)
    most, total, index_most, index_total = [], [], [], []
    for b in range(B):
        of = [parts(x.double(), packed, keys)[b]
              for x, keys in ((q, False), (qr, False), (k, True), (kr, True))]  # fmt: skip
        one, near = torch.cat(of[:2], -1), torch.cat(of[2:], -1).repeat_interleave(N // kv, 1)
        x = torch.einsum("snd,lnd->nsl", one, near) * SCALE
        mask = seen(x.shape[1], x.shape[2], None if index is None else parts(index, packed)[b])
        x = x.masked_fill(~mask, -torch.inf)
        most.append(x.amax(-1))
        total.append((x - most[-1][..., None]).exp().sum(-1))
        p = x.softmax(-1).mean(0)
        s = scores(*(parts(t, packed, keys)[b]
                     for t, keys in zip(inputs, (False, True, False), strict=True)))  # fmt: skip
        s = s.masked_fill(~mask, -torch.inf)
        index_most.append(s.amax(-1))
        index_total.append((s - index_most[-1][:, None]).exp().sum(-1))
        y = s.log_softmax(-1).masked_fill(~mask, 0)
        loss = loss + (p * (p.clamp(min=1e-8).log() - y)).sum()
    if packed:
        numbers = [torch.cat(t, 1).unflatten(0, (kv, -1)).transpose(1, 2) for t in (most, total)]
    else:
        numbers = [torch.stack(t).unflatten(1, (kv, -1)).transpose(2, 3) for t in (most, total)]
    numbers = [t.float().contiguous() for t in numbers]
    expected = torch.autograd.grad(loss, inputs)
    made = [*map(torch.empty_like, (qi, ki, w)), torch.empty(1)]
    lists, mode = ends(packed), (layout, 3, FAR, FAR)
    if form == "Dense":
        shape = (1, 4) if packed else (B, 1, S)
        own = call("aclnnDenseLightningIndexerSoftmaxLse", qi, ki, w, *lists, *mode,
                   torch.empty(shape), torch.empty(shape))  # fmt: skip
        for got, wanted in zip(own, (index_most, index_total), strict=True):
            assert miss(got.flatten(), torch.cat(wanted), slack=1e-6) == ""
        found = call("aclnnDenseLightningIndexerGradKLLoss", q, k, qi, ki, w, *numbers, *own, qr,
                     kr, *lists, SCALE, *mode, *made)  # fmt: skip
    else:
        found = call("aclnnSparseLightningIndexerGradKLLoss", q, k, qi, ki, w, index, *numbers, qr,
                     kr, *lists, SCALE, *mode, True, *made)  # fmt: skip
    assert miss(found[3], loss.reshape(1), slack=1e-5) == ""
    for got, wanted in zip(found[:3], expected, strict=True):
        assert miss(got, wanted, slack=2e-3) == ""


@pytest.mark.parametrize("version", ["", "V2"])
def test_rows_of_a_cache_hold_numbers_rotated_part_and_scales(version):
    dtype, n, rotated, tile = torch.bfloat16, 32, 8, 16
    q, sinks = random(B, S, N, n + rotated, dtype=dtype), random(N)
    numbers = random(6, 4, 1, n, low=-99, high=99, dtype=torch.int8)
    rope = random(6, 4, 1, rotated, seed=1, dtype=dtype)
    factor = random(6, 4, 1, n // tile, low=0.001, high=0.01)
    rows = torch.cat([numbers, rope.view(torch.int8), factor.view(torch.int8)], -1)
    table, lengths = torch.tensor([[1, 3], [5, 0]]).int(), torch.tensor([7, 8]).int()
    index = chosen(False) % 7
    given = (sinks,) if version else ()
    (out,) = call(f"aclnnKvQuantSparseFlashAttention{version}", q, rows, rows, index, None, None,
                  table, None, lengths, *given, SCALE, 2, 2, 1, "BSND", "PA_BSND", 3, FAR, FAR, 2,
                  1, tile, rotated, torch.empty(B, S, N, n, dtype=dtype))  # fmt: skip
    plain = numbers.double() * factor.repeat_interleave(tile, -1)
    for b in range(B):
        k, r = (x[table[b].long()].flatten(0, 1)[: lengths[b]] for x in (plain, rope))
        wanted = attended(q[b], torch.cat([k, r], -1), k, index[b], 1, SCALE,
                          sinks=sinks if version else None)[0]  # fmt: skip
        assert miss(out[b], wanted) == ""


def test_refusals_name_the_argument():
    q, k = random(B, S, N, D), random(B, L, 1, D)
    w, index = random(B, S, N), chosen(False)
    dy = random(B, S, COUNT)
    made = [*map(torch.empty_like, (q, k, w))]
    for place, value, sentence in (
        (2, random(B, S, 2), "dy must have a number for each of sparseIndices"),
        (3, index[:, :2].contiguous(), "sparseIndices must have a list for each of the 6 rows"),
        (4, random(B, S, 2), "weights must have shape"),
        (8, "BNSD", "must be BSND or TND, but got BNSD"),
        (8, "TND", "query must have 3 dims"),
        (9, 2, "sparseMode must be 0, all keys, or 3"),
    ):
        given = [q, k, dy, index, w, None, None, N, "BSND", 3, FAR, FAR, True, *made]
        given[place] = value
        with pytest.raises(Refused, match=sentence):
            call("aclnnLightningIndexerGrad", *given)
