# SPDX-License-Identifier: Apache-2.0
"""What precedes attention with latent keys, against its formula in float64."""

from __future__ import annotations

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import arguments, samples, torch
from tests.aten.quantised_support import HALVES, Refused, call, miss, neighbours, random

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

    def given(self):
        return (self.x, self.w_dq, self.w_uq, self.w_uk, self.w_dkv, *self.gammas, self.sin,
                self.cos)  # fmt: skip

    def expected(self, factors=(1, 1)):
        scale = [1 if s is None else s.double() for s in self.scales]
        x = self.x.double() * (scale[0] if self.scales[0] is None else scale[0][:, None])
        named = norm(x @ self.w_dq.double() * scale[1], self.gammas[0]) * factors[0]
        q = named
        if self.scales[0] is not None:
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
