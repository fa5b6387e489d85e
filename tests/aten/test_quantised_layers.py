# SPDX-License-Identifier: Apache-2.0
"""Gates and norms whose results are quantised."""

from __future__ import annotations

import pytest
from tests.aten.quantised_support import (
    FLOATS,
    Int4,
    call,
    miss,
    neighbours,
    random,
    saturated,
    torch,
    unpacked,
)
from tests.aten.test_quantisation import CODES, bytes_, empty, symmetric

Tensor = torch.Tensor
F = torch.nn.functional


def gated(v: Tensor, left: bool, mode: int) -> Tensor:
    """With limit 1.5, alpha 1.7, bias 0.5."""
    a, b = (v[..., ::2], v[..., 1::2]) if mode == 1 else v.chunk(2, -1)
    gate, value = (a, b) if left else (b, a)
    if mode == 0:
        return F.silu(gate) * value
    if mode == 3:
        return F.silu(gate).clamp(max=1.5) * value.clamp(-1.5, 1.5)
    gate = gate.clamp(max=1.5)
    return gate * torch.sigmoid(1.7 * gate) * (value.clamp(-1.5, 1.5) + 0.5)


@pytest.mark.parametrize(
    ("left", "mode"), [(True, 0), (False, 0), (True, 1), (True, 2), (False, 2), (True, 3)]
)
@pytest.mark.parametrize("grouped", [False, True])
def test_sums_become_floats_are_gated_and_quantised(left, mode, grouped):
    x = random(6, 16, low=-9999, high=9999, dtype=torch.int32)
    lead = (3,) if grouped else ()
    groups = [0, 0, 2, 2, 2] if grouped else [0] * 6  # of rows; the last row is in none

    def rows(p: Tensor) -> Tensor:
        return p[groups] if grouped else p

    n = len(groups)
    counts = torch.tensor([2, 0, 3]) if grouped else None
    weight, per_token = random(*lead, 16, low=1e-4, high=1e-3), random(6, low=0.5, high=1)
    factor, shift = random(*lead, 8, low=0.02, high=0.1), random(*lead, 8)
    whole = random(*lead, 16, low=-99, high=99, dtype=torch.int32)
    for bias in (None, random(*lead, 16), whole):
        v = (x[:n] + (rows(whole) if bias is whole else 0)).float() * rows(weight)
        v = v * per_token[:n, None]
        if bias is not None and bias is not whole:
            v = v + rows(bias)
        v = gated(v, left, mode)
        given = (x, weight, per_token, bias, factor, shift, counts, left)
        tail = (2, "rint", -1, mode, 1.5, 1.7, 0.5, bytes_(6, 8), empty(6))
        y, _ = call("aclnnDequantSwigluQuantV2", *given, "static", *tail)
        assert neighbours(y[:n], saturated(v / rows(factor) + rows(shift)))
        assert not y[n:].any()
        y, s = call("aclnnDequantSwigluQuantV2", *given, "dynamic", *tail)
        numbers, scale = symmetric(v * rows(factor))
        assert neighbours(y[:n], numbers)
        assert miss(s[:n], scale.flatten(), slack=1e-6) == ""
        assert not s[n:].any()
        if mode == 0:
            old = call("aclnnDequantSwigluQuant", *given, "dynamic", bytes_(6, 8), empty(6))
            assert torch.equal(old[0], y)
            assert torch.equal(old[1], s)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("left", [True, False])
def test_the_scale_of_a_quantised_swiglu_multiplies(dtype, left):
    x, smooth, offset = random(6, 16, dtype=dtype), random(3, 8, low=9, high=30), random(3, 8)
    gate, value = x.float().chunk(2, -1) if left else reversed(x.float().chunk(2, -1))
    groups = [0, 0, 2, 2, 2]
    v = (F.silu(gate) * value)[:5] * smooth[groups]
    for ends, kind in ((torch.tensor([2, 2, 5]).int(), 0), (torch.tensor([2, 0, 3]).int(), 1)):
        for bits in (8, 4):
            out = bytes_(6, 8) if bits == 8 else Int4.empty(6, 8)
            given = (x, smooth, offset, ends, left)
            y, s = call("aclnnSwiGluQuantV2", *given, "dynamic", kind, CODES[bits], out, empty(6))
            numbers = y if bits == 8 else y.numbers()
            top = 2 ** (bits - 1) - 1
            assert miss(s[:5], top / v.abs().amax(1), slack=1e-6) == ""
            assert neighbours(numbers[:5], saturated(v * s[:5, None], bits))
            assert not numbers[5:].any()
            y, _ = call("aclnnSwiGluQuantV2", *given, "static", kind, CODES[bits], out, empty(6))
            numbers = y if bits == 8 else y.numbers()
            assert neighbours(numbers[:5], saturated(v + offset[groups], bits))
    y, s = call("aclnnSwiGluQuant", x, None, None, None, left, "dynamic", bytes_(6, 8), empty(6))
    numbers, scale = symmetric(F.silu(gate) * value)
    assert neighbours(y, numbers)
    assert miss(s, 1 / scale.flatten(), slack=1e-6) == ""


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_a_gelu_is_quantised(dtype, approximate):
    x, scale, offset = random(6, 16, dtype=dtype), random(16, low=20, high=50), random(16)
    v = F.gelu(x.float(), approximate=approximate) * scale
    y, s = call("aclnnGeluQuant", x, scale, None, approximate, "dynamic", "rint", 2, bytes_(6, 16),
                empty(6))  # fmt: skip
    numbers, expected = symmetric(v)
    assert neighbours(y, numbers)
    assert miss(s, expected.flatten(), slack=1e-6) == ""
    (y,) = call("aclnnGeluQuant", x, scale, offset, approximate, "static", "rint", 2,
                bytes_(6, 16), None)  # fmt: skip
    assert neighbours(y, saturated(v + offset))


