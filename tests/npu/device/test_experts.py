# SPDX-License-Identifier: Apache-2.0
"""torch_npu's functions of mixtures of experts and quantised models reach ours, with the arguments
in their places: values against the same formulas on device cpu.
"""

from __future__ import annotations

import torch
import torch_npu

TOKENS, WIDTH, COLUMNS, EXPERTS = 12, 32, 16, 3
ENDS = torch.tensor([4, 4, 12])


def near(got: torch.Tensor, expected: torch.Tensor) -> bool:
    return torch.allclose(got.cpu().float(), expected.float(), rtol=1e-2, atol=1e-2)


def floats() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(20260)
    return torch.randn(TOKENS, WIDTH).half(), torch.randn(EXPERTS, WIDTH, COLUMNS).half()


def integers(*shape: int) -> torch.Tensor:
    return torch.randint(-128, 128, shape, dtype=torch.int8)


def grouped(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.cat([x[:4].float() @ weight[0].float(), x[4:].float() @ weight[2].float()])


def test_grouped_products_of_floats_and_integers():
    x, weight = floats()
    expected = grouped(x, weight)
    for groups in (ENDS.npu(), ENDS.tolist()):
        given = [weight.npu()] if isinstance(groups, torch.Tensor) else list(weight.npu())
        kind = {"group_type": 0} if isinstance(groups, torch.Tensor) else {}
        (y,) = torch_npu.npu_grouped_matmul([x.npu()], given, group_list=groups, split_item=3,
                                            **kind)  # fmt: skip
        assert near(y, expected)
    x, weight = integers(TOKENS, WIDTH), integers(EXPERTS, WIDTH, COLUMNS)
    scale, per_token = torch.full((EXPERTS, COLUMNS), 2.0**-10), torch.rand(TOKENS)
    (y,) = torch_npu.npu_grouped_matmul(
        [x.npu()], [weight.npu()], scale=[scale.bfloat16().npu()],
        per_token_scale=[per_token.npu()], group_list=ENDS.npu(), split_item=3, group_type=0,
        output_dtype=torch.bfloat16,
    )  # fmt: skip
    assert near(y, grouped(x, weight) * 2.0**-10 * per_token[:, None])


def test_tokens_go_to_experts_and_back_with_their_gradients():
    x, experts = torch.randn(TOKENS, WIDTH), torch.randint(0, 5, (TOKENS, 2)).int()
    tokens = x.npu().requires_grad_()
    probs = torch.full((TOKENS, 2), 0.5).npu().requires_grad_()
    rows, places = torch_npu.npu_moe_token_permute(tokens, experts.npu())
    back = torch_npu.npu_moe_token_unpermute(rows, places, probs=probs)
    assert near(back, x)
    back.sum().backward()
    assert near(tokens.grad, torch.ones_like(x))
    assert near(probs.grad, x.sum(1, True).expand(TOKENS, 2))
    rows, places, counts, _ = torch_npu.npu_moe_init_routing_v2(
        x.half().npu(), experts.npu(), active_num=2 * TOKENS, expert_num=5, quant_mode=-1,
        expert_tokens_num_type=1, expert_tokens_num_flag=True, active_expert_range=[0, 5],
    )  # fmt: skip
    assert counts.tolist() == torch.bincount(experts.flatten(), minlength=5).tolist()
    back = torch_npu.npu_moe_finalize_routing(rows, None, None, None, probs.detach().half(), places,
                                              None, drop_pad_mode=2)  # fmt: skip
    assert near(back, x)


def test_quantised_products():
    x, weight = integers(TOKENS, WIDTH), integers(WIDTH, COLUMNS)
    scale, per_token = torch.full((COLUMNS,), 2.0**-10), torch.rand(TOKENS)
    expected = x.float() @ weight.float() * 2.0**-10
    for w in (weight.npu(), torch_npu.npu_format_cast(weight.npu(), 29)):
        y = torch_npu.npu_quant_matmul(x.npu(), w, scale.npu(), pertoken_scale=per_token.npu(),
                                       output_dtype=torch.bfloat16)  # fmt: skip
        assert near(y, expected * per_token[:, None])
    y = torch_npu.npu_quant_matmul(x.npu(), weight.npu(), scale.npu())
    assert torch.equal(y.cpu(), torch.round(expected).clamp(-128, 127).to(torch.int8))
    floats = torch.randn(TOKENS, WIDTH)
    numbers, scale = torch_npu.npu_dynamic_quant(floats.half().npu())
    assert near(numbers.cpu() * scale.cpu()[:, None], floats.half())
    four = torch.randint(-8, 8, (WIDTH, COLUMNS)).int()
    packed = torch_npu.npu_convert_weight_to_int4pack(four.npu())
    y = torch_npu.npu_weight_quant_batchmatmul(
        floats.half().npu(), packed, torch.full((COLUMNS,), 0.125).half().npu()
    )
    assert near(y, floats.half().float() @ (four * 0.125))
