# SPDX-License-Identifier: Apache-2.0
"""Runs a program as several ranks, as `torch.distributed.run --standalone` does, in children of one
process that has imported torch, which takes 1.5 s, and 2.5 s with torch_npu:
`launch.py RANKS PROGRAM WORD...`.

The ranks share the store of the parent, so it outlives each of them. When a rank fails, the others
get SIGTERM. The exit status is 1 if a rank failed.
"""

import os
import runpy
import signal
import socket
import sys
from datetime import timedelta

import torch


def listener() -> socket.socket:
    made = socket.socket()
    made.bind(("localhost", 0))
    made.listen()
    return made


def be_rank(rank: int, ranks: int, port: int, program: str, words: list[str]) -> None:
    os.environ |= {
        **{"RANK": str(rank), "LOCAL_RANK": str(rank)},
        **{"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks)},
        **{"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)},
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }
    sys.argv = [program, *words]
    sys.path[0] = os.path.dirname(program)
    runpy.run_path(program, run_name="__main__")


def main(ranks: int, program: str, words: list[str]) -> int:
    listening = listener()
    port = listening.getsockname()[1]
    running = set()
    for rank in range(ranks):
        child = os.fork()
        if child == 0:
            listening.close()
            be_rank(rank, ranks, port, program, words)
            return 0
        running.add(child)
    file = listening.detach()
    store = torch.distributed.TCPStore(  # serves while it exists
        *("localhost", port, None, True, timedelta(minutes=1), False), master_listen_fd=file
    )
    failed = False
    while running:
        child, status = os.wait()
        running.remove(child)
        if status != 0 and not failed:
            failed = True
            for other in running:
                os.kill(other, signal.SIGTERM)
    del store
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
