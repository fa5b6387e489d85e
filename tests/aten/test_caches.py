# SPDX-License-Identifier: Apache-2.0
"""Caches of keys and values, and joined parts of attention, against loops."""

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
