# SPDX-License-Identifier: Apache-2.0
"""Runs a program as several ranks, as `torch.distributed.run --standalone` does, but in children of
one process that has imported torch. The import takes 1.5 s, or 2.5 s with torch_npu:
`launch.py RANKS PROGRAM WORD...`.

Several groups of ranks share it too: `launch.py RANKS PROGRAM WORD... --- VARIABLE=VALUE... RANKS
PROGRAM WORD...` runs them at the same time, each with its variables, and prints a list in JSON: the
exit status and the output of each.

The parent holds the store that the ranks meet in, so it outlives each of them. When a rank fails,
the others get SIGTERM, and SIGKILL if they are still there after GRACE seconds. The exit status is
1 if a rank failed. No rank is left when the parent ends, unless SIGKILL ended it.
"""

import itertools
import json
import os
import runpy
import signal
import socket
import sys
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import timedelta

import torch

GRACE = 30


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


def end_all(running: Iterable[int], number: int) -> None:
    for child in running:
        os.kill(child, number)


def wait_for(running: dict[int, int]) -> int:
    """Waits for the ranks, which stand behind their processes; 1 if one failed."""
    failed = 0
    while running:
        child, status = os.wait()
        rank = running.pop(child)
        if status != 0:
            print(f"rank {rank} ended with {os.waitstatus_to_exitcode(status)}", file=sys.stderr)
            if not failed:
                end_all(running, signal.SIGTERM)
                signal.signal(signal.SIGALRM, lambda *_: end_all(running, signal.SIGKILL))
                signal.alarm(GRACE)
            failed = 1
    return failed


def run(words: list[str]) -> int:
    """A group of ranks, from variables on."""
    variables = list(itertools.takewhile(lambda word: "=" in word, words))
    os.environ |= dict(word.split("=", 1) for word in variables)
    count, program, *words = words[len(variables) :]
    ranks = int(count)
    listening = listener()
    port = listening.getsockname()[1]
    running: dict[int, int] = {}
    for rank in range(ranks):
        child = os.fork()
        if child == 0:
            listening.close()
            be_rank(rank, ranks, port, program, words)
            return 0
        running[child] = rank
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        store = torch.distributed.TCPStore(  # serves while it exists
            *("localhost", port, None, True, timedelta(minutes=1), False),
            master_listen_fd=listening.detach(),
        )
        failed = wait_for(running)
        del store
        return failed
    finally:
        end_all(running, signal.SIGKILL)


def run_all(groups: list[list[str]]) -> int:
    running: list[int] = []
    ended = []
    with ExitStack() as files:
        outputs = [files.enter_context(tempfile.TemporaryFile("w+")) for _ in groups]
        for group, output in zip(groups, outputs, strict=True):
            child = os.fork()
            if child == 0:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                return run(group)
            running.append(child)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        try:
            for output in outputs:
                _, status = os.waitpid(running[0], 0)
                del running[0]
                output.seek(0)
                ended.append((os.waitstatus_to_exitcode(status), output.read()))
        finally:
            end_all(running, signal.SIGTERM)
            for child in running:
                os.waitpid(child, 0)
    print(json.dumps(ended))
    return 0


def main() -> int:
    groups: list[list[str]] = [[]]
    for word in sys.argv[1:]:
        if word == "---":
            groups.append([])
        else:
            groups[-1].append(word)
    return run_all(groups) if len(groups) > 1 else run(groups[0])


if __name__ == "__main__":
    sys.exit(main())
