# SPDX-License-Identifier: Apache-2.0
"""Quantised products, and products with quantised or rearranged weights: sums of integers are
exact, results those of float64 rounded once.
"""

from __future__ import annotations

from itertools import product

import pytest
from tests.aten.quantised_support import (
    FLOATS,
    HALVES,
    Int4,
    bits64,
    call,
    miss,
    neighbours,
    random,
    saturated,
    torch,
    words,
)
from tests.aten.test_grouped_matmul import tiles

Tensor = torch.Tensor
M, K, N = 5, 32, 16
NONE = torch.zeros(0)  # an absent tensor, as torch_npu passes it


def int8(*shape: int, seed: int = 0) -> Tensor:
    return random(*shape, low=-128, high=127, dtype=torch.int8, seed=seed)


def int4(*shape: int, seed: int = 0) -> Tensor:
    return random(*shape, low=-8, high=7, dtype=torch.int8, seed=seed)


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.full(shape, 77).to(dtype)


def v5(x1, x2, out, *, name="V5", transposed=(False, False), group=0, **given):
    names = ("x1_scale", "x2_scale", "y_scale", "x1_offset", "x2_offset", "y_offset", "bias")
    parameters = [given.get(n) for n in names]
    return call(f"aclnnQuantMatmul{name}", x1, x2, *parameters, *transposed, group, out)[0]


@pytest.mark.parametrize("dtype", HALVES)
def test_products_of_int8_are_scaled_by_column_and_row(dtype):
    a, b = int8(M, K), int8(K, N)
    scale, per_token = random(N, low=1e-4, high=1e-3), random(M, low=0.1, high=1)
    whole, real = random(N, low=-999, high=999, dtype=torch.int32), random(N)
    for bias, per_row in product((None, whole, real), (None, per_token)):
        rows = 1 if per_row is None else per_row[:, None].double()
        y = (a.double() @ b.double() + (whole if bias is whole else 0)) * scale.double() * rows
        y = y + (real if bias is real else 0)

        def out() -> Tensor:
            return empty(M, N, dtype=dtype)

        given = {"x1_scale": per_row, "x2_scale": scale, "bias": bias}
        absent = {"x1_offset": NONE, "y_offset": NONE}
        results = {
            "V5": v5(a, b, out(), **given, **absent),
            "strides": v5(a.t().contiguous().t(), b.t().contiguous().t(), out(), **given),
            "flags": v5(a.t().contiguous(), b.t().contiguous(), out(), transposed=(1, 1), **given),
            "tiles": v5(a, tiles(b, 32), out(), name="WeightNz", **given),
            "V4": call("aclnnQuantMatmulV4", a, b, bits64(scale), None, per_row, bias, False, False,
                       out())[0],
        }  # fmt: skip
        if per_row is None:
            for s in (scale, bits64(scale).view(torch.uint64)):
                results[f"V3 {s.dtype}"] = call("aclnnQuantMatmulV3", a, b, s, None, bias, False,
                                                False, out())[0]  # fmt: skip
            results["V2"] = call("aclnnQuantMatmulV2", a, b, bias, scale, False, False, out())[0]
        assert {k: text for k, got in results.items() if (text := miss(got, y))} == {}


def test_sums_of_long_rows_are_exact():
    k = 30000
    a, b = torch.full((2, k), 127, dtype=torch.int8), torch.full((k, 2), 127, dtype=torch.int8)
    a[1, ::3], b[0, 1] = -128, 126
    bias = torch.tensor([5, -7], dtype=torch.int32)
    y = v5(a, b, torch.zeros(2, 2, dtype=torch.int32), bias=bias, x2_scale=torch.ones(2))
    assert torch.equal(y, a.int() @ b.int() + bias)


def test_batches_are_broadcast():
    a, b = int8(3, M, K), int8(K, N)
    scale, bias = random(N, low=1e-4, high=1e-3), random(3, 1, N)
    y = v5(a, b, torch.zeros(3, M, N), x2_scale=scale, bias=bias)
    assert miss(y, a.double() @ b.double() * scale + bias) == ""


