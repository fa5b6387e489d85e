# SPDX-License-Identifier: Apache-2.0
"""A shared library with the aclnn C interface, in a child process: it may crash or hang there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from ..layouts import OF_CASES, place, root
from ..reference import Array, evaluate, numpy_dtype
from ..settings import home
from ..table import OPS
from .cases import MISTAKES, Case
from .provider import BadProvider, Outcome

WORKER = Path(__file__).with_name("worker.py")
ACL_DTYPES = {"FLOAT": 0, "FLOAT16": 1, "DOUBLE": 11, "BFLOAT16": 27}
PATTERN = 0xA5  # what outputs hold before: an element that nobody writes shows
START = 60.0  # seconds that loading a library may take


class Died(Exception):
    """The child is no more, or no longer answers."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind


class LibraryProvider:
    """Starts the child when it is needed, and again after a crash or a hang."""

    def __init__(self, name: str, path: str, timeout: float, variables: Mapping[str, str]) -> None:
        self.name = name
        self._path, self._timeout, self._variables = path, timeout, dict(variables)
        self._child: subprocess.Popen[bytes] | None = None
        self._step = ""
        self._start()
        self._send({"has": [op.name for op in OPS], "sizes": []}, [])
        self._has: dict[str, bool] = self._receive(START)["has"]
        if not any(self._has.values()):
            self.close()
            raise BadProvider(f"{name} must have an operator of openaclnn, but has none of them")

    def missing(self, case: Case) -> str:
        return "" if self._has[case.op.name] else f"the library has no {case.op.name}"

    @property
    def fingerprint(self) -> int:
        """Of the library's file: results of another build are not this one's."""
        return zlib.crc32(Path(self._path).read_bytes())

    # ---- a case ----

    def run(self, case: Case, inputs: Sequence[Array]) -> Outcome:
        request = _Request(case, inputs)
        try:
            if self._child is None:
                self._start()
            self._send(request.message, request.data)
            answer = self._receive(self._timeout)
            parts = [self._bytes() if size else b"" for size in answer["sizes"]]
        except Died as died:
            return Outcome(None, died.kind, str(died))
        due = MISTAKES.get(case.mistake, 0)
        status, step = answer["status"], answer["step"]
        if status != due:
            message = f": {answer['message']}" if answer.get("message") else ""
            where = step if status else "both phases"
            text = f"{where} must return {due}, but returned {status}{message}"
            return Outcome(None, "status", text)
        return Outcome((), "", "") if due else request.outcome(answer, parts)

    # ---- the child ----

    def _start(self) -> None:
        there, mine = os.pipe(), os.pipe()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # _forget closes it
        library = [str(home() / "lib64" / f"lib{n}.so") for n in ("ascendcl", "nnopbase")]
        command = [sys.executable, "-I", str(WORKER), str(there[0]), str(mine[1])]
        self._child = subprocess.Popen(
            [*command, self._path, *library],
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
            raise BadProvider(f"{self.name} must be a library that loads, but {died}") from None
        if "broken" in found:
            self.close()
            raise BadProvider(f"{self.name} must be a library that loads, but: {found['broken']}")

    def _send(self, message: Mapping[str, Any], data: Sequence[bytes]) -> None:
        self._step = "the beginning"
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
            if set(answer) != {"step"}:
                return answer
            self._step = answer["step"]

    def _ended(self) -> Died:
        assert self._child is not None
        status = self._child.wait()
        self._errors.seek(0)
        last = self._errors.read()[-2000:].decode(errors="replace").strip().splitlines()
        output = f"; it wrote: {last[-1]}" if last else ""
        how = f"exit status {status}"
        if status < 0:
            how = signal.Signals(-status).name
        self._forget()
        return Died("crashed", f"the process ended in {self._step} with {how}{output}")

    def _hung(self, timeout: float) -> Died:
        step = self._step
        self.close()
        return Died("hung", f"{step} did not end within {timeout:g} seconds")

    def _forget(self) -> None:
        self._child = None
        for end in (self._sink, self._source, self._errors):
            end.close()

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._forget()


class _Request:
    """A case as the worker takes it, and its answer as arrays."""

    def __init__(self, case: Case, inputs: Sequence[Array]) -> None:
        self.case = case
        self.views: dict[str, Array] = {}
        move = OF_CASES[case.layout]
        given = {p.name: x for p, x in zip(case.op.inputs_, inputs, strict=True)}
        shapes = [x.shape for x in evaluate(case.op, inputs, case.attributes)]
        made = zip(case.op.outputs, shapes, case.output_dtypes, strict=True)
        outputs = {p.name: (shape, dtype) for p, shape, dtype in made}
        first = next(p for p in case.op.tensors)
        parameters: list[dict[str, Any]] = []
        self.data: list[bytes] = []
        self.names: list[str] = []
        for p in case.op.parameters:
            fields: dict[str, Any] = {"kind": p.kind}
            if p.role == "attribute":
                fields["value"] = _plain(case.attributes[p.python_name])
            elif case.mistake == "null input" and p is first:
                fields["null"] = True
            else:
                if p.name in given:
                    view = move(given[p.name])
                else:
                    shape, dtype = outputs[p.name]
                    longer = (*shape, 2) if case.mistake == "wrong shape" else shape
                    view = move(np.zeros(longer, numpy_dtype(dtype)))
                    root(view).reshape(-1).view(np.uint8)[...] = PATTERN
                fields |= _tensor(view)
                self.views[p.name] = view
                self.names.append(p.name)
                self.data.append(root(view).tobytes())
            parameters.append(fields)
        written = {p.name for p in case.op.outputs}
        self.message = {
            "function": case.op.name,
            "parameters": parameters,
            "sizes": [len(part) for part in self.data],
            "outputs": [i for i, name in enumerate(self.names) if name in written],
            "repeat": 2,
        }

    def outcome(self, answer: Mapping[str, Any], parts: Sequence[bytes]) -> Outcome:
        """Results, or what was changed although it is no result."""
        results: dict[str, Array] = {}
        written = {p.name for p in self.case.op.outputs}
        for name, before, after, kept in zip(
            self.names, self.data, parts, answer["guards"], strict=True
        ):
            if not kept:
                return Outcome(None, "damaged", f"wrote outside the memory of {name}")
            if name not in written:
                if before != after:
                    return Outcome(None, "damaged", f"wrote into {name}, which is an input")
                continue
            view, memory = self.views[name], root(self.views[name])
            now = np.frombuffer(bytearray(after), memory.dtype)
            offset, strides = place(view)
            taken = np.lib.stride_tricks.as_strided(
                now[offset:], view.shape, [s * view.dtype.itemsize for s in strides]
            )
            results[name] = taken.copy()
            taken[...] = view
            if now.tobytes() != before:
                return Outcome(None, "damaged", f"wrote between the elements of {name}")
        if answer.get("unsteady"):
            return Outcome(None, "unsteady", "two runs of the same call gave different bits")
        return Outcome(tuple(results[p.name] for p in self.case.op.outputs))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _tensor(view: Array) -> dict[str, Any]:
    offset, strides = place(view)
    return {
        "null": False,
        "shape": list(view.shape),
        "strides": list(strides),
        "offset": offset,
        "storage": root(view).size,
        "dtype": ACL_DTYPES[_name(view)],
    }


def _name(view: Array) -> str:
    from ..reference import dtype_name

    return dtype_name(view.dtype)
