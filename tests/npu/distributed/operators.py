# SPDX-License-Identifier: Apache-2.0
"""Operators that communicate, by the name that torch_npu has for the group, against the same
computed from the data of all ranks.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch_npu
from ranks import RANK, RANKS, check, close, drawn, equal, every

import openaclnn

M, K, N = 4, 32, 8
HALF = torch.float16


def name() -> str:
    return dist.group.WORLD._get_backend(torch.device("npu")).get_hccl_comm_name(RANK)


def products(x: list[torch.Tensor], w: list[torch.Tensor]) -> list[torch.Tensor]:
    return [a.double() @ b.double() for a, b in zip(x, w, strict=True)]


@check
def matrix_products() -> None:
    x, w = every(M * RANKS, K, dtype=HALF), every(K, N, dtype=HALF)
    own, weight = x[RANK].to("npu"), w[RANK].to("npu")
    late = torch.ones(1000, device="npu")
    pending = dist.all_reduce(late, async_op=True) if RANK == 0 else None
    total = sum(products(x, w))
    close(torch_npu.npu_mm_all_reduce_base(own, weight, name()), total.to(HALF), ulps=1)
    pending = pending or dist.all_reduce(late, async_op=True)
    part = torch_npu.npu_mm_reduce_scatter_base(own, weight, name(), RANKS)
    close(part, total.chunk(RANKS)[RANK].to(HALF), ulps=1)
    y, gathered = torch_npu.npu_all_gather_base_mm(own, weight, name(), RANKS)
    equal(gathered, torch.cat(x))
    close(y, products([torch.cat(x)], [w[RANK]])[0].to(HALF), ulps=1)
    pending.wait()
    equal(late, torch.full((1000,), float(RANKS)))


@check
def quantised_products() -> None:
    x, w = every(M, K, dtype=torch.int8), every(K, N, dtype=torch.int8)
    scale = torch.linspace(0.01, 0.1, N)
    total = sum(products(x, w)) * scale
    bits = torch_npu.npu_trans_quant_param(scale.to("npu"))
    y = torch_npu.npu_mm_all_reduce_base(x[RANK].to("npu"), w[RANK].to("npu"), name(),
                                         dequant_scale=bits)  # fmt: skip
    close(y, total.to(HALF), ulps=1)
    floats = every(M, K, dtype=HALF)
    total = sum(products(floats, w)) * scale.to(HALF).double()
    y = torch_npu.npu_mm_all_reduce_base(floats[RANK].to("npu"), w[RANK].to("npu"), name(),
                                         antiquant_scale=scale.to(HALF).to("npu"))  # fmt: skip
    close(y, total.to(HALF), ulps=1)


@check
def experts() -> None:
    tokens, choices, count = 6, 2, 2 * RANKS
    x = drawn(RANK, tokens, K, dtype=HALF).to("npu")
    ids = torch.stack([torch.randperm(count)[:choices] for _ in range(tokens)]).int().to("npu")
    gates = torch.rand(tokens, choices).softmax(1).to("npu")
    words = (name(), RANKS, RANK, count)
    for dispatch, combine in (
        (torch_npu.npu_moe_distribute_dispatch, torch_npu.npu_moe_distribute_combine),
        (torch_npu.npu_moe_distribute_dispatch_v2, torch_npu.npu_moe_distribute_combine_v2),
    ):
        sent = dispatch(x, ids, *words, expert_scales=gates)
        everywhere = torch.cat(all_of(ids)).flatten().long()
        counts = everywhere.bincount(minlength=count)
        equal(sent[3], counts[2 * RANK : 2 * RANK + 2])
        home = combine(sent[0], ids, sent[2], sent[4], gates, *words)
        close(home, x.cpu(), ulps=1)  # the gates of a token sum to one


def all_of(x: torch.Tensor) -> list[torch.Tensor]:
    found = [torch.empty_like(x) for _ in range(RANKS)]
    dist.all_gather(found, x)
    return [each.cpu() for each in found]


@check
def rows_of_experts() -> None:
    openaclnn.set_product("A3")  # A2 lacks these functions
    sent, received = [1 + RANK] * RANKS, [1 + r for r in range(RANKS)]  # one expert on each rank
    x = drawn(RANK, sum(sent), K, dtype=HALF).to("npu")
    weight = torch.eye(K, dtype=HALF)[None].to("npu")
    words = (weight, name(), RANKS)
    y, _, rows = torch_npu.npu_alltoallv_gmm(x, *words, sent, received, permute_out_flag=True)
    first = [drawn(r, (1 + r) * RANKS, K, dtype=HALF)[RANK * (1 + r) :][: 1 + r]
             for r in range(RANKS)]  # fmt: skip
    equal(rows, torch.cat(first))
    back, _ = torch_npu.npu_gmm_alltoallv(y, *words, received, sent)
    equal(back, x.cpu())
    openaclnn.set_product("A2")
