# SPDX-License-Identifier: Apache-2.0
"""Every collective, compared with the same computed from the data of all ranks."""

from __future__ import annotations

import torch
import torch.distributed as dist
from ranks import RANK, RANKS, check, close, drawn, equal, every

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
OPERATIONS = {
    dist.ReduceOp.SUM: lambda all_: all_.sum(0),
    dist.ReduceOp.PRODUCT: lambda all_: all_.prod(0),
    dist.ReduceOp.MAX: lambda all_: all_.amax(0),
    dist.ReduceOp.MIN: lambda all_: all_.amin(0),
}
SIZES = (1, 7, 1000, 100_003)


def reduced(operation: dist.ReduceOp, values: list[torch.Tensor]) -> torch.Tensor:
    """In float64 or int64, then rounded once (integers wrap)."""
    wide = torch.float64 if values[0].is_floating_point() else torch.int64
    return OPERATIONS[operation](torch.stack(values).to(wide)).to(values[0].dtype)


@check
def all_reduce() -> None:
    for dtype in (*FLOATS, *INTEGERS):
        for operation in OPERATIONS:
            for size in SIZES:
                values = every(size, dtype=dtype)
                own = values[RANK].to("npu")
                dist.all_reduce(own, operation)
                wanted = reduced(operation, values)
                if dtype is torch.float32:
                    close(own, wanted, ulps=RANKS)
                elif dtype.is_floating_point:  # reduced in float, rounded once
                    close(own, wanted, ulps=1)
                else:
                    equal(own, wanted)


@check
def all_ranks_have_the_same_bits() -> None:
    for dtype in FLOATS:
        own = drawn(RANK, 10_007, dtype=dtype).to("npu")
        dist.all_reduce(own)
        gathered = [torch.empty_like(own) for _ in range(RANKS)]
        dist.all_gather(gathered, own)
        for other in gathered:
            equal(other, own.cpu())


@check
def average() -> None:
    for dtype in FLOATS:
        values = every(1001, dtype=dtype)
        own = values[RANK].to("npu")
        dist.all_reduce(own, dist.ReduceOp.AVG)
        wanted = torch.stack(values).double().mean(0).to(dtype)
        close(own, wanted, ulps=RANKS)


@check
def booleans() -> None:
    values = every(50, dtype=torch.bool)
    for operation, wanted in ((dist.ReduceOp.MAX, any), (dist.ReduceOp.MIN, all)):
        own = values[RANK].to("npu")
        dist.all_reduce(own, operation)
        equal(own, torch.tensor([wanted(bits) for bits in zip(*values, strict=True)]))


@check
def strided_and_empty() -> None:
    values = every(6, 4)
    own = values[RANK].to("npu")
    column = own[:, 1].contiguous()
    dist.all_reduce(column)
    close(column, reduced(dist.ReduceOp.SUM, [value[:, 1] for value in values]), ulps=RANKS)
    nothing = torch.empty(0, device="npu")
    dist.all_reduce(nothing)
    assert nothing.numel() == 0


@check
def broadcast() -> None:
    for dtype in (*FLOATS, *INTEGERS, torch.bool):
        for root in range(RANKS):
            own = drawn(RANK, 33, dtype=dtype).to("npu")
            dist.broadcast(own, root)
            equal(own, drawn(root, 33, dtype=dtype))


@check
def all_gather() -> None:
    values = every(5, 3)
    own = values[RANK].to("npu")
    gathered = [torch.empty_like(own) for _ in range(RANKS)]
    dist.all_gather(gathered, own)
    for found, wanted in zip(gathered, values, strict=True):
        equal(found, wanted)
    together = torch.empty(5 * RANKS, 3, device="npu")
    dist.all_gather_into_tensor(together, own)
    equal(together, torch.cat(values))


@check
def all_gather_of_different_sizes() -> None:
    values = [drawn(rank, rank + 1, 3) for rank in range(RANKS)]
    gathered = [torch.empty_like(value, device="npu") for value in values]
    dist.all_gather(gathered, values[RANK].to("npu"))
    for found, wanted in zip(gathered, values, strict=True):
        equal(found, wanted)


