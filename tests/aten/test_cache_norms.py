# SPDX-License-Identifier: Apache-2.0
"""Norms and rotary embedding of queries and keys, on their way into caches, against loops."""

from __future__ import annotations

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import torch
from tests.aten.golden import FLOATS, call, miss
from tests.aten.test_caches import drawn

Tensor = torch.Tensor

HALF = torch.float16


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
