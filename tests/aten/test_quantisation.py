# SPDX-License-Identifier: Apache-2.0
"""Quantisation and its inverse, alone and after gates and norms. What is rounded to integers is
computed in float here too, so that ties are the same; integers may be one apart where functions of
float differ in their last bit.
"""

from __future__ import annotations

from itertools import product

import pytest
from tests.aten.quantised_support import (
    FLOATS,
    Int4,
    bits64,
    call,
    miss,
    random,
    saturated,
    torch,
    unpacked,
    words,
)

Tensor = torch.Tensor
F = torch.nn.functional
CODES = {8: 2, 4: 29}


def bytes_(*shape: int) -> Tensor:
    return torch.full(shape, 77, dtype=torch.int8)


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.full(shape, 77.0, dtype=dtype)


def symmetric(v: Tensor, bits: int = 8, dim=-1) -> tuple[Tensor, Tensor]:
    scale = v.abs().amax(dim, keepdim=True) / (2 ** (bits - 1) - 1)
    return saturated(v / scale, bits), scale


def asymmetric(v: Tensor, bits: int = 8, dim=-1) -> tuple[Tensor, Tensor, Tensor]:
    most, least = v.amax(dim, keepdim=True), v.amin(dim, keepdim=True)
    scale = (most - least) / (2**bits - 1)
    offset = 2 ** (bits - 1) - 1 - most / scale
    return saturated(v / scale + offset, bits), scale, offset


# ---- of the data ----


@pytest.mark.parametrize("dtype", FLOATS)
def test_rows_are_scaled_to_their_largest(dtype):
    x, smooth = random(3, 5, 16, dtype=dtype), random(16, dtype=dtype)
    x[1, 2] = 0
    v = x.float() * smooth.float()
    numbers, scale = symmetric(v)
    y, s = call("aclnnDynamicQuant", x, smooth, bytes_(3, 5, 16), empty(3, 5))
    assert torch.equal(y, numbers)
    assert torch.equal(s, scale.squeeze(-1))
    assert not y[1, 2].any()
    assert s[1, 2] == 0
    assert ((y * s.unsqueeze(-1) - v).abs() <= s.unsqueeze(-1) * 0.5001).all()
    four, scale = symmetric(v, 4)
    y, s = call("aclnnDynamicQuant", x, smooth, Int4.empty(3, 5, 16), empty(3, 5))
    assert torch.equal(y.numbers(), four)
    assert torch.equal(s, scale.squeeze(-1))
    packed = torch.zeros(3, 5, 2, dtype=torch.int32)
    y, _ = call("aclnnDynamicQuantV2", x, smooth, None, 3, packed, s, None)
    assert torch.equal(unpacked(y), four)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bits", [8, 4])
def test_rows_are_scaled_from_their_least_to_their_largest(dtype, bits):
    x = random(6, 16, dtype=dtype)
    numbers, scale, offset = asymmetric(x.float(), bits)
    out = bytes_(6, 16) if bits == 8 else Int4.empty(6, 16)
    y, s, o = call("aclnnDynamicQuantV2", x, None, None, CODES[bits], out, empty(6), empty(6))
    assert torch.equal(y if bits == 8 else y.numbers(), numbers)
    assert torch.equal(s, scale.squeeze(-1))
    assert torch.equal(o, offset.squeeze(-1))


def test_groups_of_rows_have_their_smooth_scales():
    x, smooth = random(2, 3, 16), random(3, 16)
    factors = torch.ones(6, 16)
    factors[:2], factors[2:5] = smooth[0], smooth[2]  # no row is in the second group
    ends = torch.tensor([2, 2, 5], dtype=torch.int32)
    y, s = call("aclnnDynamicQuantV2", x, smooth, ends, 2, bytes_(2, 3, 16), empty(2, 3), None)
    numbers, scale = symmetric(x.view(6, 16) * factors)
    assert torch.equal(y.view(6, 16), numbers)
    assert torch.equal(s.flatten(), scale.flatten())


