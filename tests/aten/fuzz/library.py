# SPDX-License-Identifier: Apache-2.0
"""The C libraries through ctypes: makes the arguments of a call, runs both phases, looks at what
they left."""

from __future__ import annotations

import ctypes
import os
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import memory
from .values import DTYPES, Bad, Call, List, S, Same, T

C_TYPES = {
    "int": ctypes.c_int64, "int32": ctypes.c_int32, "byte": ctypes.c_int8, "bool": ctypes.c_bool,
    "double": ctypes.c_double, "float": ctypes.c_float, "dtype": ctypes.c_int32,
}  # fmt: skip
# More elements than a call may have in phase 2: it would be right to work for minutes.
MOST_ELEMENTS = 1 << 21


@dataclass
class Outcome:
    plan: int  # status of phase 1
    run: int | None  # of phase 2, None: it was not called
    sentence: str = ""  # of the refusal
    digest: int = 0  # of all memory, if accepted
    faults: list[tuple[str, str]] = field(default_factory=list)  # kind, what

    @property
    def accepted(self) -> bool:
        return self.plan == 0 and self.run == 0


@dataclass(frozen=True)
class Signature:
    """What the fuzzer needs to know of a function: a row, or what a test made up."""

    name: str
    parameters: tuple[Any, ...]  # name, kind, written; perhaps shape and bounds


