# SPDX-License-Identifier: Apache-2.0
"""What precedes attention with latent keys, against its formula in float64."""

from __future__ import annotations

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import arguments, samples, torch
from tests.aten.quantised_support import HALVES, Refused, call, miss, neighbours, random
from tests.aten.test_grouped_matmul import tiles

T, HE, HQ, N, D, HC, DR = 5, 64, 24, 3, 8, 32, 16
SLOTS = torch.tensor([0, 6, -1, 3, 7]).int()


def norm(x, gamma):
    return x * (x.square().mean(-1, True) + 1e-5).rsqrt() * gamma.double()


def turned(x, cos, sin):
    """Neighbours become halves, then the halves rotate."""
    x = torch.cat([x[..., ::2], x[..., 1::2]], -1)
    return x * cos + torch.cat([-x[..., DR // 2 :], x[..., : DR // 2]], -1) * sin


class Prolog:
    def __init__(self, dtype, whole=False):
        integers = dict(low=-99, high=99, dtype=torch.int8)
        number = integers if whole else dict(dtype=dtype)
        self.x, self.w_dq = random(T, HE, **number), random(HE, HQ, seed=1, **number)
        self.w_uq = random(HQ, N * (D + DR), seed=2, **number)
        self.w_dkv = random(HE, HC + DR, seed=3, **number)
        self.w_uk = random(N, D, HC, seed=4, dtype=dtype)
        self.gammas = random(HQ, low=0.5, dtype=dtype), random(HC, low=0.5, dtype=dtype)
        self.sin, self.cos = random(T, DR, seed=5, dtype=dtype), random(T, DR, seed=6, dtype=dtype)
        self.scales = [None] * 4
        if whole:
            self.scales = [random(size, low=0.001, high=0.01)
                           for size in (T, HQ, N * (D + DR), HC + DR)]  # fmt: skip

    def in_tiles(self):
        """The weights that arrive in FRACTAL_NZ order."""
        for name in ("w_dq", "w_uq", "w_dkv"):
            w = getattr(self, name)
            setattr(self, name, tiles(w, 32 // w.element_size()))

    def given(self):
        return (self.x, self.w_dq, self.w_uq, self.w_uk, self.w_dkv, *self.gammas, self.sin,
                self.cos)  # fmt: skip

    def expected(self, factors=(1, 1)):
        scale = [1 if s is None else s.double() for s in self.scales]
        x = self.x.double() * (scale[0] if self.scales[0] is None else scale[0][:, None])
        whole = self.scales[2] is not None
        named = norm(x @ self.w_dq.double() * scale[1], self.gammas[0]) * factors[0]
        q = named
        if whole:
            row = named.abs().amax(-1, True) / 127
            q = (named / row).round() * row
        q = (q @ self.w_uq.double() * scale[2]).view(T, N, D + DR)
        latent = torch.einsum("tnd,ndh->tnh", q[..., :D], self.w_uk.double())
        cos, sin = self.cos.double(), self.sin.double()
        both = x @ self.w_dkv.double() * scale[3]
        return (latent, turned(q[..., D:], cos[:, None], sin[:, None]),
                norm(both[:, :HC], self.gammas[1]) * factors[1], turned(both[:, HC:], cos, sin),
                named)  # fmt: skip


def rows_of(cache, mode):
    if mode == "PA_BSND":
        return cache.flatten(0, -2)
    blocks, size, _, width = cache.shape
    c = 32 // cache.element_size()
    return cache.view(blocks, width // c, size, c).transpose(1, 2).reshape(blocks * size, width)


@pytest.mark.parametrize("mode", ["PA_BSND", "PA_NZ"])
@pytest.mark.parametrize("dtype", HALVES)
def test_query_and_caches(dtype, mode):
    p = Prolog(dtype)
    kv, kr = random(2, 4, 1, HC, dtype=dtype), random(2, 4, 1, DR, dtype=dtype)
    old = rows_of(kv, mode).clone()
    out = torch.empty(T, N, HC, dtype=dtype), torch.empty(T, N, DR, dtype=dtype)
    found = call("aclnnMlaPrologV3WeightNz", *p.given(), kv, kr, SLOTS, *[None] * 9, 1e-5, 1e-5,
                 mode, 0, 0, 0, 0, 0, 128, 1.5, 0.5, *out, None,
                 torch.empty(T, HQ, dtype=dtype), None)  # fmt: skip
    latent, rope, ckv, key, named = p.expected((1.5, 0.5))
    for got, one in zip(found[2:], (latent, rope, named), strict=True):
        assert miss(got, one, slack=1e-5) == ""
    for token, slot in enumerate(SLOTS.tolist()):
        if slot >= 0:
            assert miss(rows_of(kv, mode)[slot], ckv[token], slack=1e-5) == ""
            assert miss(rows_of(kr, mode)[slot], key[token], slack=1e-5) == ""
    left = [i for i in range(8) if i not in SLOTS.tolist()]
    assert torch.equal(rows_of(kv, mode)[left], old[left])


def test_integers_and_a_quantised_query():
    dtype = torch.bfloat16
    p, first = Prolog(dtype, whole=True), random(1, low=9, high=20)
    kv, kr = torch.zeros(2, 4, 1, HC, dtype=torch.int8), torch.zeros(2, 4, 1, DR, dtype=dtype)
    query = torch.empty(T, N, HC, dtype=torch.int8), torch.empty(T, N, DR, dtype=dtype)
    found = call("aclnnMlaPrologV2WeightNz", *p.given(), SLOTS, kv, kr, *p.scales, first, None,
                 None, 1e-5, 1e-5, "PA_BSND", *query, torch.empty(T, N, 1))  # fmt: skip
    latent, rope, ckv, key, _ = p.expected()
    scale = latent.abs().amax(-1, True) / 127
    assert miss(found[4], scale, slack=1e-4) == ""
    assert neighbours(found[2], (latent / scale).round())
    assert miss(found[3], rope * first / scale, slack=1e-3) == ""
    for token, slot in enumerate(SLOTS.tolist()):
        if slot >= 0:
            assert neighbours(kv.view(8, HC)[slot], (ckv[token] * first).round().clamp(-128, 127))
            assert miss(kr.view(8, DR)[slot], key[token], slack=1e-5) == ""


def test_caches_are_indexed_like_tokens():
    dtype = torch.bfloat16
    for mode, lead in (("TND", (T,)), ("BSND", (1, T))):
        p = Prolog(dtype)
        expected = p.expected()
        p.x, p.sin, p.cos = (t.reshape(*lead, -1) for t in (p.x, p.sin, p.cos))
        out = [torch.empty(*lead, N, w, dtype=dtype) for w in (HC, DR)]
        caches = [torch.empty(*lead, 1, w, dtype=dtype) for w in (HC, DR)]
        found = call("aclnnMlaPrologV3WeightNz", *p.given(), *caches, *[None] * 10, 1e-5, 1e-5,
                     mode, 0, 0, 0, 0, 0, 128, 1.0, 1.0, *out, None, None, None)  # fmt: skip
        places = ((found[2], 0), (found[3], 1), (found[0], 2), (found[1], 3))
        for got, i in places:
            assert miss(got.reshape(expected[i].shape), expected[i], slack=1e-5) == ""


@pytest.mark.parametrize("whole", [False, True])
def test_weights_in_tiles_are_the_plain_ones(whole):
    found = []
    for in_tiles in (False, True):
        p = Prolog(torch.bfloat16, whole)
        if in_tiles:
            p.in_tiles()
        kv, kr = (torch.zeros(2, 4, 1, w, dtype=torch.bfloat16) for w in (HC, DR))
        out = [torch.empty(T, N, w, dtype=torch.bfloat16) for w in (HC, DR)]
        found.append(call("aclnnMlaPrologV2WeightNz", *p.given(), SLOTS, kv, kr, *p.scales,
                          *[None] * 3, 1e-5, 1e-5, "PA_BSND", *out, None))  # fmt: skip
    for plain, tiled in zip(*found, strict=True):
        assert torch.equal(plain, tiled)


@pytest.mark.parametrize("integers", [False, True])
def test_each_channel_of_the_caches_has_its_scale(integers):
    """The query stays float; weightUqQr alone may be INT8, with rows of cq that are quantised."""
    dtype = torch.bfloat16
    p = Prolog(dtype)
    if integers:
        p.w_uq = random(HQ, N * (D + DR), seed=2, low=-99, high=99, dtype=torch.int8)
        p.scales[2] = random(N * (D + DR), low=0.001, high=0.01)
    channels = random(HC, low=9, high=20), random(DR, seed=1, low=9, high=20)
    kv, kr = (torch.zeros(2, 4, 1, w, dtype=torch.int8) for w in (HC, DR))
    out = [torch.empty(T, N, w, dtype=dtype) for w in (HC, DR)]
    found = call("aclnnMlaPrologV3WeightNz", *p.given(), kv, kr, SLOTS, *p.scales, *channels,
                 *[None] * 3, 1e-5, 1e-5, "PA_BSND", int(integers), 2, 0, 0, 0, 128, 1.0, 1.0, *out,
                 None, None, None)  # fmt: skip
    expected = p.expected()
    # A number of cq beside a tie is a step off: of 127, and of the products it goes into.
    slack = 2e-3 if integers else 1e-5
    for got, wanted in zip(found[2:4], expected[:2], strict=True):
        assert miss(got, wanted, slack=slack) == ""
    for cache, wanted, scale in zip((kv, kr), expected[2:4], channels, strict=True):
        for token, slot in enumerate(SLOTS.tolist()):
            if slot >= 0:
                numbers = (wanted[token] * scale).round().clamp(-128, 127)
                assert neighbours(cache.flatten(0, 2)[slot], numbers)


REFUSED = [
    (11, torch.tensor([0, 6, -1, 3, 8]).int(), "slots must be below 8"),
    (23, "PA_BLK_NZ", "cacheMode must be PA_BSND, PA_NZ, BSND or TND, but got PA_BLK_NZ"),
    (25, 3, "kvCacheQuantMode must be from 0 to 2"),
    (27, 1, "ckvkrRepoMode and quantScaleRepoMode must be 0, but are 1 and 0"),
    (1, torch.zeros(32, 24, dtype=torch.int8), "must be INT8 together"),
]


@pytest.mark.parametrize(("place", "value", "sentence"), REFUSED)
def test_refusals(place, value, sentence):
    name = "aclnnMlaPrologV3WeightNz"
    given = arguments(next(s for s in samples() if s.row.name == name), torch.half, torch.half)
    call(name, *given)
    given[place] = value
    with pytest.raises(Refused) as refusal:
        call(name, *given)
    assert sentence in str(refusal.value)
