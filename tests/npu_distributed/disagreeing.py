# SPDX-License-Identifier: Apache-2.0
"""Ranks that make different calls in the way that the argument names: all of them must say so."""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from ranks import RANK

torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("hccl")
x = torch.ones(6, device="npu")
dist.all_reduce(x)  # they agree
try:
    match sys.argv[1]:
        case "size":
            dist.all_reduce(x[: 4 + RANK])
        case "empty":
            dist.all_reduce(x[: 4 * RANK])
        case "dtype":
            dist.all_reduce(x if RANK == 0 else x.int())
        case "operation":
            dist.all_reduce(x, dist.ReduceOp.SUM if RANK == 0 else dist.ReduceOp.MAX)
        case "broadcast":
            dist.broadcast(x[: 4 + RANK], 0)
        case "root":
            dist.broadcast(x, RANK)
        case "kind":
            dist.broadcast(x, 0) if RANK == 0 else dist.all_reduce(x)
        case "gather":
            dist.all_gather_into_tensor(torch.empty(2 * (1 + RANK), device="npu"), x[: 1 + RANK])
    print(f"rank {RANK} has {x.sum().item()}", flush=True)
except RuntimeError as error:
    print(f"rank {RANK} raised: {error}", flush=True)
    os._exit(1)
