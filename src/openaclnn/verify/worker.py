# SPDX-License-Identifier: Apache-2.0
"""The child process that calls a library with the aclnn C interface. It is run by its path and
needs nothing but the standard library, so that no code of openaclnn stands beside the library that
is looked at, except where that leaves out the runtime calls.

    python worker.py IN OUT LIBRARY [FALLBACK ...]

IN and OUT are file descriptors of pipes. A request is JSON and the memory of the tensors; before
each step that may crash or hang the step is reported, so that the parent knows where it was.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from multiprocessing.connection import Connection
from typing import Any

GUARD = 64  # bytes around every tensor, which nobody may change
PATTERN = 0xA5
TO_DEVICE, TO_HOST = 1, 2
FORMAT_ND = 2
ACL_DOUBLE = 11
C_TYPES: dict[str, Any] = {
    "tensor": ctypes.c_void_p,
    "scalar": ctypes.c_void_p,
    "double": ctypes.c_double,
    "int64": ctypes.c_int64,
    "bool": ctypes.c_bool,
    "text": ctypes.c_char_p,
}


class Refused(Exception):
    """A status that is not 0."""

    def __init__(self, step: str, status: int) -> None:
        super().__init__(step)
        self.step, self.status = step, status


class _DlInfo(ctypes.Structure):
    """What dladdr finds out about an address."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


class Library:
    """The symbols of the library; those that it lacks come from the fallbacks."""

    def __init__(self, path: str, fallbacks: list[str]) -> None:
        self._path, self._fallbacks = path, fallbacks
        self._others: list[ctypes.CDLL] = []
        try:
            self._own = ctypes.CDLL(path)
        except OSError as error:
            if "undefined symbol" not in str(error):
                raise
            self._others = [ctypes.CDLL(file, ctypes.RTLD_GLOBAL) for file in fallbacks]
            self._own = ctypes.CDLL(path)
        self.address = self("aclCreateTensor", ctypes.c_void_p)
        self.scalar = self("aclCreateScalar", ctypes.c_void_p)
        self.message = self("aclGetRecentErrMsg", ctypes.c_char_p)
        self._stream = ctypes.c_void_p()
        self("aclInit")(None)  # may have been called by the library itself
        self.check("aclrtSetDevice", self("aclrtSetDevice")(0))
        self.check("aclrtCreateStream", self("aclrtCreateStream")(ctypes.byref(self._stream)))

    def __call__(self, name: str, result: Any = ctypes.c_int) -> Any:
        if not self.has(name) and not self._others:
            self._others = [ctypes.CDLL(file) for file in self._fallbacks]
        for library in (self._own, *self._others):
            if hasattr(library, name):
                function = library[name]
                function.restype = result
                return function
        raise Refused(f"there is no {name}", -1)

    def has(self, name: str) -> bool:
        return hasattr(self._own, name)

    def operators(self, names: list[str]) -> dict[str, bool]:
        """Those that the file defines itself, not what it is linked against; where it defines
        none, as a library that only stands for others, those of its dependencies."""
        found = {name: self.has(f"{name}GetWorkspaceSize") for name in names}
        own = {n: has and self._defines(f"{n}GetWorkspaceSize") for n, has in found.items()}
        return own if any(own.values()) else found

    def _defines(self, name: str) -> bool:
        where = _DlInfo()
        address = ctypes.cast(self._own[name], ctypes.c_void_p)
        if not ctypes.CDLL(None).dladdr(address, ctypes.byref(where)) or not where.file:
            return True
        return os.path.realpath(os.fsdecode(where.file)) == os.path.realpath(self._path)

    @property
    def stream(self) -> ctypes.c_void_p:
        return self._stream

    def check(self, step: str, status: int) -> None:
        if status != 0:
            raise Refused(step, status)


