# SPDX-License-Identifier: Apache-2.0
"""Grouped matrix products: each group is the product of its rows with its weight, in every version
of the function, for floats, INT8 and INT4.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.aten.quantised_support import (
    FLOATS,
    HALVES,
    Int4,
    bits64,
    call,
    miss,
    random,
    saturated,
    torch,
    words,
)

Tensor = torch.Tensor
ROWS, K, N, GROUPS = 12, 24, 16, 3
ENDS = [4, 4, 10]  # the second group is empty, two rows are in none
COUNTS = [4, 0, 6]
PAIRS = [[0, 4], [1, 0], [2, 6]]
ACTIVATIONS = {
    0: lambda y: y, 1: torch.relu, 2: lambda y: torch.nn.functional.gelu(y, approximate="tanh"),
    4: lambda y: y * torch.sigmoid(1.702 * y), 5: torch.nn.functional.silu,
}  # fmt: skip


def int8(*shape: int, seed: int = 0) -> Tensor:
    return random(*shape, low=-128, high=127, dtype=torch.int8, seed=seed)


def int4(*shape: int, seed: int = 0) -> Tensor:
    return random(*shape, low=-8, high=7, dtype=torch.int8, seed=seed)


def groups() -> list[tuple[int, slice]]:
    return [(g, slice(a, b)) for g, (a, b) in enumerate(pairwise([0, *ENDS]))]


def grouped(x: Tensor, weight: Tensor, *, bias: Tensor | None = None) -> Tensor:
    """In float64; rows of no group are zero."""
    y = torch.zeros(len(x), weight.shape[-1], dtype=torch.float64)
    for g, rows in groups():
        y[rows] = x[rows].double() @ weight[g].double()
        if bias is not None:
            y[rows] += bias[g].double()
    return y


def product(x, weight, out, *, groups=ENDS, kind=0, split=3, activation=0, version="V5", **lists):
    """GroupedMatmulV4, V5 or WeightNz; lists are its lists of parameters, of one tensor or more."""
    given = [
        None if lists.get(name) is None else [lists[name]]
        for name in ("bias", "scale", "offset", "antiquant", "antiquant_offset", "per_token")
    ]
    tail = {"V4": [], "V5": [None], "WeightNz": [None, 0]}[version]
    return call(
        f"aclnnGroupedMatmul{version}", [x], [weight], *given, torch.tensor(groups), None, None,
        None, split, 0, kind, activation, *tail, out, None, None,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_version_multiplies_the_rows_of_a_group_by_its_weight(dtype):
    x, weight = random(ROWS, K, dtype=dtype), random(GROUPS, K, N, dtype=dtype)
    bias = random(GROUPS, N, dtype=torch.float16 if dtype == torch.float16 else torch.float32)
    none = [None] * 4
    expected = grouped(x, weight, bias=bias)

    def out() -> Tensor:
        return torch.full((ROWS, N), 77.0, dtype=dtype)

    lists = ([x], [weight], [bias], *none)
    ends = torch.tensor(ENDS)
    results = {
        "V1": call("aclnnGroupedMatmul", [x], list(weight), list(bias), *none, ENDS, 3, [out()]),
        "V2": call("aclnnGroupedMatmulV2", *lists, ENDS, 3, 0, [out()]),
        "V3": call("aclnnGroupedMatmulV3", *lists, ends, 3, 0, [out()]),
        **{
            f"{version} {kind}": product(
                x, weight, [out()], groups=given, kind=kind, bias=bias, version=version
            )
            for version in ("V4", "V5", "WeightNz")
            for kind, given in enumerate((ENDS, COUNTS, PAIRS))
        },
    }
    assert {k: text for k, (y,) in results.items() if (text := miss(y, expected))} == {}


def test_groups_may_leave_in_a_tensor_each_and_come_as_one():
    x, weight = random(ROWS, K), random(GROUPS, K, N)
    parts = [torch.full((b.stop - b.start, N), 77.0) for _, b in groups()]
    got = product(x, weight, parts, split=0)
    whole = grouped(x, weight)
    assert [miss(y, whole[rows]) for y, (_, rows) in zip(got, groups(), strict=True)] == [""] * 3


def test_without_a_list_each_x_goes_with_its_weight():
    xs, weights = [random(2, 3, K), random(5, 8)], [random(K, N), random(8, 4)]
    outs = [torch.zeros(2, 3, N), torch.zeros(5, 4)]
    got = call("aclnnGroupedMatmulV3", xs, weights, *[None] * 6, 0, -1, outs)
    assert [miss(y, a.double() @ b.double()) for y, a, b in zip(got, xs, weights, strict=True)] == [
        "",
        "",
    ]
    same = [random(2, K), random(5, K)]
    (one,) = call("aclnnGroupedMatmulV2", same, [weights[0]] * 2, *[None] * 6, 3, 0,
                  [torch.zeros(7, N)])  # fmt: skip
    assert miss(one, torch.cat(same).double() @ weights[0].double()) == ""


def test_more_rows_than_there_are_end_at_the_last():
    x, weight = random(6, K), random(2, K, N)
    for ends, kind in (([4, 99], 0), ([4, 99], 1), ([4, 2**62], 1)):
        (y,) = product(x, weight, [torch.zeros(6, N)], groups=ends, kind=kind)
        assert miss(y, torch.cat([x[:4] @ weight[0], x[4:] @ weight[1]])) == ""


@pytest.mark.parametrize("dtype", FLOATS)
def test_groups_of_the_inner_dim_give_the_gradient_of_the_weights(dtype):
    x, dy = random(ROWS, K, dtype=dtype), random(ROWS, N, dtype=dtype)
    weight = torch.zeros(GROUPS, K, N, dtype=torch.float64, requires_grad=True)
    (torch.cat([x[r].double() @ weight[g] for g, r in groups()]) * dy[: ENDS[-1]].double()).sum(
    ).backward()  # fmt: skip
    for out in ([torch.zeros(GROUPS, K, N, dtype=dtype)], list(weight.detach().to(dtype))):
        split = 3 if len(out) == 1 else 1
        got = call("aclnnGroupedMatmulV3", [x.t()], [dy], *[None] * 5, torch.tensor(ENDS), split, 2,
                   out)  # fmt: skip
        made = got[0] if len(out) == 1 else torch.stack(got)
        assert miss(made, weight.grad) == ""
    if dtype != torch.float32:
        begin = random(GROUPS, K, N)
        for name, groups_, last in (("", ENDS, ()), ("V2", COUNTS, (1,))):
            y = call(f"aclnnGroupedMatmulAdd{name}", x, dy, torch.tensor(groups_),
                     begin.clone().flatten(0, 1), True, False, 2, *last)[0]  # fmt: skip
            assert miss(y, (begin + weight.grad).flatten(0, 1)) == ""


# ---- integers ----


def test_sums_of_int8_are_exact():
    """Of 20,000 products of 127 squared: past what floats hold."""
    x = torch.full((3, 20000), 127, dtype=torch.int8)
    x[0, ::2], x[1, 0] = -128, 126
    weight = torch.full((1, 20000, 2), 127, dtype=torch.int8)
    bias = torch.tensor([[7, -9]], dtype=torch.int32)
    (y,) = product(x, weight, [torch.zeros(3, 2, dtype=torch.int32)], groups=[3], bias=bias)
    assert torch.equal(y, x.int() @ weight[0].int() + bias)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", HALVES)
def test_int8_products_are_scaled_by_column_and_token(dtype, activation):
    x, weight = int8(ROWS, K), int8(GROUPS, K, N)
    scale, per_token = random(GROUPS, N, low=1e-4, high=1e-3), random(ROWS, low=0.1, high=1)
    whole, real = random(GROUPS, N, low=-999, high=999, dtype=torch.int32), random(GROUPS, N)
    for bias in (None, whole, real):
        y = torch.zeros(ROWS, N, dtype=torch.float64)
        for g, rows in groups():
            y[rows] = x[rows].double() @ weight[g].double()
            if bias is whole:
                y[rows] += whole[g]
            y[rows] *= scale[g].double() * per_token[rows, None].double()
            if bias is real:
                y[rows] += real[g]
            y[rows] = ACTIVATIONS[activation](y[rows])
        for given in (scale, bits64(scale)):
            (got,) = product(
                x, weight, [torch.zeros(ROWS, N, dtype=dtype)], bias=bias, scale=given,
                per_token=per_token, activation=activation,
            )  # fmt: skip
            assert miss(got, y) == ""


def test_int8_results_are_rounded_to_even_and_clamped():
    x, weight = int8(ROWS, K), int8(GROUPS, K, N)
    bias = random(GROUPS, N, low=-999, high=999, dtype=torch.int32)
    scale, offset = torch.full((GROUPS, N), 2.0**-7), random(GROUPS, N, low=-20, high=20).round()
    y = grouped(x, weight, bias=bias)
    for g, rows in groups():
        y[rows] = y[rows] * 2.0**-7 + offset[g]
    for given in (scale, bits64(scale)):
        (got,) = product(x, weight, [torch.zeros(ROWS, N, dtype=torch.int8)], bias=bias,
                         scale=given, offset=offset)  # fmt: skip
        assert torch.equal(got, saturated(y))
    assert (got == 127).any()
    assert (got == -128).any()


def dequantised(weight: Tensor, scale: Tensor, offset: Tensor | None = None) -> Tensor:
    """Of one number for each column, or of groups of rows."""

    def spread(p: Tensor) -> Tensor:
        p = p.double()
        return p.unsqueeze(1) if p.dim() == 2 else p.repeat_interleave(K // p.shape[1], 1)

    return (weight.double() + (0 if offset is None else spread(offset))) * spread(scale)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("shape", [(GROUPS, N), (GROUPS, 4, N)])
def test_floats_go_with_weights_of_8_or_4_bits(dtype, shape):
    x = random(ROWS, K, dtype=dtype)
    scale, offset = random(*shape, low=0.01, high=0.1, dtype=dtype), random(*shape, dtype=dtype)
    eight, four = int8(GROUPS, K, N), int4(GROUPS, K, N)
    for stored, numbers in ((eight, eight), (words(four), four), (Int4.of(four), four)):
        (y,) = product(x, stored, [torch.zeros(ROWS, N, dtype=dtype)], antiquant=scale,
                       antiquant_offset=offset)  # fmt: skip
        assert miss(y, grouped(x, dequantised(numbers, scale, offset))) == ""


@pytest.mark.parametrize("form", [words, Int4.of])
def test_weights_of_4_bits_are_those_of_8_with_the_same_values(form):
    """Callers give 8 sum(weight scale) as bias to undo what a device adds."""
    x, four = int8(ROWS, K), int4(GROUPS, K, N)
    per_token = random(ROWS, low=0.1, high=1)
    scale = random(GROUPS, 4, N, low=1e-3, high=1e-2)
    weight = dequantised(four, scale)
    expected = grouped(x, weight) * per_token[:, None].double()
    for bias in (None, 8 * weight.sum(1).float()):
        (y,) = product(x, form(four), [torch.zeros(ROWS, N, dtype=torch.bfloat16)],
                       scale=bits64(scale), bias=bias, per_token=per_token)  # fmt: skip
        assert miss(y, expected, slack=1e-5) == ""
    offset = random(GROUPS, 4, N)
    (y,) = product(x, form(four), [torch.zeros(ROWS, N, dtype=torch.float16)], scale=bits64(scale),
                   bias=8 * weight.sum(1).float(), offset=offset, per_token=per_token)  # fmt: skip
    shifted = weight + offset.double().repeat_interleave(K // 4, 1)
    assert miss(y, grouped(x, shifted) * per_token[:, None].double(), slack=1e-5) == ""
    small = int4(ROWS, K)
    (y,) = product(form(small), form(four), [torch.zeros(ROWS, N, dtype=torch.float16)],
                   scale=bits64(scale), per_token=per_token)  # fmt: skip
    assert miss(y, grouped(small, weight) * per_token[:, None].double(), slack=1e-5) == ""


def tiles(weight: Tensor, columns: int) -> Tensor:
    """FRACTAL_NZ: (..., N / C, K / 16, 16, C), padded with zeros."""
    k, n = weight.shape[-2:]
    padded = torch.nn.functional.pad(weight, (0, -n % columns, 0, -k % 16))
    return padded.unflatten(-1, (-1, columns)).unflatten(-3, (-1, 16)).movedim(-2, -4).contiguous()


def test_weights_in_tiles_are_the_plain_ones():
    x, weight = int8(ROWS, K), int8(GROUPS, K, N)
    scale = random(GROUPS, N, low=1e-4, high=1e-3)
    plain, tiled = (
        product(x, w, [torch.zeros(ROWS, N, dtype=torch.float16)], scale=scale, version="WeightNz")
        for w in (weight, tiles(weight, 32))
    )
    assert torch.equal(plain[0], tiled[0])
    floats = random(ROWS, K, dtype=torch.bfloat16), random(GROUPS, K, N, dtype=torch.bfloat16)
    plain, tiled = (
        product(floats[0], w, [torch.zeros(ROWS, N)], version="WeightNz")
        for w in (floats[1], tiles(floats[1], 16))
    )
    assert torch.equal(plain[0], tiled[0])
