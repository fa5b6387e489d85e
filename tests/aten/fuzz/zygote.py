# SPDX-License-Identifier: Apache-2.0
"""The process that has loaded the libraries and run nothing: each batch of calls runs in a child of
it. `children` starts it."""

from __future__ import annotations

import mmap
import os
import pickle
import resource
import signal
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .library import Library, Outcome, Signature
from .mutations import case
from .search import search
from .values import Call

MEMORY = 12 << 30  # more than the zygote has
NOTE = 1 << 20


@dataclass
class Task:
    """search: finds accepted calls; cases first to last; or calls as they are."""

    what: str
    signature: Signature
    seed: str = ""
    seconds: float = 20.0  # for a call
    skip: frozenset[int] = frozenset()
    pool: list[Call] = field(default_factory=list)  # or the calls
    first: int = 0
    last: int = 0


@dataclass
class Answer:
    outcomes: dict[int, Outcome]
    found: list[Call]  # by search
    status: int  # of waitpid
    number: int  # of the call at which the child ended
    call: Call | None
    stderr: str


class Note:
    """What the child is doing, in memory that survives it."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, NOTE)

    def put(self, number: int, call: Call) -> None:
        data = pickle.dumps(call)
        if len(data) > NOTE - 16:
            data = b""
        self.memory[: 16 + len(data)] = struct.pack("<qq", number, len(data)) + data

    def get(self) -> tuple[int, Call | None]:
        number, size = struct.unpack("<qq", self.memory[:16])
        return number, pickle.loads(self.memory[16 : 16 + size]) if size else None


def work(library: Library, task: Task, note: Note, send: Callable[[object], None]) -> None:
    """In the child."""
    library.start_child()

    def perform(number: int, call: Call) -> Outcome | None:
        if number in task.skip:
            return None
        note.put(number, call)
        signal.setitimer(signal.ITIMER_PROF, task.seconds)  # of CPU time: others may need the CPU
        signal.setitimer(signal.ITIMER_REAL, 3 * task.seconds)
        outcome = library.perform(call, task.signature)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if outcome is not None:
            send((number, outcome))
        return outcome

    if task.what == "search":
        send(search(task.signature, task.seed, perform))
        return
    for number in range(task.first, task.last):
        cases = task.what == "cases"
        call = case(task.signature, task.pool, task.seed, number) if cases else task.pool[number]
        perform(number, call)


def child(library: Library, task: Task, note: Note, pipe: int, text: int) -> None:
    try:
        os.dup2(text, 1)  # the zygote's answers go there
        os.dup2(text, 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * mmap.PAGESIZE + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        with os.fdopen(pipe, "wb") as file:

            def send(value: object) -> None:
                pickle.dump(value, file)
                file.flush()

            work(library, task, note, send)
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(99)
    os._exit(0)


def answer(library: Library, task: Task) -> Answer:
    note = Note()
    reading, writing = os.pipe()
    text = os.memfd_create("stderr")
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        child(library, task, note, writing, text)
    os.close(writing)
    outcomes, found = {}, []
    with os.fdopen(reading, "rb") as file:
        while True:
            try:
                value = pickle.load(file)
            except (EOFError, pickle.UnpicklingError):  # the child ended, perhaps within a record
                break
            if isinstance(value, list):
                found = value
            else:
                outcomes[value[0]] = value[1]
    _, status = os.waitpid(pid, 0)
    number, call = note.get()
    said = os.pread(text, 1 << 16, max(0, os.fstat(text).st_size - (1 << 14))).decode(
        errors="replace"
    )
    os.close(text)
    note.memory.close()
    return Answer(outcomes, found, status, number, call, said.strip())


def main() -> None:
    library = Library(Path(sys.argv[1]))
    warm = sys.argv[2]  # a function: its first call loads torch
    if warm:
        library.load(warm)
    reader, writer = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    while True:
        try:
            task = pickle.load(reader)
        except EOFError:
            return
        pickle.dump(answer(library, task), writer)
        writer.flush()
