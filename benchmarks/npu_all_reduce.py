# SPDX-License-Identifier: Apache-2.0
"""all_reduce of float tensors: hccl on npu beside gloo on the CPU, by turns in the same processes.
Medians, and the fastest tenth, in which other work on the machine disturbs least.

openaclnn npu -- torchrun --standalone --nproc-per-node=2 benchmarks/npu_all_reduce.py
"""

from __future__ import annotations

import os
import statistics
import time

import torch
import torch.distributed as dist

ROUNDS, CALLS = 80, 3

torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("cpu:gloo,npu:hccl")


def seconds(x: torch.Tensor) -> float:
    """Of one call, until it has ended on the device."""
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(CALLS):
        dist.all_reduce(x, dist.ReduceOp.MAX)
        torch.npu.synchronize()
    return (time.perf_counter() - begin) / CALLS


if dist.get_rank() == 0:
    print("    size   hccl ms   gloo ms   ratio   of the fastest tenth")
for size in (1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 23):
    pair = [torch.rand(size // 4, device=device) for device in ("npu", "cpu")]
    rounds = [[seconds(x) for x in pair] for _ in range(ROUNDS + 1)][1:]
    sides = list(zip(*rounds, strict=True))
    hccl, gloo = (statistics.median(each) * 1e3 for each in sides)
    fast, other = (statistics.quantiles(each, n=10)[0] for each in sides)
    if dist.get_rank() == 0:
        print(
            f"{size // 1024:5} KiB {hccl:8.2f} {gloo:9.2f} {hccl / gloo:7.2f} {fast / other:7.2f}"
        )
dist.destroy_process_group()
