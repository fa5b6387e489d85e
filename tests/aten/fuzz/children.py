# SPDX-License-Identifier: Apache-2.0
"""Two zygotes, whose memory is filled differently, and what their children answered."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from .library import Outcome, Signature
from .values import Call
from .zygote import Answer, Task

FILLS = ("85", "170")  # of memory that malloc gives
START = "from tests.aten.fuzz.zygote import main; main()"
FOLDER = Path(__file__).resolve().parents[3]


def built(source: str, made: Path, *words: str) -> Path:
    """The library of a C source of this folder."""
    compiler = os.environ.get("CC", "cc")
    path = Path(__file__).parent / source
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", *words, path, "-o", made], check=True)
    return made


class Zygote:
    """One thread: with several, writes to the same place come in any order."""

    def __init__(self, folder: Path, warm: str, fill: str, fence: Path | None) -> None:
        fences = {} if fence is None else {"LD_PRELOAD": str(fence), "ATEN_FUZZ_FILL": fill}
        environment = {
            **os.environ,
            **fences,
            "OPENACLNN_PRODUCT": "any",  # which refuses least
            "OMP_NUM_THREADS": "1",
            "OPENACLNN_NUM_THREADS": "1",
            "MALLOC_PERTURB_": fill,
            # Without the cache of each thread, whose memory glibc does not fill.
            "GLIBC_TUNABLES": f"glibc.malloc.perturb={fill}:glibc.malloc.tcache_count=0",
            "PYTHONPATH": str(FOLDER),
        }
        words = [sys.executable, "-c", START, str(folder), warm]
        self.process = subprocess.Popen(
            words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, task: Task) -> Answer:
        pickle.dump(task, self.process.stdin)
        self.process.stdin.flush()
        return pickle.load(self.process.stdout)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class Pair:
    """One of each fill; each has a thread, so that both work at once."""

    def __init__(self, folder: Path, warm: str, fence: Path | None = None) -> None:
        self.zygotes = [Zygote(folder, warm, fill, fence) for fill in FILLS]
        self.threads = ThreadPoolExecutor(2)

    def close(self) -> None:
        for zygote in self.zygotes:
            zygote.close()
        self.threads.shutdown()


def ended_well(answer: Answer) -> bool:
    return answer.status == 0


def how(answer: Answer) -> str:
    """died or hangs, and by what."""
    if os.WIFSIGNALED(answer.status):
        number = os.WTERMSIG(answer.status)
        if number in (signal.SIGALRM, signal.SIGPROF):
            return "hangs"
        return f"died of {signal.Signals(number).name}"
    return f"exit status {os.waitstatus_to_exitcode(answer.status)}"


class Runs:
    """Runs tasks to their end: goes on after the call at which a child ended."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def search(
        self, zygote: Zygote, signature: Signature, seed: str
    ) -> tuple[list[Call], list[Answer], dict[int, Outcome]]:
        """The accepted calls, the deaths, all outcomes."""
        deaths: list[Answer] = []
        task = Task("search", signature, seed, self.seconds)
        while True:
            answer = zygote.ask(task)
            if ended_well(answer):
                return answer.found, deaths, answer.outcomes
            deaths.append(answer)
            if len(deaths) > 40:
                return [], deaths, answer.outcomes
            task = replace(task, skip=task.skip | {answer.number})

    def cases(
        self, zygote: Zygote, signature: Signature, seed: str, pool: list[Call], first: int,
        last: int,
    ) -> tuple[list[Answer], dict[int, Outcome]]:  # fmt: skip
        deaths: list[Answer] = []
        outcomes: dict[int, Outcome] = {}
        while first < last:
            task = Task("cases", signature, seed, self.seconds, pool=pool, first=first, last=last)
            answer = zygote.ask(task)
            outcomes |= answer.outcomes
            if ended_well(answer):
                break
            deaths.append(answer)
            first = answer.number + 1
        return deaths, outcomes

    def calls(self, zygote: Zygote, signature: Signature, calls: list[Call]) -> Answer:
        return zygote.ask(Task("calls", signature, "", self.seconds, pool=calls, last=len(calls)))