@pytest.mark.parametrize("dtype", FLOATS)
def test_two_small_matrices_go_around_what_is_quantised_to_4_bits(dtype):
    x, p1, p2 = (random(*s, dtype=dtype) for s in ((4, 8, 16), (8, 8), (16, 16)))
    z = (p1.float() @ (x.float() @ p2.float()).to(dtype).float()).to(dtype).float()
    scale = z.abs().amax((1, 2)) / (7 * 0.75)
    numbers = saturated(z / scale.view(-1, 1, 1), 4)
    packed = torch.zeros(4, 8, 2, dtype=torch.int32)
    y, s = call("aclnnFlatQuant", x, p1, p2, 0.75, packed, empty(4))
    assert neighbours(unpacked(y), numbers)
    assert miss(s, scale, slack=1e-2 if dtype != torch.float32 else 1e-6) == ""
    again, _ = call("aclnnFlatQuantV2", x, p1, p2, 0.75, 0.0, Int4.empty(4, 8, 16), empty(4))
    assert torch.equal(again.numbers(), unpacked(y))


# ---- norms ----


def normed(x1: Tensor, x2: Tensor | None, gamma: Tensor, beta=None) -> tuple[Tensor, ...]:
    x = x1.float() if x2 is None else x1.float() + x2.float()
    rstd = torch.rsqrt(x.square().mean(-1, True) + 1e-6)
    y = x * rstd * gamma.float()
    return (y if beta is None else y + beta.float()), rstd, x


@pytest.mark.parametrize("dtype", FLOATS)
def test_norms_of_sums_are_quantised(dtype):
    x1, x2 = random(3, 5, 16, dtype=dtype), random(3, 5, 16, dtype=dtype, seed=1)
    gamma, beta = random(16, dtype=dtype), random(16, dtype=dtype, seed=1)
    y, rstd, x = normed(x1, x2, gamma, beta)
    plain, _, _ = normed(x1, x2, gamma)
    scale, zero = random(16, low=0.02, high=0.05), random(16, low=-9, high=9, dtype=torch.int32)
    out = empty(3, 5, 16, dtype=dtype)

    def byte() -> Tensor:
        return bytes_(3, 5, 16)

    for divide, factor in ((True, scale), (False, 1 / scale)):
        v = plain / factor if divide else plain * factor
        one, two, total = call("aclnnAddRmsNormQuant", x1, x2, gamma, factor, factor[:1], zero,
                               None, -1, 1e-6, divide, byte(), byte(), out.clone())  # fmt: skip
        assert neighbours(one, saturated(v + zero))
        of_one = plain / factor[:1] if divide else plain * factor[:1]
        assert neighbours(two, saturated(of_one))
        assert miss(total, x) == ""
        last = (byte(), None, out.clone(), out.clone())
        one, total, norm = call("aclnnAddRmsNormQuantV2", x1, x2, gamma, factor, None, zero, None,
                                beta, -1, 1e-6, divide, *last)  # fmt: skip
        assert neighbours(one, saturated((y / factor if divide else y * factor) + zero))
        assert miss(norm, y, slack=1e-6) == ""
    smooth = random(16, low=0.5, high=1, dtype=dtype)
    got = call("aclnnAddRmsNormDynamicQuant", x1, x2, gamma, smooth, smooth, 1e-6, byte(), byte(),
               out.clone(), empty(3, 5), empty(3, 5))  # fmt: skip
    numbers, scales = symmetric(plain * smooth.float())
    assert neighbours(got[0], numbers)
    assert torch.equal(got[0], got[1])
    assert miss(got[3], scales.squeeze(-1), slack=1e-6) == ""
    got = call("aclnnAddRmsNormDynamicQuantV2", x1, x2, gamma, None, smooth, beta, 1e-6,
               [False, True], bytes_(1), byte(), out.clone(), empty(1), empty(3, 5))  # fmt: skip
    assert neighbours(got[1], symmetric(y * smooth.float())[0])
    assert (got[0].item(), got[3].item()) == (77, 77)  # not asked for
    one, two, r, total = call("aclnnAddRmsNormCast", x1, x2, gamma, 1e-6, empty(3, 5, 16),
                              out.clone(), empty(3, 5, 1), out.clone())  # fmt: skip
    assert [miss(one, plain), miss(two, plain), miss(r, rstd), miss(total, x)] == [""] * 4
    one, two, r = call("aclnnInplaceAddRmsNorm", x1.clone(), x2.clone(), gamma, 1e-6,
                       empty(3, 5, 1))  # fmt: skip
    assert [miss(one, plain), miss(two, x), miss(r, rstd)] == [""] * 3


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_norm_is_quantised(dtype):
    x, gamma, beta = random(3, 16, dtype=dtype), random(16, dtype=dtype), random(16, dtype=dtype)
    y, rstd, _ = normed(x, None, gamma, beta)
    scale, offset = torch.tensor([0.03]), torch.tensor([3], dtype=torch.int8)
    (got,) = call("aclnnRmsNormQuant", x, gamma, beta, scale, offset, 1e-6, bytes_(3, 16))
    assert neighbours(got, saturated(y / scale + offset), part=0.03)
    got, r = call("aclnnRmsNormQuantV3", x, gamma, 1 / scale, None, beta, 1e-6, False, True,
                  bytes_(3, 16), empty(3, 1))  # fmt: skip
    assert neighbours(got, saturated(y * (1 / scale)), part=0.03)
    assert miss(r, rstd) == ""
