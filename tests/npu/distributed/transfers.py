# SPDX-License-Identifier: Apache-2.0
"""Sends and receives, and the order of the work of several streams and communicators."""

from __future__ import annotations

import torch
import torch.distributed as dist
from ranks import RANK, RANKS, check, drawn, equal

AFTER, BEFORE = (RANK + 1) % RANKS, (RANK - 1) % RANKS


@check
def round_the_ring() -> None:
    for size in (1, 1000, 300_001):
        own = torch.empty(size, device="npu")
        if RANK == 0:
            dist.send(drawn(0, size).to("npu"), AFTER)
            dist.recv(own, BEFORE)
        else:
            dist.recv(own, BEFORE)
            dist.send(own, AFTER)
        equal(own, drawn(0, size))


@check
def everybody_sends_first() -> None:
    for size in (1, 300_001):
        own = torch.empty(size, device="npu")
        dist.send(drawn(RANK, size).to("npu"), AFTER)
        dist.recv(own, BEFORE)
        equal(own, drawn(BEFORE, size))


@check
def many_sends_keep_their_order() -> None:
    rows = drawn(RANK, 200, 7)
    for row in rows.to("npu"):
        dist.send(row, AFTER)
    found = torch.empty(200, 7, device="npu")
    for row in found:
        dist.recv(row, BEFORE)
    equal(found, drawn(BEFORE, 200, 7))


@check
def what_was_sent_may_change() -> None:
    data = drawn(RANK, 100_000).to("npu")
    work = dist.isend(data, AFTER)
    work.wait()
    data.fill_(-1)
    own = torch.empty(100_000, device="npu")
    dist.recv(own, BEFORE)
    equal(own, drawn(BEFORE, 100_000))


@check
def batches() -> None:
    for size in (3, 200_000):
        own = [torch.empty(size, device="npu") for _ in range(2)]
        mine = drawn(RANK, size).to("npu")
        works = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, mine, AFTER),
                dist.P2POp(dist.isend, mine * 2, BEFORE),
                dist.P2POp(dist.irecv, own[0], BEFORE),
                dist.P2POp(dist.irecv, own[1], AFTER),
            ]
        )
        for work in works:
            work.wait()
        if RANKS == 2:  # both came from the same rank, in the order in which it sent them
            equal(own[0], drawn(BEFORE, size))
            equal(own[1], drawn(BEFORE, size) * 2)
        else:
            equal(own[0], drawn(BEFORE, size))
            equal(own[1], drawn(AFTER, size) * 2)


@check
def communicators_in_opposite_order() -> None:
    first, second = dist.new_group(list(range(RANKS))), dist.new_group(list(range(RANKS)))
    for group in (first, second):
        dist.barrier(group=group)
    a, b = torch.ones(1000, device="npu"), torch.full((1000,), 2.0, device="npu")
    order = [(a, first), (b, second)] if RANK == 0 else [(b, second), (a, first)]
    works = [dist.all_reduce(tensor, group=group, async_op=True) for tensor, group in order]
    for work in works:
        work.wait()
    equal(a, torch.full((1000,), float(RANKS)))
    equal(b, torch.full((1000,), 2.0 * RANKS))


@check
def streams_keep_their_order() -> None:
    side = torch.npu.Stream()
    x = torch.zeros(50_000, device="npu")
    for _ in range(10):
        x += 1
        side.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(side):
            dist.all_reduce(x)
            x /= RANKS
        torch.npu.current_stream().wait_stream(side)
    equal(x, torch.full((50_000,), 10.0))


@check
def an_asynchronous_result_is_there_after_wait() -> None:
    for _ in range(20):
        x = drawn(RANK, 100_000).to("npu")
        work = dist.all_reduce(x, dist.ReduceOp.MAX, async_op=True)
        y = torch.ones(1000, device="npu") * 3
        work.wait()
        wanted = torch.stack([drawn(rank, 100_000) for rank in range(RANKS)]).amax(0)
        equal(x * 1, wanted)
        equal(y, torch.full((1000,), 3.0))