def test_the_offset_of_int8_results_is_a_tensor_or_in_the_bits():
    a, b = int8(M, K), int8(K, N)
    scale = torch.full((N,), 2.0**-10)
    offset = random(N, low=-20, high=20).round()
    expected = saturated(a.double() @ b.double() * 2.0**-10 + offset)
    (packed,) = call("aclnnTransQuantParamV2", scale, offset, torch.zeros(N, dtype=torch.int64))
    out = torch.zeros(M, N, dtype=torch.int8)
    for x2_scale, x2_offset in ((scale, offset), (packed, None), (packed, offset)):
        y = v5(a, b, out.clone(), x2_scale=x2_scale, x2_offset=x2_offset)
        assert torch.equal(y, expected)


@pytest.mark.parametrize("form", [words, Int4.of])
@pytest.mark.parametrize("dtype", HALVES)
def test_integers_of_4_bits_with_groups_of_rows(form, dtype):
    x, weight, a = int4(M, K), int4(K, N), int8(M, K)
    per_row, scale = random(M, 1, low=0.1, high=1), random(4, N, low=1e-3, high=1e-2)
    offset = random(4, N, dtype=torch.float16)
    column = random(N, low=1e-3, high=1e-2)

    def spread(p: Tensor) -> Tensor:
        return p.double().repeat_interleave(K // 4, 0)

    out = empty(M, N, dtype=dtype)
    plain = per_row.double() * (x.double() @ weight.double()) * column
    y = v5(form(x), form(weight), out.clone(), x1_scale=per_row, x2_scale=column)
    assert miss(y, plain) == ""
    grouped = per_row * (x.double() @ ((weight - spread(offset)) * spread(scale)))
    y = v5(form(x), form(weight), out.clone(), x1_scale=per_row, x2_scale=scale, x2_offset=offset,
           group=K // 4)  # fmt: skip
    assert miss(y, grouped, slack=1e-5) == ""
    mixed = per_row * (a.double() @ (weight * spread(scale)))
    assist = 8 * (weight * spread(scale)).sum(0).float()
    y = v5(a, form(weight), out.clone(), x1_scale=per_row, x2_scale=bits64(scale), y_offset=assist,
           group=K // 4)  # fmt: skip
    assert miss(y, mixed, slack=1e-5) == ""


def test_transposed_weights_of_4_bits_are_packed_along_their_rows():
    x, weight = int4(M, K), int4(K, N)
    column, out = random(N, low=1e-3, high=1e-2), empty(M, N)
    expected = (x.double() @ weight.double()) * column
    other = weight.t().contiguous()
    for w, flag in (
        (Int4.of(other).transposed(), False), (words(other).t(), False), (words(other), True)
    ):  # fmt: skip
        y = v5(words(x), w, out.clone(), x2_scale=column, transposed=(False, flag))
        assert miss(y, expected) == ""


def test_blocks_of_both_matrices_have_a_scale_each():
    a, b = int8(M, 300), int8(300, 200)
    s1, s2 = random(M, 3, low=0.1, high=1), random(2, 3, low=1e-3, high=1e-2)
    expected = torch.zeros(M, 200, dtype=torch.float64)
    for j, k in product(range(2), range(3)):
        ks, ns = slice(128 * k, 128 * k + 128), slice(128 * j, 128 * j + 128)
        expected[:, ns] += a[:, ks].double() @ b[ks, ns].double() * s1[:, k, None] * s2[j, k]
    y = v5(a, b, empty(M, 200, dtype=torch.bfloat16), x1_scale=s1, x2_scale=s2,
           group=128 | 128 << 16 | 1 << 32)  # fmt: skip
    assert miss(y, expected, slack=1e-5) == ""


def test_products_of_a_batch_are_added():
    a, b = int8(3, M, K), int8(3, K, 64)
    s1, s2 = random(3, M, low=0.1, high=1), random(64, low=1e-4, high=1e-3)
    expected = (a.double() @ b.double() * s1[..., None] * s2).sum(0)
    for weight, keep in product((b, tiles(b, 32)), (False, True)):
        out = empty(*([1] * keep), M, 64, dtype=torch.bfloat16)
        (y,) = call("aclnnQuantMatmulReduceSumWeightNz", a, weight, s1, s2, *[None] * 5, False,
                    False, 0, [0], keep, out)  # fmt: skip
        assert miss(y.view(M, 64), expected) == ""


@pytest.mark.parametrize("approximate", ["tanh", "none"])
def test_a_gelu_may_follow(approximate):
    a, b = int8(M, K), int8(K, N)
    scale, per_row = random(N, low=1e-4, high=1e-3), random(M, low=0.1, high=1)
    y = a.double() @ b.double() * scale * per_row[:, None]
    expected = torch.nn.functional.gelu(y, approximate=approximate)
    op = "gelu_tanh" if approximate == "tanh" else "gelu_erf"
    for name, weight in (("", b), ("WeightNz", tiles(b, 32))):
        (got,) = call(f"aclnnFusedQuantMatmul{name}", a, weight, per_row, scale, *[NONE] * 4, None,
                      NONE, op, 0, empty(M, N, dtype=torch.float16))  # fmt: skip
        assert miss(got, expected) == ""


# ---- floats ----


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("form", [None, words, Int4.of])
def test_floats_with_quantised_weights(dtype, form):
    x = random(M, K, dtype=dtype)
    weight = int8(K, N) if form is None else int4(K, N)
    stored = weight if form is None else form(weight)
    bias = random(N, dtype=torch.float16 if dtype == torch.float16 else torch.float32)
    for shape, group in (((1,), 0), ((N,), 0), ((1, N), 0), ((4, N), 8), ((3, N), 12)):
        scale, offset = random(*shape, low=0.01, high=0.1, dtype=dtype), random(*shape, dtype=dtype)

        def spread(p: Tensor, rows: int = group) -> Tensor:
            return p.double().repeat_interleave(rows, 0)[:K] if rows else p.double()

        y = x.double() @ ((weight + spread(offset)) * spread(scale)) + bias
        for name, last in (("V2", ()), ("V3", (0,)), ("Nz", ())):
            out = empty(M, N, dtype=dtype)
            (got,) = call(f"aclnnWeightQuantBatchMatmul{name}", x, stored, scale, offset, None,
                          None, bias, group, *last, out)  # fmt: skip
            assert miss(got, y, slack=1e-5) == ""
        step, shift = torch.tensor([3.0]), random(N)
        for quant in (step, bits64(step)):
            (got,) = call("aclnnWeightQuantBatchMatmulV2", x, stored, scale, offset, quant, shift,
                          bias, group, torch.zeros(M, N, dtype=torch.int8))  # fmt: skip
            assert neighbours(got, saturated(y * 3 + shift), part=0.05)


@pytest.mark.parametrize("dtype", FLOATS)
def test_weights_in_tiles_are_the_plain_ones(dtype):
    columns = 8 if dtype == torch.float32 else 16
    a, b, batch = (random(*s, dtype=dtype) for s in ((M, 24), (24, 20), (3, M, 24)))
    weights, self = random(3, 24, 20, dtype=dtype), random(M, 20, dtype=dtype)
    for made in (lambda w: w, lambda w: tiles(w, columns)):
        (y,) = call("aclnnMatmulWeightNz", a, made(b), empty(M, 20, dtype=dtype), 0)
        assert miss(y, a.double() @ b.double()) == ""
        (y,) = call("aclnnBatchMatMulWeightNz", batch, made(weights),
                    empty(3, M, 20, dtype=dtype), 0)  # fmt: skip
        assert miss(y, batch.double() @ weights.double()) == ""
        (y,) = call("aclnnAddmmWeightNz", self, a, made(b), 0.5, 2.0, empty(M, 20, dtype=dtype), 0)
        assert miss(y, 0.5 * self.double() + 2 * (a.double() @ b.double())) == ""


@pytest.mark.parametrize("dtype", FLOATS)
def test_products_of_permuted_batches(dtype):
    a, b = random(4, M, K, dtype=dtype), random(4, K, N, dtype=dtype)
    y = (a.double() @ b.double()).transpose(0, 1)
    name = "aclnnTransposeBatchMatMul"
    (got,) = call(name, a, b, None, None, [0, 1, 2], [0, 1, 2], [1, 0, 2], 0, 1,
                  empty(M, 4, N, dtype=dtype))  # fmt: skip
    assert miss(got, y) == ""
    (got,) = call(name, a.transpose(0, 1).contiguous(), b.mT.contiguous(), None, None, [1, 0, 2],
                  [0, 2, 1], [1, 0, 2], 0, 2, empty(2, M, 2 * N, dtype=dtype))  # fmt: skip
    assert miss(got, torch.stack([y[:, :2].flatten(1), y[:, 2:].flatten(1)])) == ""
    (got,) = call("aclnnTransposeBatchMatMulWeightNz", a, tiles(b, 16), None, None, [0, 1, 2],
                  [0, 1, 2], [1, 0, 2], 0, 1, empty(M, 4, N, dtype=dtype))  # fmt: skip
    assert miss(got, y) == ""
    if dtype == torch.float16:
        scale = random(4 * N, low=2, high=9)
        out = torch.zeros(M, 1, 4 * N, dtype=torch.int8)
        (got,) = call(name, a, b, None, bits64(scale), [0, 1, 2], [0, 1, 2], [1, 0, 2], 0, 1, out)
        expected = saturated(y.half().float().reshape(M, 1, -1) * scale)
        assert neighbours(got, expected, part=0.05)


@pytest.mark.parametrize("dtype", FLOATS)
def test_other_steps_may_follow_a_product(dtype):
    a, b, bias, x3 = (random(*s, dtype=dtype) for s in ((M, K), (K, N), (N,), (M, N)))
    y = a.double() @ b.double() + bias.double()
    gelu = torch.nn.functional.gelu
    steps = {
        "": y, "16cast32": y, "add": y + x3.double(), "mul": y * x3.double(), "relu": y.relu(),
        "gelu_erf": gelu(y), "gelu_tanh": gelu(y, approximate="tanh"),
    }  # fmt: skip
    for op, expected in steps.items():
        out = empty(M, N, dtype=torch.float32 if op == "16cast32" else dtype)
        (got,) = call("aclnnFusedMatmul", a, b, bias, x3, op, 0, out)
        assert miss(got, expected) == ""


# ---- layers ----


def steps(x: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """The size of a step for each row."""
    return x.abs().amax(-1, keepdim=True) / (2 ** (bits - 1) - 1)


def test_a_linear_layer_of_8_bits_is_the_float_one_within_its_steps():
    x, weight, bias = random(64, 256), random(128, 256, seed=1), random(128)
    numbers, per_token = call("aclnnDynamicQuant", x, None, torch.zeros(64, 256, dtype=torch.int8),
                              torch.zeros(64))  # fmt: skip
    of_row = steps(weight, 8)
    quantised = saturated(weight / of_row)
    y = v5(numbers, quantised, torch.zeros(64, 128), x1_scale=per_token,
           x2_scale=of_row.flatten(), bias=bias, transposed=(False, True))  # fmt: skip
    expected = x @ weight.t() + bias
    # Errors of half a step of each, and of both.
    bound = (steps(x, 8) / 2) @ weight.abs().sum(1)[None] + x.abs().sum(1)[:, None] @ (
        of_row.t() / 2
    ) + 256 * (steps(x, 8) / 2) @ (of_row.t() / 2)  # fmt: skip
    assert ((y - expected).abs() <= bound).all()
    assert (y - expected).norm() / expected.norm() < 0.01


def test_a_linear_layer_with_weights_of_4_bits_is_the_float_one_within_its_steps():
    x, weight = random(64, 256, dtype=torch.float16), random(256, 128, seed=1)
    group = 32
    of_group = weight.view(-1, group, 128).abs().amax(1) / 7
    numbers = saturated(weight / of_group.repeat_interleave(group, 0), 4).int()
    (packed,) = call("aclnnConvertWeightToINT4Pack", numbers,
                     torch.zeros(256, 16, dtype=torch.int32))  # fmt: skip
    (y,) = call("aclnnWeightQuantBatchMatmulV2", x, packed, of_group.half(), None, None, None, None,
                group, torch.zeros(64, 128, dtype=torch.float16))  # fmt: skip
    expected = x.float() @ weight
    bound = x.abs().float() @ (0.51 * of_group).repeat_interleave(group, 0) + 0.01
    assert ((y.float() - expected).abs() <= bound).all()
    assert (y.float() - expected).norm() / expected.norm() < 0.1