class Library:
    def __init__(self, folder: Path) -> None:
        names = ("libascendcl.so", "libnnopbase.so", "libopapi.so")
        self.acl, self.base, self.ops = (ctypes.CDLL(str(folder / name)) for name in names)
        self.acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
        for name in ("Tensor", "Scalar", "IntArray", "BoolArray", "FloatArray", "TensorList",
                     "ScalarList"):  # fmt: skip
            getattr(self.base, f"aclCreate{name}").restype = ctypes.c_void_p
            getattr(self.base, f"aclDestroy{name}").argtypes = [ctypes.c_void_p]
        self.arena = memory.Arena()
        self.size, self.executor = ctypes.c_uint64(), ctypes.c_void_p()
        self._size, self._executor = ctypes.byref(self.size), ctypes.byref(self.executor)
        self.stderr = 0  # bytes that were seen

    def message(self) -> str:
        """The newest sentence, without its date."""
        raw = self.acl.aclGetRecentErrMsg()
        line = raw.decode("utf-8", "replace").split("\n", 1)[0] if raw else ""
        return re.sub(r"^\[PID.*?\] \S+ ", "", line)

    # ---- arguments ----

    def begin(self) -> None:
        self.arena.reset()
        self.handles: list[tuple[str, int]] = []  # what must be destroyed
        self.regions: list[memory.Region] = []
        self.of: dict[int, list[memory.Region]] = {}

    def _keep(self, kind: str, handle: int | None) -> int | None:
        if handle:
            self.handles.append((kind, handle))
        return handle

    def tensor(self, t: T) -> int | None:
        rank = len(t.shape)
        numbers = ctypes.c_int64 * max(rank, 1)
        dims = numbers(*t.shape)
        if t.strides is None and not t.offset:
            strides, storage, storage_rank = None, dims, rank
        else:
            strides = numbers(*t.steps())
            storage, storage_rank = (ctypes.c_int64 * 1)(max(t.extent()[1], 0)), 1
        address = None
        if not t.no_memory:
            region = memory.Region(t, self.arena)
            self.regions.append(region)
            address = ctypes.c_void_p(region.address)
        handle = self.base.aclCreateTensor(
            dims, ctypes.c_uint64(rank), t.dtype, strides, ctypes.c_int64(t.offset), 2, storage,
            ctypes.c_uint64(storage_rank), address,
        )  # fmt: skip
        if not handle and not t.no_memory:  # the function gets NULL
            self.regions.pop()
        return self._keep("Tensor", handle)

    def scalar(self, s: S) -> int | None:
        name = DTYPES.get(s.dtype, ("", 8))[0]
        if name in ("string", "undefined", ""):
            data = bytes(16)
        else:
            data = memory.pattern(s.dtype, [s.value])
        made = self.base.aclCreateScalar(ctypes.create_string_buffer(data, 16), s.dtype)
        return self._keep("Scalar", made)

    def list(self, value: List) -> int | None:
        n = len(value.items)
        if value.kind in ("tensors", "scalars"):
            one = self.tensor if value.kind == "tensors" else self.scalar
            items = [None if x is None else one(x) for x in value.items]
            owned = set(items)  # by the list
            self.handles = [h for h in self.handles if h[1] not in owned]
            name = "TensorList" if value.kind == "tensors" else "ScalarList"
            array = (ctypes.c_void_p * max(n, 1))(*items)
        else:
            name = {"ints": "IntArray", "bools": "BoolArray", "floats": "FloatArray"}[value.kind]
            one = {"ints": ctypes.c_int64, "bools": ctypes.c_bool, "floats": ctypes.c_float}
            array = (one[value.kind] * max(n, 1))(*value.items)
        made = getattr(self.base, f"aclCreate{name}")(array, ctypes.c_uint64(n))
        return self._keep(name, made)

    def bad(self, value: Bad) -> int | None:
        samples = {"tensor": T((2, 3)), "scalar": S(), "tensors": List("tensors", (T((2,)),)),
                   "scalars": List("scalars", (S(),)), "ints": List("ints", (1, 1)),
                   "bools": List("bools", (True,)), "floats": List("floats", (1.0,))}  # fmt: skip
        before = len(self.handles)
        handle = self.handle(samples[value.kind if value.what == "gone" else value.what])
        if value.what == "gone":
            for kind, one in self.handles[before:]:
                getattr(self.base, f"aclDestroy{kind}")(one)
            del self.handles[before:]
        return handle

    def handle(self, value: Any) -> int | None:
        if value is None:
            return None
        if isinstance(value, T):
            return self.tensor(value)
        if isinstance(value, S):
            return self.scalar(value)
        return self.bad(value) if isinstance(value, Bad) else self.list(value)

    def arguments(self, call: Call, kinds: list[str]) -> list[Any]:
        made: list[Any] = [None] * len(kinds)
        order = sorted(range(len(kinds)), key=lambda i: isinstance(call.args[i], (Bad, Same)))
        for i in order:
            value, kind = call.args[i], kinds[i]
            before = len(self.regions)
            if kind in C_TYPES:
                made[i] = _number(C_TYPES[kind], value)
            elif kind == "text":
                made[i] = None if value is None else ctypes.c_char_p(value.value.encode())
            elif isinstance(value, Same):
                made[i] = made[value.index]
                self.of[i] = self.of.get(value.index, [])
                continue
            else:
                made[i] = ctypes.c_void_p(self.handle(value))
            self.of[i] = self.regions[before:]
        return made

    # ---- the call ----

    def perform(self, call: Call, signature: Signature) -> Outcome | None:
        """None: the call cannot be made."""
        kinds = [p.kind for p in signature.parameters]
        self.begin()
        try:
            made = self.arguments(call, kinds)
            self.message()  # of tensors that cannot be made
            outcome = self._phases(call, made)
            self._look(call, signature, outcome)
        except memory.TooLarge:
            return None
        finally:
            for kind, handle in reversed(self.handles):
                getattr(self.base, f"aclDestroy{kind}")(handle)
        return outcome

    def _phases(self, call: Call, made: list[Any]) -> Outcome:
        self.executor.value = None
        self.size.value = 0
        plan = getattr(self.ops, call.name + "GetWorkspaceSize")
        status = plan(*made, self._size, self._executor)
        if status != 0:
            return Outcome(status, None, self.message())
        tensors = [t for a in call.args for t in (a.items if isinstance(a, List) else (a,))]
        if any(isinstance(t, T) and t.count > MOST_ELEMENTS for t in tensors):
            self.base.aclDestroyAclOpExecutor(self.executor)
            return Outcome(0, None)
        workspace = ctypes.create_string_buffer(self.size.value) if self.size.value else None
        run = getattr(self.ops, call.name)
        status = run(workspace, self.size, self.executor, None)
        if status != 0:
            return Outcome(0, status, self.message())
        return Outcome(0, 0)

    def _look(self, call: Call, signature: Signature, outcome: Outcome) -> None:
        faults = outcome.faults
        if (size := os.fstat(2).st_size) != self.stderr:
            text = os.pread(2, size - self.stderr, self.stderr).decode("utf-8", "replace")
            self.stderr = size
            lines = [line for line in text.splitlines() if not line.startswith("[W")]  # torch's
            if said := "\n".join(lines).strip():
                faults.append(("stderr", said[:300]))
        accepted = outcome.accepted
        written = {id(r) for i, p in enumerate(signature.parameters) if p.written
                   for r in self.of.get(i, ())}  # fmt: skip
        shared = any(isinstance(a, Same) for a in call.args)
        digest = 0
        for i, p in enumerate(signature.parameters):
            for region in self.of.get(i, ()):
                now = region.now()
                digest = zlib.crc32(now, digest)
                if id(region) not in written:
                    if now != region.before:
                        faults.append(("input changed", p.name))
                elif region.stray(now):
                    faults.append(("stray write", f"{p.name}: memory beside its elements changed"))
                elif accepted and not shared and region.is_untouched(now):
                    faults.append(("untouched", p.name))
        if accepted:
            outcome.digest = digest

    def load(self, name: str) -> None:
        """What the first call of the process loads, by one of a tensor and out that is refused."""
        getattr(self.ops, name + "GetWorkspaceSize")(None, None, self._size, self._executor)

    def start_child(self) -> None:
        if fill := os.environ.get("ATEN_FUZZ_FILL"):  # fence.c is loaded
            ctypes.CDLL(None).fence_start(int(fill))
        self.acl.aclrtSetDevice(0)
        self.message()
        self.stderr = os.fstat(2).st_size


def _number(kind: Any, value: Any) -> Any:
    if kind in (ctypes.c_double, ctypes.c_float):
        return kind(float(value))
    return kind(int(value))
