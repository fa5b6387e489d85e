# SPDX-License-Identifier: Apache-2.0
"""torch_npu's layers of models, quantised ones and mixtures of experts, beside those of
test_experts.py: values against the formula on device cpu. The functions by C name: tests/aten.
"""

from __future__ import annotations

import pytest
import torch
import torch_npu
from tests.npu.device.marks import not_on_2_8
from tests.npu.device.test_experts import integers, near
from tests.npu.device.test_model_attention import normed, numbers, on_npu
from torch.nn.functional import cross_entropy, linear, scaled_dot_product_attention, silu

TOKENS, WIDTH, EXPERTS, CHOSEN = 6, 64, 4, 2
ND, NZ = 2, 29


def bytes_of(x: torch.Tensor) -> torch.Tensor:
    return x.round().clamp(-128, 127)


def close(got: torch.Tensor, expected: torch.Tensor) -> bool:
    """Integers beside a tie may differ by one."""
    return (got.cpu().float() - expected.float()).abs().max() <= 1


def by_row(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """INT8 of each row, scaled to its largest number, and the scales."""
    scale = x.float().abs().amax(-1) / 127
    return bytes_of(x.float() / scale[..., None]), scale


def gated(x: torch.Tensor) -> torch.Tensor:
    a, b = x.float().chunk(2, -1)
    return silu(a) * b


def test_activations():
    x = numbers(TOKENS, WIDTH)
    assert near(torch_npu.npu_swiglu(x.npu()), gated(x))
    y = x.float()
    assert near(torch_npu.npu_fast_gelu(x.npu()), y * torch.sigmoid(1.702 * y))
    a, b = y[:, ::2].clamp(max=7), y[:, 1::2].clamp(-7, 7)
    assert near(torch_npu.npu_clipped_swiglu(x.npu()), a * torch.sigmoid(1.702 * a) * (b + 1))


def test_norms_and_norms_of_sums():
    x, other, gamma = numbers(TOKENS, WIDTH), numbers(TOKENS, WIDTH, seed=1), numbers(WIDTH, seed=2)
    assert near(torch_npu.npu_rms_norm(*on_npu(x, gamma), 1e-5)[0], normed(x, gamma))
    total = x.float() + other.float()
    y = normed(total, gamma)
    got, _, added = torch_npu.npu_add_rms_norm(*on_npu(x, other, gamma), 1e-5)
    assert near(got, y)
    assert near(added, total)
    scale, zero = torch.full((WIDTH,), 0.02).half(), torch.full((WIDTH,), 3).half()
    got, _, added = torch_npu.npu_add_rms_norm_quant(
        *on_npu(x, other, gamma, scale.float(), zero.int()), epsilon=1e-5
    )
    assert close(got, bytes_of(y / 0.02 + 3))
    got, _, added, scales, _ = torch_npu.npu_add_rms_norm_dynamic_quant(
        *on_npu(x, other, gamma), epsilon=1e-5, output_mask=[True, False]
    )  # 2.10 refuses its own default of output_mask
    expected, factor = by_row(y)
    assert close(got, expected)
    assert near(scales, factor)


def test_floats_become_bytes():
    x = numbers(TOKENS, WIDTH)
    scale, zero = torch.full((WIDTH,), 0.05), torch.full((WIDTH,), 2, dtype=torch.int32)
    got = torch_npu.npu_quantize(*on_npu(x, scale, zero), torch.qint8, 1)
    assert close(got, bytes_of(x.float() / 0.05 + 2))


def test_floats_become_integers_of_4_bits():
    left, right = numbers(8, 8, seed=1), numbers(8, 8, seed=2)
    x = numbers(TOKENS, 8, 8)
    packed, scale = torch_npu.npu_kronecker_quant(*on_npu(x, left, right))
    around = left.float() @ x.float() @ right.float()
    assert near(scale, around.abs().amax((1, 2)) / 7)
    words = packed.cpu()[..., None] >> torch.arange(0, 32, 4)
    nibbles = ((words & 15) ^ 8) - 8
    assert close(nibbles.flatten(-2), (around / scale.cpu()[:, None, None]).round())
    assert torch_npu.npu_dtype_cast(x.npu(), torch.float32).cpu().equal(x.float())


def test_sums_become_floats_that_are_gated_and_quantised():
    x = torch.randint(-5000, 5000, (TOKENS, WIDTH)).int()
    weight, rows = torch.rand(1, WIDTH) * 1e-3, torch.rand(TOKENS, 1)
    groups = torch.tensor([TOKENS])
    got, scale = torch_npu.npu_dequant_swiglu_quant(
        x.npu(), weight_scale=weight.npu(), activation_scale=rows.npu(), group_index=groups.npu(),
        activate_left=True, quant_mode=1,
    )  # fmt: skip
    expected, factor = by_row(gated(x * weight * rows))
    assert close(got, expected)
    assert near(scale, factor)


def test_batches_are_transposed_and_multiplied():
    x, w = numbers(TOKENS, 3, 16), numbers(3, 16, 8, seed=1)
    got = torch_npu.npu_transpose_batchmatmul(*on_npu(x, w), perm_x1=(1, 0, 2), perm_y=(1, 0, 2))
    assert near(got, torch.einsum("tbk,bkn->tbn", x.float(), w.float()))


def test_updates_go_to_their_rows():
    x, rows, updates = numbers(9, 4), torch.tensor([[7], [2]]), numbers(2, 4, seed=1)
    expected = x.clone()
    expected[rows[:, 0]] = updates
    there = x.npu()
    torch_npu.npu_scatter_nd_update_(there, *on_npu(rows, updates))
    assert there.cpu().equal(expected)


def test_experts_are_chosen():
    x = numbers(TOKENS, EXPERTS)
    for norm, score in ((0, x.float().softmax(-1)), (1, x.float().sigmoid())):
        y, experts, _ = torch_npu.npu_moe_gating_top_k(x.npu(), CHOSEN, norm_type=norm)
        best, order = score.topk(CHOSEN)
        assert experts.cpu().equal(order.int())
        assert near(y, best / best.sum(-1, True) if norm else best)
    y, experts, _ = torch_npu.npu_moe_gating_top_k_softmax(x.npu(), k=CHOSEN)
    best, order = x.float().softmax(-1).topk(CHOSEN)
    assert experts.cpu().equal(order.int())
    assert near(y, best)


def test_rows_are_routed_to_experts():
    x = numbers(TOKENS, WIDTH)
    experts = torch.randint(0, EXPERTS, (TOKENS, CHOSEN)).int()
    slots = torch.arange(TOKENS * CHOSEN).int().view(CHOSEN, TOKENS).t().contiguous()
    rows, _, ids = torch_npu.npu_moe_init_routing(*on_npu(x, slots, experts), TOKENS)
    order = experts.flatten().sort(stable=True)
    assert ids.cpu().equal(order.values)
    assert near(rows, x[slots.flatten()[order.indices] % TOKENS])
    ends = torch_npu.npu_moe_compute_expert_tokens(ids, EXPERTS)
    assert ends.tolist() == experts.flatten().bincount(minlength=EXPERTS).cumsum(0).tolist()
    rows, *_, scale = torch_npu.npu_moe_init_routing_quant(
        *on_npu(x, experts), active_num=TOKENS * CHOSEN, expert_num=EXPERTS
    )
    expected, factor = by_row(x[order.indices // CHOSEN])
    assert close(rows, expected)
    assert near(scale, factor)


def test_grouped_products_of_quantised_experts():
    counts = torch.tensor([2, 0, 4])
    ends = counts.cumsum(0)
    x, weight = integers(TOKENS, WIDTH), integers(3, WIDTH, WIDTH)
    scale, rows = torch.rand(3, WIDTH) * 1e-4, torch.rand(TOKENS)
    group = torch.repeat_interleave(torch.arange(3), counts)
    sums = torch.einsum("tk,tkn->tn", x.double(), weight[group].double()).float()
    products = sums * scale[group] * rows[:, None]
    expected, factor = by_row(gated(products))
    tiles = torch_npu.npu_format_cast(weight.npu(), 29)
    for got in (
        torch_npu.npu_grouped_matmul_swiglu_quant(x.npu(), tiles, ends.npu(), scale.npu(),
                                                  rows.npu()),
        torch_npu.npu_grouped_matmul_swiglu_quant_v2(x.npu(), [tiles], [scale.npu()], rows.npu(),
                                                     ends.npu()),
    ):  # fmt: skip
        assert close(got[0], expected)
        assert near(got[1], factor)
    tokens, logit = torch.tensor([0, 1, 0, 1, 2, 2]), torch.rand(TOKENS)
    got = torch_npu.npu_grouped_matmul_finalize_routing(
        x.npu(), tiles, counts.npu(), scale=scale.npu(), pertoken_scale=rows.npu(),
        logit=logit.npu(), row_index=tokens.npu(), output_bs=3,
    )  # fmt: skip
    assert near(got, torch.zeros(3, WIDTH).index_add(0, tokens, products * logit[:, None]))
    floats = numbers(TOKENS, WIDTH)
    plain = torch_npu.npu_quant_grouped_matmul_dequant(
        *on_npu(floats, weight.transpose(1, 2).contiguous(), scale, ends)
    )
    near_rows, row_scale = by_row(floats)
    wanted = torch.einsum("tk,tkn->tn", near_rows, weight[group].float())
    assert near(plain, wanted * scale[group] * row_scale[:, None])


def test_the_gradient_of_attention_by_its_own_name():
    q, k, v, dy = (numbers(2, 4, 6, 16, seed=i) for i in range(4))
    given = [t.float().requires_grad_() for t in (q, k, v)]
    scaled_dot_product_attention(*given, scale=0.25).backward(dy.float())
    out, largest, total, *_ = torch_npu.npu_fusion_attention(
        *on_npu(q, k, v), 4, "BNSD", scale=0.25
    )
    got = torch_npu.npu_fusion_attention_grad(
        *on_npu(q, k, v, dy), 4, "BNSD", softmax_max=largest, softmax_sum=total, attention_in=out,
        scale_value=0.25,
    )  # fmt: skip
    for found, one in zip(got, given, strict=False):
        assert near(found, one.grad)


def test_the_loss_of_classes():
    x, target = numbers(TOKENS, WIDTH).float(), torch.randint(0, WIDTH, (TOKENS,))
    loss, log_prob, *_ = torch_npu.npu_cross_entropy_loss(*on_npu(x, target))
    assert near(loss.view(()), cross_entropy(x, target))
    assert near(log_prob, x.log_softmax(-1))


def test_a_weight_is_fetched_before_it_is_used():
    x, w = numbers(TOKENS, WIDTH), numbers(WIDTH, WIDTH, seed=1)
    there = w.npu()
    torch_npu.npu_prefetch(there, None, 1 << 20)
    assert near(linear(x.npu(), there), x.float() @ w.float().t())


@pytest.fixture
def private_formats():
    torch.npu.config.allow_internal_format = True
    yield
    torch.npu.config.allow_internal_format = False


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int8, torch.float32])
@pytest.mark.parametrize("shape", [(32, 64), (33, 50), (3, 16, 40)])
def test_a_program_sees_the_format_and_the_plain_numbers(private_formats, shape, dtype):
    x = torch.randint(-9, 9, shape).to(dtype)
    tiled = torch_npu.npu_format_cast(x.npu(), NZ)
    assert torch_npu.get_npu_format(tiled) == NZ
    assert tiled.shape == x.shape
    assert tiled.stride() == x.stride()
    whole = [*shape[:-2], -(-shape[-2] // 16) * 16, -(-shape[-1] // 16) * 16]
    assert torch_npu.get_storage_size(tiled) >= torch.Size(whole).numel()
    for same in (tiled, tiled.clone(), torch_npu.npu_format_cast(tiled, ND)):
        assert same.cpu().equal(x)
    assert (tiled + 1).cpu().equal(x + 1)
    assert tiled.mT.cpu().equal(x.mT)
    assert torch_npu.get_npu_format(torch_npu.npu_format_cast(tiled, ND)) == ND


@pytest.mark.parametrize("product", [torch.matmul, torch.nn.functional.linear, torch.addmm])
@pytest.mark.parametrize("inner", [32, 33])
def test_products_with_weights_in_tiles(private_formats, product, inner):
    x, weight, bias = numbers(4, inner), numbers(inner, 50, seed=1), numbers(50, seed=2)
    given = {torch.matmul: (x, weight), torch.addmm: (bias, x, weight)}.get(
        product, (x, weight.t().contiguous(), bias)
    )
    there = [torch_npu.npu_format_cast(t.npu(), NZ) if t.numel() == 50 * inner else t.npu()
             for t in given]  # fmt: skip
    assert near(product(*there), product(*(t.float() for t in given)))


def test_batches_of_products_with_weights_in_tiles(private_formats):
    x, weight = numbers(3, 4, 32), numbers(3, 32, 64, seed=1)
    tiles, expected = torch_npu.npu_format_cast(weight.npu(), NZ), x.float() @ weight.float()
    assert near(torch.bmm(x.npu(), tiles), expected)


@not_on_2_8("takes no tiles in npu_transpose_batchmatmul")
def test_transposed_products_with_weights_in_tiles(private_formats):
    x, weight = numbers(3, 4, 32), numbers(3, 32, 64, seed=1)
    tiles, expected = torch_npu.npu_format_cast(weight.npu(), NZ), x.float() @ weight.float()
    rows = x.transpose(0, 1).contiguous().npu()
    got = torch_npu.npu_transpose_batchmatmul(rows, tiles, perm_x1=(1, 0, 2), perm_y=(1, 0, 2))
    assert near(got, expected.transpose(0, 1))