@check
def reduce_scatter() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.int32):
        for operation in OPERATIONS:
            values = every(RANKS * 4, 3, dtype=dtype)
            wanted = reduced(operation, values).chunk(RANKS)[RANK]
            own = torch.empty(4, 3, dtype=dtype, device="npu")
            dist.reduce_scatter_tensor(own, values[RANK].to("npu"), operation)
            agree(own, wanted)
            own.zero_()
            dist.reduce_scatter(own, list(values[RANK].to("npu").chunk(RANKS)), operation)
            agree(own, wanted)


def agree(found: torch.Tensor, wanted: torch.Tensor) -> None:
    if wanted.is_floating_point():
        close(found, wanted, ulps=RANKS)
    else:
        equal(found, wanted)


@check
def reduce() -> None:
    values = every(9)
    for root in range(RANKS):
        own = values[RANK].to("npu")
        dist.reduce(own, root)
        if root == RANK:
            close(own, reduced(dist.ReduceOp.SUM, values), ulps=RANKS)


@check
def scatter() -> None:
    for root in range(RANKS):
        values = drawn(root, RANKS, 5)
        own = torch.empty(5, device="npu")
        dist.scatter(own, list(values.to("npu")) if root == RANK else None, root)
        equal(own, values[RANK])


@check
def all_to_all() -> None:
    values = every(RANKS * 2, 3)
    own = torch.empty(RANKS * 2, 3, device="npu")
    dist.all_to_all_single(own, values[RANK].to("npu"))
    wanted = torch.cat([value.chunk(RANKS)[RANK] for value in values])
    equal(own, wanted)
    received = [torch.empty(2, 3, device="npu") for _ in range(RANKS)]
    dist.all_to_all(received, list(values[RANK].to("npu").chunk(RANKS)))
    equal(torch.cat(received), wanted)


@check
def all_to_all_of_different_sizes() -> None:
    # Rank a sends a + b rows to rank b, so rank 0 sends none to itself.
    sizes = [[a + b for b in range(RANKS)] for a in range(RANKS)]
    values = [drawn(a, sum(sizes[a]), 2) for a in range(RANKS)]
    incoming = [sizes[a][RANK] for a in range(RANKS)]
    own = torch.empty(sum(incoming), 2, device="npu")
    dist.all_to_all_single(own, values[RANK].to("npu"), incoming, sizes[RANK])
    equal(own, torch.cat([values[a].split(sizes[a])[RANK] for a in range(RANKS)]))


@check
def objects() -> None:
    found: list[object] = [None] * RANKS
    dist.all_gather_object(found, {"rank": RANK, "text": "x" * RANK})
    assert found == [{"rank": rank, "text": "x" * rank} for rank in range(RANKS)]
    text = ["of rank 1" if RANK == 1 else None]
    dist.broadcast_object_list(text, 1)
    assert text == ["of rank 1"]


@check
def coalesced() -> None:
    values = every(5)
    own = [values[RANK].to("npu"), 2 * values[RANK].to("npu")]
    with dist._coalescing_manager(device=own[0].device, async_ops=True) as works:
        for tensor in own:
            dist.all_reduce(tensor)
    works.wait()
    wanted = reduced(dist.ReduceOp.SUM, values)
    close(own[0], wanted, ulps=RANKS)
    close(own[1], 2 * wanted, ulps=RANKS)


@check
def groups() -> None:
    pairs = [dist.new_group([first, first + 1]) for first in range(RANKS - 1)]
    for first, pair in enumerate(pairs):
        if RANK in (first, first + 1):
            own = torch.tensor([float(RANK)], device="npu")
            dist.all_reduce(own, group=pair)
            equal(own, torch.tensor([2.0 * first + 1]))
            root = torch.tensor([RANK], device="npu")
            dist.broadcast(root, first + 1, group=pair)
            equal(root, torch.tensor([first + 1]))
    alone = [dist.new_group([rank]) for rank in range(RANKS)][RANK]
    own = torch.ones(3, device="npu")
    dist.all_reduce(own, group=alone)
    equal(own, torch.ones(3))
    dist.barrier()
    for group in (*pairs, alone):
        if dist.get_rank(group) >= 0:
            dist.destroy_process_group(group)
    own = torch.ones(3, device="npu")
    dist.all_reduce(own)
    equal(own, torch.full((3,), float(RANKS)))