class Memory:
    """Device memory with a guard on either side."""

    def __init__(self, library: Library, given: bytes) -> None:
        self.library, self.size = library, len(given)
        self.base = ctypes.c_void_p()
        whole = self.size + 2 * GUARD
        library.check(
            "aclrtMalloc",
            library("aclrtMalloc")(ctypes.byref(self.base), ctypes.c_size_t(whole), 0),
        )
        edge = bytes([PATTERN]) * GUARD
        self._copy(edge + given + edge, TO_DEVICE)

    @property
    def address(self) -> int:
        return (self.base.value or 0) + GUARD

    def _copy(self, host: Any, kind: int) -> None:
        size = ctypes.c_size_t(self.size + 2 * GUARD)
        there = (self.base, size, host) if kind == TO_DEVICE else (host, size, self.base)
        copied = self.library("aclrtMemcpy")(*there, size, kind)
        self.library.check("aclrtMemcpy", copied)

    def read(self) -> tuple[bytes, bool]:
        """What is there now, and whether the guards are as they were."""
        host = ctypes.create_string_buffer(self.size + 2 * GUARD)
        self._copy(host, TO_HOST)
        edges = host.raw[:GUARD] + host.raw[GUARD + self.size :]
        return host.raw[GUARD : GUARD + self.size], edges == bytes([PATTERN]) * (2 * GUARD)

    def free(self) -> None:
        self.library("aclrtFree")(self.base)


def int64s(values: list[int]) -> Any:
    return (ctypes.c_int64 * len(values))(*values)


def tensor(library: Library, message: dict[str, Any], memory: Memory) -> int | None:
    shape, strides = int64s(message["shape"]), int64s(message["strides"])
    storage = int64s([message["storage"]])
    rank = ctypes.c_uint64(len(message["shape"]))
    handle: int | None = library.address(
        shape, rank, message["dtype"], strides, ctypes.c_int64(message["offset"]), FORMAT_ND,
        storage, ctypes.c_uint64(1), ctypes.c_void_p(memory.address),
    )  # fmt: skip
    if not handle:
        raise Refused("aclCreateTensor", -1)
    return handle


def call(
    library: Library, message: dict[str, Any], data: list[bytes], report_step: Any
) -> dict[str, Any]:
    """Both phases once. The memory of each tensor afterwards is under "memory"."""
    memories = [Memory(library, part) for part in data]
    handles: list[tuple[str, int]] = []
    values: list[Any] = []
    try:
        report_step("making tensors")
        which = iter(memories)
        for p in message["parameters"]:
            if p["kind"] == "tensor" and not p["null"]:
                values.append(tensor(library, p, next(which)))
                handles.append(("aclDestroyTensor", values[-1]))
            elif p["kind"] == "scalar":
                number = ctypes.c_double(p["value"])
                values.append(library.scalar(ctypes.byref(number), ACL_DOUBLE))
                handles.append(("aclDestroyScalar", values[-1]))
            elif p["kind"] == "text" and p["value"] is not None:
                values.append(p["value"].encode())
            else:
                values.append(None if p["kind"] == "tensor" else p["value"])
        _phases(library, message, values, report_step)
        found = [memory.read() for memory in memories]
        return {"memory": [part for part, _ in found], "guards": [kept for _, kept in found]}
    finally:
        for destroy, handle in handles:
            library(destroy)(ctypes.c_void_p(handle))
        for memory in memories:
            memory.free()


def _phases(library: Library, message: dict[str, Any], values: list[Any], report_step: Any) -> None:
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    first = library(message["function"] + "GetWorkspaceSize")
    first.argtypes = [C_TYPES[p["kind"]] for p in message["parameters"]] + [ctypes.c_void_p] * 2
    report_step("phase 1")
    library.check("phase 1", first(*values, ctypes.byref(size), ctypes.byref(executor)))
    workspace = Memory(library, bytes(size.value)) if size.value else None
    try:
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
    finally:
        if workspace is not None:
            workspace.free()


def serve(source: Connection, sink: Connection, library: Library) -> None:
    """Requests until the parent closes the pipe."""

    def report_step(step: str) -> None:
        sink.send_bytes(json.dumps({"step": step}).encode())

    while True:
        try:
            message = json.loads(source.recv_bytes())
        except EOFError:
            return
        data = [source.recv_bytes() if size else b"" for size in message["sizes"]]
        if "has" in message:
            reply = {"has": library.operators(message["has"])}
            sink.send_bytes(json.dumps(reply).encode())
            continue
        answer: dict[str, Any] = {"status": 0, "step": "done"}
        found: dict[str, Any] = {"memory": []}
        try:
            for again in range(message["repeat"]):
                before, found = found, call(library, message, data, report_step)
                outputs = message["outputs"]
                if again and any(before["memory"][i] != found["memory"][i] for i in outputs):
                    answer["unsteady"] = True
            answer["guards"] = found["guards"]
        except Refused as refused:
            text = library.message() if refused.step != "there is no aclGetRecentErrMsg" else None
            answer = {"status": refused.status, "step": refused.step, "done": True}
            answer["message"] = (text or b"").decode(errors="replace").strip()
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
