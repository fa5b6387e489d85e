# SPDX-License-Identifier: Apache-2.0
"""The last rank fails in the way that the argument names; the others must notice."""

from __future__ import annotations

import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from ranks import RANK, RANKS

FAILS = RANK == RANKS - 1
if not FAILS:  # the launcher ends them when it notices the failure; on a busy machine, too early
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("hccl")
x = torch.ones(1000, device="npu")
group = None
if sys.argv[1] != "missing":
    dist.all_reduce(x)
    if "TIMEOUT" in os.environ:  # which also limits how long ranks wait for each other to start
        limit = datetime.timedelta(seconds=float(os.environ["TIMEOUT"]))
        group = dist.new_group(timeout=limit)
        dist.all_reduce(x, group=group)
    torch.npu.synchronize()
if FAILS:
    match sys.argv[1]:
        case "raises":
            raise ValueError("this rank has a mistake")
        case "leaves":
            os._exit(0)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "sleeps" | "missing":
            time.sleep(600)
begin = time.monotonic()
try:
    match sys.argv[1:]:
        case [_, "receive"]:
            dist.recv(x, RANKS - 1)
        case [_, "unread"]:
            dist.all_reduce(x, group=group)
            time.sleep(60)  # nothing asks for the result
        case _:
            dist.all_reduce(x, group=group)
    print(f"rank {RANK} has {x.sum().item()}", flush=True)
except RuntimeError as error:
    print(f"rank {RANK} after {time.monotonic() - begin:.0f} s: {error}", flush=True)
    raise
