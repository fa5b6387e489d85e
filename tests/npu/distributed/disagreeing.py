# SPDX-License-Identifier: Apache-2.0
"""Ranks that make different calls in the ways that the arguments name, each in its own group:
all of them must say so.
"""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from ranks import RANK

torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("hccl")
x = torch.ones(6, device="npu")


def say(sentence: str) -> None:
    os.write(1, f"{sentence}\n".encode())  # at once: both ranks write to one pipe


def disagree(way: str, group: dist.ProcessGroup) -> None:
    match way:
        case "size":
            dist.all_reduce(x[: 4 + RANK], group=group)
        case "empty":
            dist.all_reduce(x[: 4 * RANK], group=group)
        case "dtype":
            dist.all_reduce(x if RANK == 0 else x.int(), group=group)
        case "operation":
            operation = dist.ReduceOp.SUM if RANK == 0 else dist.ReduceOp.MAX
            dist.all_reduce(x, operation, group=group)
        case "broadcast":
            dist.broadcast(x[: 4 + RANK], 0, group=group)
        case "root":
            dist.broadcast(x, RANK, group=group)
        case "kind" if RANK == 0:
            dist.broadcast(x, 0, group=group)
        case "kind":
            dist.all_reduce(x, group=group)
        case "gather":
            gathered = torch.empty(2 * (1 + RANK), device="npu")
            dist.all_gather_into_tensor(gathered, x[: 1 + RANK], group=group)


for way in sys.argv[1:]:
    group = dist.new_group()
    dist.all_reduce(x.clone(), group=group)  # they agree
    try:
        disagree(way, group)
        say(f"{way}: rank {RANK} has {x.sum().item()}")
    except RuntimeError as error:
        say(f"{way}: rank {RANK} raised {error}")
total = torch.ones(6, device="npu")
dist.all_reduce(total)  # the group of all ranks is as good as before
say(f"at the end: rank {RANK} has {total.sum().item()}")
os._exit(0)  # torch_npu aborts a process that ends while a group has failed
