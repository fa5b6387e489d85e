# SPDX-License-Identifier: Apache-2.0
"""The child process that calls a library with the aclnn C interface. It is run by the path of its
folder and needs nothing but the standard library, so that no code of openaclnn stands beside the
library that is looked at, except where that leaves out the runtime calls.

    python worker IN OUT LIBRARY [FALLBACK ...]

IN and OUT are file descriptors of pipes. A request is JSON and the memory of the tensors; before
each step that may crash or hang the step is reported, so that the parent knows where it was.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .arguments import C_TYPES, Arguments
    from .library import Library, Refused
    from .memory import Arenas, Memory
else:  # no package: its folder is the first of sys.path
    from arguments import C_TYPES, Arguments
    from library import Library, Refused
    from memory import Arenas, Memory

UNTOUCHED = 0xA5A5A5A5A5A5A5A5  # what workspaceSize and executor hold before a call to be refused


def call(
    library: Library,
    arenas: Arenas,
    message: dict[str, Any],
    data: list[bytes],
    run: int,
    report_step: Any,
) -> dict[str, Any]:
    """Both phases once. The memory of each tensor afterwards is under "memory"."""
    fenced = set(message["fenced"])
    memories: list[Memory] = []
    arguments = Arguments(library, memories, run > 0)
    try:
        report_step("making tensors")
        for i, part in enumerate(data):
            memories.append(arenas.memory(i, part, run, i in fenced))
        values = [arguments.value(p) for p in message["parameters"]]
        _phases(library, arenas, message, values, run, report_step)
        found = [memory.read() for memory in memories]
        return {"memory": [part for part, _ in found], "guards": [kept for _, kept in found]}
    finally:
        arguments.destroy()


class NotLeftAlone(Refused):
    """A refusal that wrote what it must not write."""

    def __init__(self, status: int, written: list[str]) -> None:
        super().__init__("phase 1", status)
        self.written = written


def _phases(
    library: Library,
    arenas: Arenas,
    message: dict[str, Any],
    values: list[Any],
    run: int,
    report_step: Any,
) -> None:
    before = UNTOUCHED if message["refuse"] else 0
    size, executor = ctypes.c_uint64(before), ctypes.c_void_p(before)
    first = library(message["function"] + "GetWorkspaceSize")
    first.argtypes = [C_TYPES[p["kind"]] for p in message["parameters"]] + [ctypes.c_void_p] * 2
    library.message()  # clears what earlier calls left
    report_step("phase 1")
    status = first(*values, ctypes.byref(size), ctypes.byref(executor))
    changed = {"workspaceSize": size.value != before, "executor": (executor.value or 0) != before}
    if status != 0:
        raise NotLeftAlone(status, [name for name, is_new in changed.items() if is_new])
    if message["refuse"]:  # it was not
        size.value *= changed["workspaceSize"]
        executor.value = executor.value if changed["executor"] else None
    workspace = None
    if size.value:
        workspace = arenas.memory(-1, bytes(size.value), run, -1 in message["fenced"])
    second = library(message["function"])
    second.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]
    where = workspace.address if workspace else None
    report_step("phase 2")
    library.check("phase 2", second(where, size.value, executor, library.stream))
    report_step("aclrtSynchronizeStream")
    done = library("aclrtSynchronizeStream")(library.stream)
    library.check("aclrtSynchronizeStream", done)
    if workspace is not None and not workspace.read()[1]:
        raise Refused("phase 2 wrote outside its workspace", -1)


def serve(source: Connection, sink: Connection, library: Library) -> None:
    """Requests until the parent closes the pipe."""

    arenas, run = Arenas(library), 0

    def report_step(step: str) -> None:
        sink.send_bytes(json.dumps({"step": step, "run": run}).encode())

    while True:
        try:
            message = json.loads(source.recv_bytes())
        except EOFError:
            return
        data = [source.recv_bytes() if size else b"" for size in message["sizes"]]
        if "has" in message:
            has = library.operators(message["has"])
            reply = {"has": has, "halves": library.halves(n for n in has if has[n])}
            sink.send_bytes(json.dumps(reply).encode())
            continue
        answer: dict[str, Any] = {"status": 0, "step": "done"}
        found: dict[str, Any] = {"memory": []}
        try:
            for run in range(message["repeat"]):
                before, found = found, call(library, arenas, message, data, run, report_step)
                if run and not answer.get("unsteady"):
                    one, other = before["memory"], found["memory"]
                    answer["unsteady"] = [i for i in message["outputs"] if one[i] != other[i]]
                if not all(found["guards"]):
                    break
            answer["guards"] = found["guards"]
        except Refused as refused:
            text = library.message() if refused.step != "there is no aclGetRecentErrMsg" else None
            answer = {"status": refused.status, "step": refused.step, "done": True}
            answer["message"] = (text or b"").decode(errors="replace").strip()
            answer["written"] = getattr(refused, "written", [])
            found = {"memory": []}
        answer["sizes"] = [len(part) for part in found["memory"]]
        answer["done"] = True
        sink.send_bytes(json.dumps(answer).encode())
        for part in found["memory"]:
            if part:
                sink.send_bytes(part)


def main() -> int:
    source, sink = Connection(int(sys.argv[1])), Connection(int(sys.argv[2]))
    os.set_inheritable(source.fileno(), False)
    try:
        library = Library(sys.argv[3], sys.argv[4:])
    except (OSError, Refused) as error:
        sink.send_bytes(json.dumps({"broken": str(error)}).encode())
        return 1
    sink.send_bytes(json.dumps({"ready": True}).encode())
    serve(source, sink, library)
    return 0


if __name__ == "__main__":
    sys.exit(main())
