# SPDX-License-Identifier: Apache-2.0
"""Caches of keys and values, rotary embedding and joined parts of attention, against loops."""

from __future__ import annotations

from typing import Any

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import torch
from tests.aten.attention_reference import attention
from tests.aten.golden import FLOATS, call, miss

Tensor = torch.Tensor
HALF = torch.float16


def drawn(*shape: int, seed: int = 1, dtype: torch.dtype = HALF) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return (torch.rand(shape, generator=random) * 2 - 1).to(dtype)


# ---- pages: [blocks, size, N, D], or [blocks, N D / c, size, c] ----


def blocked(pages: Tensor) -> Tensor:
    c = 32 // pages.element_size()
    return pages.flatten(2).unflatten(2, (-1, c)).transpose(1, 2).contiguous()


SLOTS = torch.tensor([3, 11, -1, 0, 7])


@pytest.mark.parametrize("dtype", [torch.float16, torch.int8, torch.float32])
@pytest.mark.parametrize("mode", [None, "Norm", "PA_NZ"])
def test_rows_go_to_their_slots_and_come_back(mode, dtype):
    key, value = (torch.randint(-9, 9, (5, 2, n)).to(dtype) for n in (32, 64))
    expected = []
    caches = []
    for x in (key, value):
        pages = torch.full((3, 4, *x.shape[1:]), 9, dtype=dtype)
        caches.append(blocked(pages) if mode == "PA_NZ" else pages.clone())
        for i, slot in enumerate(SLOTS.tolist()):
            if slot >= 0:
                pages[slot // 4, slot % 4] = x[i]
        expected.append(blocked(pages) if mode == "PA_NZ" else pages)
    call("aclnnScatterPaKvCache", key, caches[0], SLOTS, value, caches[1], None, None, None, mode,
         "None", [1, 1], [0, 0])  # fmt: skip
    assert torch.equal(caches[0], expected[0])
    assert torch.equal(caches[1], expected[1])
    alone = torch.full_like(caches[0], 9)
    call("aclnnScatterPaCache", key, alone, SLOTS.int(), None, None, None, mode)
    assert torch.equal(alone, expected[0])


@pytest.mark.parametrize("cumulative", [False, True])
@pytest.mark.parametrize("mode", ["Norm", "PA_NZ"])
def test_rows_of_pages_are_gathered_in_order(mode, cumulative):
    pages = [drawn(5, 4, 2, n, seed=n) for n in (16, 32)]
    table = torch.tensor([[2, 0, 4], [1, 7, 3]], dtype=torch.int32)  # page 7 does not exist
    lengths, offsets = [6, 7], torch.tensor([4, 0])
    rows = []
    for b in range(2):
        for j in range(lengths[b]):
            place = int(offsets[b]) // 4 + j // 4
            page = int(table[b, place]) if place < 3 else 9
            rows.append([x[page, j % 4] if page < 5 else torch.zeros_like(x[0, 0]) for x in pages])
    out = [torch.full((14, 2, n), 77, dtype=HALF) for n in (16, 32)]
    seq = torch.tensor([0, 6, 13] if cumulative else lengths)
    caches = [blocked(x) for x in pages] if mode == "PA_NZ" else pages
    call("aclnnGatherPaKvCache", *caches, table, seq, *out, offsets, mode, cumulative)
    for i in range(2):
        assert torch.equal(out[i][:13], torch.stack([row[i] for row in rows]))
        assert (out[i][13] == 77).all()


# ---- updates ----


def test_rows_from_a_place_on_in_each_batch():
    data, updates = drawn(3, 2, 9, 4), drawn(3, 2, 2, 4, seed=2)
    for index, places in (([3, 0, 7], [(0, 3), (1, 0), (2, 7)]),
                          ([[2, 1], [0, 5], [1, 7]], [(2, 1), (0, 5), (1, 7)])):  # fmt: skip
        expected = data.clone()
        for i, (b, place) in enumerate(places):
            expected[b, :, place : place + 2] = updates[i]
        got = call("aclnnInplaceScatterUpdate", data.clone(), torch.tensor(index), updates, -2)[0]
        assert torch.equal(got, expected)
        wide = torch.zeros(3, 2, 9, 4, dtype=torch.int8)
        scale, zero = drawn(4, dtype=torch.float32).abs() * 0.02 + 0.01, torch.tensor([3.0])
        for version, end in (("", []), ("V2", ["rint"])):
            quantised = call(
                f"aclnnInplaceQuantScatter{version}",
                wide.clone(),
                torch.tensor(index),
                updates,
                scale,
                zero,
                -2,
                -1,
                1,
                *end,
            )[0]
            b, place = places[0]
            wanted = (updates[0].float() / scale + 3).round().clamp(-128, 127).char()
            assert torch.equal(quantised[b, :, place : place + 2], wanted)


def test_each_tensor_of_a_list_takes_its_part_of_the_updates():
    vars_, updates = [drawn(2, 9, 4, seed=i) for i in range(3)], drawn(3, 2, 3, 4, seed=9)
    expected = [x.clone() for x in vars_]
    expected[0][:, 4:6] = updates[0][:, :2]
    expected[2][:, 0:3] = updates[2]
    got = [x.clone() for x in vars_]
    call("aclnnScatterList", got, torch.tensor([[4, 2], [0, 1], [0, 3]]), updates,
         torch.tensor([1, 0, 1], dtype=torch.uint8), "update", -2)  # fmt: skip
    assert all(map(torch.equal, got, expected))


# ---- norms and rotary embedding ----


def rms(x: Tensor, gamma: Tensor) -> Tensor:
    return x / (x.square().mean(-1, True) + 1e-5).sqrt() * gamma


def half_turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


def neighbours_turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Neighbours become halves first."""
    return half_turned(torch.cat([x[..., ::2], x[..., 1::2]], -1), cos, sin)


MODES = ["Norm", "PA", "PA_BNSD", "PA_NZ", "PA_BLK_BNSD", "PA_BLK_NZ"]


@pytest.mark.parametrize("quantised", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", [1, 2])
def test_keys_are_normalised_rotated_and_cached(version, mode, quantised):
    b, n, s, size, wide, rope = 2, 1, 5, 4, 32, 32
    kv = drawn(b, n, s, wide + rope)
    gamma = drawn(wide + rope if version == 2 else wide, seed=2) + 1
    cos, sin = drawn(b, 1, s, rope, seed=3), drawn(b, 1, s, rope, seed=4)
    v = drawn(b, n, s, wide, seed=5) if version == 2 else None
    x = kv.double()
    if version == 2:
        y = rms(x, gamma.double())
        turned = neighbours_turned(y[..., :rope], cos.double(), sin.double())
        key, other = torch.cat([turned, y[..., rope:]], -1), v.double()
    else:
        other = rms(x[..., :wide], gamma.double())
        key = neighbours_turned(x[..., wide:], cos.double(), sin.double())
    scales = [drawn(t.shape[-1], seed=6, dtype=torch.float32).abs() * 9 + 20 for t in (key, other)]
    rows = [t * c if quantised else t for t, c in zip((key, other), scales, strict=True)]
    dtype = torch.int8 if quantised else HALF
    blocks = 5
    index = {"Norm": torch.tensor([[3, 0, 6, -1, 2], [1, 2, 3, 4, 5]])}.get(mode)
    if index is None:
        by_page = mode.startswith("PA_BLK")
        index = torch.tensor([8, 0, 16, -1]) if by_page else torch.randperm(blocks * size)[: b * s]
    caches, expected = [], []
    for t in rows:
        d = t.shape[-1]
        plain = torch.full((b, n, 8, d) if mode == "Norm" else (blocks, size, n, d), 9.0).double()
        for batch in range(b):
            for row in range(s):
                if mode == "Norm":
                    if index[batch, row] >= 0:
                        plain[batch, :, index[batch, row]] = t[batch, :, row]
                    continue
                if mode.startswith("PA_BLK"):
                    first = int(index[batch * 2 + row // size])
                    slot = -1 if first < 0 else first // size * size + row % size
                else:
                    slot = int(index[batch * s + row])
                if slot >= 0:
                    plain[slot // size, slot % size] = t[batch, :, row]
        c = 32 if quantised else 16
        if mode.endswith("NZ"):
            plain = plain.unflatten(3, (-1, c)).permute(0, 2, 3, 1, 4).reshape(plain.shape)
        expected.append(plain.round().clamp(-128, 127) if quantised else plain)
        caches.append(torch.full(plain.shape, 9).to(dtype))
    outs = [torch.full(t.shape, 77, dtype=HALF) for t in (key, other)]
    given = [scales[0], scales[1]] if quantised else [None, None]
    call(f"aclnnKvRmsNormRopeCache{'' if version == 1 else 'V2'}", kv, gamma, cos, sin, index,
         *caches, *given, None, None, *([v] if version == 2 else []), 1e-5, mode, True,
         *outs)  # fmt: skip
    for got, wanted in zip(caches + outs, [*expected, key, other], strict=True):
        if got.dtype == torch.int8:
            assert (got.double() - wanted).abs().max() <= 1  # beside a tie
            assert (got.double() != wanted).double().mean() < 0.02
        else:
            assert miss(got, wanted, 3e-6) == ""


@pytest.mark.parametrize("quantised", [False, True])
def test_queries_and_keys_are_normalised_and_rotated_together(quantised):
    t, heads, d, size = 6, (2, 1, 1), 32, 2
    qkv = drawn(t, sum(heads) * d)
    gammas = [drawn(d, seed=i) + 1 for i in (2, 3)]
    cos, sin = drawn(t, d, seed=4), drawn(t, d, seed=5)
    x = qkv.double().view(t, sum(heads), d)
    turns = cos.double()[:, None], sin.double()[:, None]
    q = half_turned(rms(x[:, :2], gammas[0].double()), *turns)
    k, v = half_turned(rms(x[:, 2:3], gammas[1].double()), *turns), x[:, 3:]
    index = torch.tensor([4, 1, -1, 0, 3, 5])
    scales = [drawn(1, d, seed=i, dtype=torch.float32).abs() * 0.02 + 0.02 for i in (6, 7)]
    dtype, c = (torch.int8, 32) if quantised else (HALF, 16)
    caches = [torch.full((3, d // c, size, c), 9).to(dtype) for _ in range(2)]
    outs = [torch.full((t, n * d), 77, dtype=HALF) for n in (2, 2, 1, 1)]
    call("aclnnQkvRmsNormRopeCache", qkv, *gammas, cos, sin, index, outs[0], *caches,
         *(scales if quantised else [None, None]), None, None, [2, 3, 4, d], list(heads), 1e-5,
         "PA_NZ", *outs[1:])  # fmt: skip
    for got, wanted in zip(outs, (q, q, k, v), strict=True):
        assert miss(got, wanted.flatten(1), 3e-6) == ""
    for cache, rows, scale in zip(caches, (k, v), scales, strict=True):
        plain = torch.full((3, size, d), 9.0).double()
        for i, slot in enumerate(index.tolist()):
            if slot >= 0:
                row = rows[i, 0] / scale[0] if quantised else rows[i, 0]
                plain[slot // size, slot % size] = row
        wanted = plain.unflatten(2, (-1, c)).transpose(1, 2)
        if quantised:
            assert (cache.double() - wanted.round().clamp(-128, 127)).abs().max() <= 1
        else:
            assert miss(cache, wanted, 3e-6) == ""


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("halved", [False, True])
@pytest.mark.parametrize("kinds", ["one", "sections", "interleaved"])
def test_rope_from_a_table_of_positions(kinds, halved, dtype):
    t, size, half, places = 6, 24, 8, 10
    query, key = drawn(t, 2 * size, dtype=dtype), drawn(t, size, seed=2, dtype=dtype)
    table = drawn(places, 2 * half, seed=3, dtype=dtype)
    sections = [4, 2, 2]
    positions = torch.randint(0, places, (t,) if kinds == "one" else (3, t))
    kind_of = [0] * half
    if kinds == "sections":
        kind_of = [k for k, count in enumerate(sections) for _ in range(count)]
    elif kinds == "interleaved":
        for k in (1, 2):
            for i in range(sections[k]):
                kind_of[3 * i + k] = k
    rows = table.double()[positions].reshape(-1, t, 2 * half)
    cos = torch.stack([rows[k, :, i] for i, k in enumerate(kind_of)], -1)
    sin = torch.stack([rows[k, :, half + i] for i, k in enumerate(kind_of)], -1)

    def turned(x: Tensor) -> Tensor:
        heads = x.double().view(t, -1, size)
        part, rest = heads[..., : 2 * half], heads[..., 2 * half :]
        a, b = part.chunk(2, -1) if halved else (part[..., ::2], part[..., 1::2])
        c, s = cos[:, None], sin[:, None]
        made = [a * c - b * s, b * c + a * s]
        out = torch.cat(made, -1) if halved else torch.stack(made, -1).flatten(-2)
        return torch.cat([out, rest], -1).flatten(1)

    outs = [torch.full_like(x, 77) for x in (query, key)]
    mode = [] if kinds == "sections" else [int(kinds == "interleaved")]
    call(f"aclnnRopeWithSinCosCache{'V2' if mode else ''}", positions, query, key, table,
         sections, size, halved, *mode, *outs)  # fmt: skip
    for got, x in zip(outs, (query, key), strict=True):
        assert miss(got, turned(x), 3e-6) == ""


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_rotary_embedding_by_mode_or_by_a_matrix(mode):
    x, cos, sin = drawn(2, 3, 4, 16), drawn(2, 3, 1, 16, seed=2), drawn(2, 3, 1, 16, seed=3)
    wide = x.double()
    eye = torch.eye(16, dtype=torch.float64)
    if mode == 3:
        wide = torch.cat([wide[..., ::2], wide[..., 1::2]], -1)
    turn = torch.zeros(16, 16, dtype=torch.float64)  # as rows of x times this
    for i in range(0, 16, 2 if mode == 1 else 1):
        span = {0: 8, 1: 1, 2: 4, 3: 8}[mode]
        if mode == 1 or i % (2 * span) < span:
            turn[i + span] += -eye[i]
            turn[i] += eye[i + span]
    expected = wide * cos.double() + wide @ turn * sin.double()
    got = call("aclnnRotaryPositionEmbeddingV2", x, cos, sin, mode, None, torch.empty_like(x))[0]
    assert miss(got, expected, 3e-6) == ""
    if mode < 3:
        got = call("aclnnRotaryPositionEmbeddingV2", x, cos, sin, 9, turn.half(),
                   torch.empty_like(x))[0]  # fmt: skip
        assert miss(got, expected, 3e-6) == ""


# ---- parts of attention over some of the keys ----


def parts(rows: int, keys: int, heads: int = 2) -> dict[str, Any]:
    q, k, v = (drawn(heads, n, 8, seed=n, dtype=torch.float32).double() for n in (rows, keys, keys))
    found = {"whole": attention(q, k, v, scale=0.4)}
    for name, at in (("first", slice(0, keys // 3)), ("second", slice(keys // 3, keys))):
        found[name] = attention(q, k[:, at], v[:, at], scale=0.4)
    return found


@pytest.mark.parametrize("dtype", FLOATS)
def test_attention_over_parts_of_the_keys_is_joined(dtype):
    found = parts(6, 9)
    out = {n: y.flatten(0, 1) for n, (y, _, _) in found.items()}
    log = {n: (m + z.log()).flatten() for n, (_, m, z) in found.items()}
    empty = torch.full((12,), -torch.inf), torch.full((12,), torch.inf)
    lse = [log["first"].float(), empty[0], log["second"].float(), empty[1]]
    local = [out["first"], torch.full_like(out["first"], torch.nan), out["second"], out["first"]]
    got, total = call("aclnnAttentionUpdate", lse, [x.to(dtype) for x in local], 1,
                      torch.empty(12, 8, dtype=dtype), torch.empty(12))  # fmt: skip
    slack = {torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 1e-2}[dtype]
    assert miss(got, out["whole"], slack) == ""
    assert miss(total, log["whole"], 1e-5) == ""
    alone = call("aclnnAttentionUpdate", [*empty], local[:2], 0,
                 torch.full((12, 8), 77.0, dtype=torch.float64), torch.empty(0))[0]  # fmt: skip
    assert (alone == 0).all()


def eight(x: Tensor) -> Tensor:
    return x.float()[..., None].expand(*x.shape, 8).contiguous()


@pytest.mark.parametrize("layout", ["SBH", "TND", "TND rows"])
def test_rings_join_their_statistics(layout):
    names = ("first", "second", "whole")
    if layout == "SBH":
        found = [parts(6, 9), parts(6, 12)]
        tensors = {
            n: (torch.stack([f[n][0].transpose(0, 1).flatten(1) for f in found], 1).float(),
                *(eight(torch.stack([f[n][i] for f in found])) for i in (1, 2)))
            for n in names
        }  # fmt: skip
        lengths, words = None, ["SBH", ""]
    else:
        found = [parts(4, 9), parts(7, 12)]
        rows = layout == "TND rows"

        def packed(values: list[Tensor]) -> Tensor:
            flat = torch.cat([(v.t() if rows else v).flatten() for v in values])
            return eight(flat.view(11, 2))

        tensors = {
            n: (torch.cat([f[n][0].transpose(0, 1) for f in found]).float(),
                *(packed([f[n][i] for f in found]) for i in (1, 2)))
            for n in names
        }  # fmt: skip
        lengths, words = torch.tensor([0, 4, 11]), ["TND", "TND" if rows else ""]
    outs = [torch.full_like(x, 77) for x in tensors["whole"]]
    call("aclnnRingAttentionUpdateV2", *tensors["first"], *tensors["second"], lengths, *words,
         *outs)  # fmt: skip
    for got, wanted in zip(outs, tensors["whole"], strict=True):
        assert miss(got, wanted, 1e-5) == ""
    if words[1] == "":
        again = [torch.full_like(x, 77) for x in outs]
        call("aclnnRingAttentionUpdate", *tensors["first"], *tensors["second"], lengths, words[0],
             *again)  # fmt: skip
        assert all(map(torch.equal, again, outs))