@pytest.mark.parametrize(
    ("mode", "dims", "shape"), [("pertoken", -1, (3, 5)), ("perchannel", -2, (3, 16)),
                                ("pertensor", (0, 1, 2), (1,))],
)  # fmt: skip
def test_one_scale_may_hold_for_rows_columns_or_all(mode, dims, shape):
    x = random(3, 5, 16)
    numbers, scale = symmetric(x, dim=dims)
    tail = (bytes_(3, 5, 16), empty(*shape))
    for version, last in (("V3", ()), ("V4", (0.0,))):
        name = f"aclnnDynamicQuant{version}"
        y, s = call(name, x, None, None, 2, True, mode, *last, *tail, None)
        assert torch.equal(y, numbers)
        assert torch.equal(s.flatten(), scale.flatten())
        y, s, o = call(name, x, None, None, 2, False, mode, *last, *tail, empty(*shape))
        for got, expected in zip((y, s, o), asymmetric(x, dim=dims), strict=True):
            assert torch.equal(got.flatten(), expected.flatten())


# ---- static ----


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_are_multiplied_by_the_scale_and_rounded_as_asked(dtype):
    x, scale = random(6, 16, dtype=dtype), random(16, low=2, high=5, dtype=dtype)
    offset = random(16, dtype=dtype)
    modes = {"round": torch.round, "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc}
    for (mode, rounding), root in product(modes.items(), (False, True)):
        v = x.float() * scale.float() * (scale.float() if root else 1) + offset.float()
        eight, four = saturated(rounding(v)), saturated(rounding(v), 4)
        (y,) = call("aclnnAscendQuant", x, scale, offset, root, mode, 2, bytes_(6, 16))
        assert torch.equal(y, eight)
        (y,) = call("aclnnAscendQuant", x, scale, offset, root, mode, 29, Int4.empty(6, 16))
        assert torch.equal(y.numbers(), four)
        packed = torch.zeros(6, 2, dtype=torch.int32)
        (y,) = call("aclnnAscendQuantV3", x, scale, offset, root, mode, 3, -1, packed)
        assert torch.equal(unpacked(y), four)
    rows = random(6, low=20, high=90)
    (y,) = call("aclnnAscendQuantV3", x, rows, None, False, "round", 2, -2, bytes_(6, 16))
    assert torch.equal(y, saturated(x.float() * rows[:, None]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_integers_of_every_width_become_floats(dtype):
    numbers = random(6, 16, low=-8, high=7, dtype=torch.int8)
    scale, offset = random(16, low=0.1, high=1, dtype=dtype), random(16, dtype=dtype)
    expected = (numbers.double() + offset.double()) * scale.double()
    for x, root in product((numbers, words(numbers), Int4.of(numbers)), (False, True)):
        (y,) = call("aclnnAscendAntiQuant", x, scale, offset, 1, root, empty(6, 16, dtype=dtype))
        assert miss(y, expected * (scale.double() if root else 1)) == ""


def test_rows_of_groups_are_scaled_and_others_are_zero():
    x, scale, offset = random(6, 16), random(3, 16, low=20, high=60), torch.tensor([3.5])
    expected = torch.zeros(6, 16, dtype=torch.int8)
    for g, rows in ((0, slice(0, 2)), (2, slice(2, 5))):
        expected[rows] = saturated(x[rows] * scale[g] + offset)
    ends = torch.tensor([2, 2, 5])
    (y,) = call("aclnnGroupQuant", x, scale, ends, offset, 2, bytes_(6, 16))
    assert torch.equal(y, expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_become_floats(dtype):
    x = random(6, 16, low=-99999, high=99999, dtype=torch.int32)
    scale, per_token = random(16, low=1e-4, high=1e-3), random(6, low=0.1, high=1)
    whole, real = random(16, low=-999, high=999, dtype=torch.int32), random(16)
    factor = scale.double() * per_token[:, None].double()
    for bias, expected in (
        (None, x * factor), (whole, (x + whole) * factor), (real, x * factor + real)
    ):  # fmt: skip
        out = empty(6, 16, dtype=dtype)
        (y,) = call("aclnnDequantBias", x, scale, per_token, bias, 27, out)
        assert miss(y, expected) == ""


@pytest.mark.parametrize("enabled", [0.0, 1.0])
def test_fake_quantisation_marks_what_is_inside(enabled):
    x, scale, zero = random(6, 16), torch.tensor([0.03]), torch.tensor([5], dtype=torch.int32)
    y, mask = call("aclnnFakeQuantPerTensorAffineCachemask", x, scale, zero, enabled, -40, 40,
                   empty(6, 16), torch.zeros(6, 16, dtype=torch.bool))  # fmt: skip
    q = torch.round(x / scale) + zero
    inside = (q >= -40) & (q <= 40)
    assert not inside.all()
    if enabled:
        assert torch.equal(y, (q.clamp(-40, 40) - zero) * scale)
        assert torch.equal(mask, inside)
    else:
        assert torch.equal(y, x)
        assert mask.all()


# ---- parameters and weights ----


def test_a_scale_is_cut_or_rounded_to_19_bits():
    scale = torch.cat([random(40, low=1e-3, high=5), -random(4, low=1, high=2)])
    scale[0] = torch.tensor([0x3F801000]).int().view(torch.float32)  # a tie below an even number
    scale[1] = torch.tensor([0x3F803000]).int().view(torch.float32)  # above an odd one
    for mode in (0, 1):
        expected = []
        for bits in (scale.view(torch.int32).long() & 0xFFFFFFFF).tolist():
            low, high = bits & 0x1FFF, bits >> 13
            up = mode == 1 and (low > 0x1000 or (low == 0x1000 and high & 1))
            expected.append((high + up) << 13 | 1 << 46)
        (y,) = call("aclnnTransQuantParamV3", scale, None, mode, torch.zeros(44, dtype=torch.int64))
        assert y.tolist() == expected
    (y,) = call("aclnnTransQuantParamV2", scale, None, torch.zeros(44, dtype=torch.uint64))
    assert (y.view(torch.int64) & 0xFFFFFFFF).tolist() == [
        bits & 0xFFFFE000 for bits in bits64(scale).tolist()
    ]


def test_an_offset_has_9_bits():
    offset = torch.tensor([0.5, 1.5, -1.0, -300.0, 300.0])
    expected = [0, 2, -1 & 0x1FF, -256 & 0x1FF, 255]
    (y,) = call("aclnnTransQuantParamV2", torch.tensor([0.5]), offset,
                torch.zeros(5, dtype=torch.int64))  # fmt: skip
    assert [(p >> 37) & 0x1FF for p in y.tolist()] == expected
    assert [p & 0xFFFFFFFF for p in y.tolist()] == [0x3F000000] * 5
    assert [p >> 46 for p in y.tolist()] == [1] * 5


def test_weights_are_packed_along_their_rows():
    weight = random(16, 24, low=-8, high=7, dtype=torch.int32)
    (y,) = call("aclnnConvertWeightToINT4Pack", weight, torch.zeros(16, 3, dtype=torch.int32))
    assert torch.equal(unpacked(y), weight.to(torch.int8))
    assert y[0, 0] & 15 == weight[0, 0] & 15
    (y,) = call("aclnnConvertWeightToINT4Pack", weight, Int4.empty(16, 24))
    assert torch.equal(y.numbers(), weight.to(torch.int8))
    out = torch.zeros(24, 2, dtype=torch.int32)
    call("aclnnConvertWeightToINT4Pack", weight, out.t())  # a transposed view keeps its direction
    assert torch.equal(unpacked(out), weight.t().to(torch.int8))
