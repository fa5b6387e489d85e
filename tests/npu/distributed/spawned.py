# SPDX-License-Identifier: Apache-2.0
"""Without a launcher and without `openaclnn npu`: the processes import openaclnn.npu."""

from __future__ import annotations

import sys

import openaclnn.npu  # isort: skip  # noqa: F401
import torch
import torch.distributed as dist
import torch.multiprocessing

RANKS = 2


def work(rank: int, store: str) -> None:
    dist.init_process_group("hccl", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    x = torch.full((3,), rank + 1.0, device="npu")
    dist.all_reduce(x)
    assert x.tolist() == [3.0, 3.0, 3.0]
    dist.destroy_process_group()
    print(f"rank {rank} has the sum", flush=True)


if __name__ == "__main__":
    torch.multiprocessing.spawn(work, (sys.argv[1],), nprocs=RANKS)
