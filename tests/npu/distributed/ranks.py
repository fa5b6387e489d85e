# SPDX-License-Identifier: Apache-2.0
"""What the modules of checks share; run_checks.py runs them as all ranks of a group."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
import torch.distributed as dist

CHECKS: list[Callable[[], None]] = []
RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def check(function: Callable[[], None]) -> Callable[[], None]:
    CHECKS.append(function)
    return function


def drawn(rank: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """What this rank has, on the CPU: every rank can draw what the others have."""
    generator = torch.Generator().manual_seed(100 + rank)
    if dtype.is_floating_point:
        return (torch.rand(shape, generator=generator) * 4 - 2).to(dtype)
    low = 0 if dtype in (torch.uint8, torch.bool) else -5
    return torch.randint(low, 6, shape, generator=generator).to(dtype)


def every(*shape: int, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    return [drawn(rank, *shape, dtype=dtype) for rank in range(RANKS)]


def equal(found: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(found.cpu(), wanted, rtol=0, atol=0)


def close(found: torch.Tensor, wanted: torch.Tensor, ulps: float) -> None:
    """Within so many units in the last place of the largest value."""
    atol = ulps * torch.finfo(wanted.dtype).eps * float(wanted.abs().max())
    torch.testing.assert_close(found.cpu(), wanted, rtol=0, atol=atol)


def run() -> None:
    torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("hccl")
    for function in CHECKS:
        try:
            function()
        except Exception as error:
            raise AssertionError(f"rank {RANK}, {function.__name__}: {error}") from error
    dist.barrier()
    dist.destroy_process_group()
    print(f"rank {RANK} of {RANKS}: {len(CHECKS)} checks", flush=True)
