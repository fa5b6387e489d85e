# SPDX-License-Identifier: Apache-2.0
"""A child process of `openaclnn verify`, which may crash or hang: requests to it, its answers."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from .provider import BadProvider, Outcome
from .request import WORKSPACE, Packed

WORKER = Path(__file__).with_name("worker")
HEAD = re.compile(r"^\[PID:.*?\(E\w+\): ")  # of a message of aclGetRecentErrMsg
START = 60.0  # seconds that loading a library may take
HEAP = ("malloc", "free()", "corrupt", "munmap_chunk")  # in what glibc says of a damaged heap


class Died(Exception):
    """The child ended or hangs: in which step, in which run of the call, by which signal."""

    def __init__(self, kind: str, sentence: str, step: str, run: int, signal: int = 0) -> None:
        super().__init__(sentence)
        self.kind, self.step, self.run, self.signal = kind, step, run, signal


def message_of(answer: Mapping[str, Any]) -> str:
    """The sentence of a refusal, without process and time."""
    return HEAD.sub("", answer.get("message", ""))


class Child:
    """Is started by the first request, and again after a crash or a hang."""

    def __init__(
        self, name: str, words: Sequence[str], timeout: float, variables: Mapping[str, str]
    ) -> None:
        """`words`: options of Python, the program and what follows the two pipes; "" stands for
        them."""
        self.name = name
        self._words, self._timeout, self._variables = list(words), timeout, dict(variables)
        self._child: subprocess.Popen[bytes] | None = None
        self._step, self._run = "", 0

    def started(self) -> dict[str, Any]:
        """Starts it, and what it says of itself."""
        self._start()
        return self._said

    def tell(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a message without tensors."""
        self._send(message, [])
        return self._receive(START)

    def ask(
        self, message: Mapping[str, Any], data: Sequence[bytes]
    ) -> tuple[dict[str, Any], list[bytes]]:
        """The answer of the child, and the memory of the tensors afterwards."""
        if self._child is None:
            self._start()
        self._send(message, data)
        answer = self._receive(self._timeout)
        return answer, [self._bytes() if size else b"" for size in answer["sizes"]]

    def beside(self, request: Packed, died: Died) -> Outcome | None:
        """Whether a call that crashed does so only where pages beside the memory of its tensors
        are fenced off, and beside which of them: it is made again with fewer fences."""
        if died.signal not in (signal.SIGSEGV, signal.SIGBUS):
            return None

        def crash(fenced: Sequence[int]) -> Died | None:
            try:
                self.ask(request.fenced(fenced), request.data)
            except Died as again:
                return again
            return None

        if crash([]) is not None:
            return None
        for which, name in enumerate([*request.names, WORKSPACE]):
            place = which if which < len(request.names) else -1
            if (again := crash([place])) is not None:
                phase = again.step if again.step in ("phase 1", "the call") else "phase 2"
                where = "past the end" if again.run else "before the start"
                if again.signal == signal.SIGABRT:
                    return None  # glibc found its heap damaged: not where the memory of a tensor is
                how = signal.Signals(again.signal).name if again.signal else "a hang"
                of = request.text_of(name)
                text = f"{phase} reads or writes memory {where} of {of}: where that memory"
                return Outcome(None, "outside", f"{text} cannot be accessed, it ends with {how}")
        return None

    def _start(self) -> None:
        there, mine = os.pipe(), os.pipe()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # _forget closes it
        at = self._words.index("")
        pipes = [str(there[0]), str(mine[1])]
        self._child = subprocess.Popen(
            [sys.executable, *self._words[:at], *pipes, *self._words[at + 1 :]],
            pass_fds=(there[0], mine[1]),
            env=self._variables,
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=self._errors,
        )
        os.close(there[0])
        os.close(mine[1])
        self._sink, self._source = Connection(there[1], readable=False), Connection(mine[0])
        try:
            found = self._receive(START)
        except Died as died:
            raise BadProvider(f"{self.name} cannot be loaded: {died}") from None
        if "broken" in found:
            self.close()
            raise BadProvider(f"{self.name} cannot be loaded: {found['broken']}")
        self._said = found

    def _send(self, message: Mapping[str, Any], data: Sequence[bytes]) -> None:
        self._step, self._run = "the beginning", 0
        try:
            self._sink.send_bytes(json.dumps(message).encode())
            for part in data:
                if part:
                    self._sink.send_bytes(part)
        except OSError:
            raise self._ended() from None

    def _bytes(self) -> bytes:
        try:
            if not self._source.poll(self._timeout):
                raise self._hung(self._timeout)
            return self._source.recv_bytes()
        except (EOFError, OSError):
            raise self._ended() from None

    def _receive(self, timeout: float) -> dict[str, Any]:
        """The answer; the steps before it are remembered."""
        while True:
            try:
                if not self._source.poll(timeout):
                    raise self._hung(timeout)
                answer: dict[str, Any] = json.loads(self._source.recv_bytes())
            except (EOFError, OSError):
                raise self._ended() from None
            if set(answer) != {"step", "run"}:
                return answer
            self._step, self._run = answer["step"], answer["run"]

    def _ended(self) -> Died:
        assert self._child is not None
        status = self._child.wait()
        self._errors.seek(0)
        last = self._errors.read()[-2000:].decode(errors="replace").strip().splitlines()
        output = f"; it wrote: {last[-1]}" if last else ""
        how = f"exit status {status}"
        if status < 0:
            how = signal.Signals(-status).name
        if -status == signal.SIGABRT and any(word in output for word in HEAP):
            output += ": the call wrote outside of memory that it allocated itself"
        self._forget()
        text = f"the process ended in {self._step} with {how}{output}"
        return Died("crashed", text, self._step, self._run, max(0, -status))

    def _hung(self, timeout: float) -> Died:
        step = self._step
        self.close()
        return Died("hung", f"{step} did not end within {timeout:g} seconds", step, self._run)

    def _forget(self) -> None:
        self._child = None
        for end in (self._sink, self._source, self._errors):
            end.close()

    def output(self) -> str:
        """Ends the child as it would end by itself, which writes its buffers, and what it wrote."""
        if self._child is None:
            return ""
        self._sink.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(self._timeout)
        self._child.kill()
        self._child.wait()
        self._errors.seek(0)
        text: str = self._errors.read().decode(errors="replace").strip()
        self._forget()
        return text

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._forget()
