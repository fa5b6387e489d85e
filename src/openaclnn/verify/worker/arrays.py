# SPDX-License-Identifier: Apache-2.0
"""The child process that calls a Python function. It is run by its path:

    python arrays.py IN OUT FILE FUNCTION

The requests are those of __main__.py; tensors become arrays over memory with fences, torch tensors
over the same memory if the file imports torch or triton, JAX arrays if it imports jax.
"""

from __future__ import annotations

import ctypes
import difflib
import importlib
import importlib.util
import inspect
import json
import mmap
import sys
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .memory import Arenas, Memory
else:  # no package: its folder is the first of sys.path
    from memory import Arenas, Memory

SHOWN = 200  # characters of what an exception says


class Wrong(Exception):
    """What the function returned cannot be judged: kind of the finding and sentence."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind


class HostMemory:
    """The three functions of the runtime that `Arenas` calls, for the memory of this process."""

    def __init__(self) -> None:
        self._maps: dict[int, mmap.mmap] = {}

    def __call__(self, name: str) -> Callable[..., int]:
        found: Callable[..., int] = getattr(self, name)
        return found

    def aclrtMalloc(self, address: Any, size: ctypes.c_size_t, policy: int) -> int:
        made = mmap.mmap(-1, size.value)
        address._obj.value = ctypes.addressof(ctypes.c_char.from_buffer(made))
        self._maps[address._obj.value] = made
        return 0

    def aclrtFree(self, address: ctypes.c_void_p) -> int:
        return 0  # arrays that the function kept may still point there

    def aclrtMemcpy(self, to: Any, room: Any, source: Any, size: Any, kind: int) -> int:
        ctypes.memmove(to, source, size.value)
        return 0

    def check(self, step: str, status: int) -> None:
        assert status == 0, step


def view_of(p: dict[str, Any], address: int) -> Any:
    """The array of a tensor in the memory at this address."""
    if p["dtype"] == "bfloat16":
        importlib.import_module("ml_dtypes")
    kind = np.dtype(p["dtype"])
    size = p["storage"] * kind.itemsize
    if not size:
        return np.empty(p["shape"], kind)
    whole = np.frombuffer((ctypes.c_char * size).from_address(address), kind)
    steps = [s * kind.itemsize for s in p["strides"]]
    return np.lib.stride_tricks.as_strided(whole[p["offset"] :], p["shape"], steps)


def _instead(module: ModuleType, name: str) -> str:
    """The function that was probably meant, or all that a user would name."""
    own = [n for n, f in vars(module).items()
           if inspect.isfunction(f) and f.__module__ == module.__name__]  # fmt: skip
    if meant := difflib.get_close_matches(name, own, 1):
        return f"; did you mean {meant[0]}?"
    public = [n for n in own if not n.startswith("_")] or own
    return f"; there is {', '.join(public) or 'none'}"


class Function:
    """The function under test, and the kind of arrays that it takes."""

    def __init__(self, file: str, name: str) -> None:
        sys.path.insert(0, str(Path(file).parent))
        spec = importlib.util.spec_from_file_location(Path(file).stem, file)
        if spec is None or spec.loader is None:
            raise LookupError("a Python file must end with .py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        if not callable(call := getattr(module, name, None)):
            raise LookupError(f"no function {name}{_instead(module, name)}")
        self.call = call
        libraries = {"torch": "torch", "triton": "torch", "jax": "jax"}
        known = [kind for name, kind in libraries.items() if name in sys.modules]
        self.kind = known[0] if known else "numpy"
        self._library: Any = importlib.import_module(self.kind)
        self._file = file

    def parameters(self) -> list[dict[str, Any]] | None:
        """Name, kind and whether it has a default; None if Python does not know them."""
        try:
            found = inspect.signature(self.call).parameters.values()
        except (TypeError, ValueError):
            return None
        return [
            {"name": p.name, "kind": p.kind.name, "default": p.default is not p.empty}
            for p in found
        ]

    def given(self, x: Any) -> Any:
        if self.kind == "jax":
            return self._library.numpy.asarray(np.array(x))
        if self.kind == "torch":
            if x.dtype.name == "bfloat16":
                return self._library.from_numpy(x.view(np.int16)).view(self._library.bfloat16)
            return self._library.from_numpy(x)
        return x

    def taken(self, y: Any) -> Any:
        """A result as NumPy has it."""
        if self.kind == "torch" and isinstance(y, self._library.Tensor):
            here = y.detach().cpu()
            if here.dtype == self._library.bfloat16:
                import ml_dtypes

                return here.contiguous().view(self._library.int16).numpy().view(ml_dtypes.bfloat16)
            return here.numpy()
        return np.asarray(y)

    def failure(self, error: BaseException) -> str:
        """What was raised, and in which line of the file."""
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__)
                 if f.filename == self._file]  # fmt: skip
        where = f" in line {lines[-1]} of {Path(self._file).name}" if lines else ""
        text = " ".join(str(error).split())[:SHOWN]
        if isinstance(error, AttributeError | TypeError) and self.kind != "numpy":
            text += f"; arguments are arrays of {self.kind}, because the file imports it"
        return f"the function raised {type(error).__name__}{where}: {text}"


def call(function: Function, message: dict[str, Any], memories: list[Memory]) -> None:
    """One call; results that are returned are written into the memory of the outputs."""
    views: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for p in message["parameters"]:
        if p.get("null"):
            values[p["name"]] = None
        elif p["kind"] == "tensor":
            views[p["name"]] = view_of(p, memories[p["memory"]].address)
            values[p["name"]] = function.given(views[p["name"]])
        else:
            values[p["name"]] = p["value"]
    positions = [values[name] for name in message["positions"]]
    named = {word: values[name] for word, name in message["named"].items()}
    with np.errstate(all="ignore"):
        returned = function.call(*positions, **named)
    due = message["results"]
    if returned is None:
        if not message["writes"]:
            raise Wrong("wrong", f"the function must return {' and '.join(due)}, but returned None")
        return
    if isinstance(returned, int):  # the status of a C function
        how = "None after writing them" if message["writes"] else "arrays"
        text = f"the function must return {' and '.join(due)}: {how}, but returned {returned}"
        raise Wrong("wrong", text)
    several = isinstance(returned, tuple) or (isinstance(returned, list) and len(due) > 1)
    found = list(returned) if several else [returned]
    if len(found) != len(due):
        arrays = "an array" if len(due) == 1 else f"{len(due)} arrays"
        text = f"the function must return {arrays} ({', '.join(due)}), but returned "
        raise Wrong("wrong", text + (f"a tuple of {len(found)}" if several else "one array"))
    for name, y in zip(due, found, strict=True):
        if name not in views or (y is None and name in message["optional"]):
            continue
        here, out = function.taken(y), views[name]
        if here.shape != out.shape:
            text = f"{name} must have the shape {list(out.shape)}, but has {list(here.shape)}"
            raise Wrong("wrong", text)
        if here.dtype != out.dtype:
            raise Wrong("wrong", f"{name} must have dtype {out.dtype}, but has {here.dtype}")
        if out.size and here is not out:
            out[...] = here


def answer(
    function: Function, arenas: Arenas, message: dict[str, Any], data: list[bytes], report: Any
) -> tuple[dict[str, Any], list[bytes]]:
    fenced = set(message["fenced"])
    parts: list[bytes] = []
    guards: list[bool] = []
    unsteady: list[int] = []  # memory whose bits differ between the runs
    for run in range(message["repeat"]):
        memories = [arenas.memory(i, part, run, i in fenced) for i, part in enumerate(data)]
        report("the call", run)
        try:
            call(function, message, memories)
        except Wrong as wrong:
            return {"failed": [wrong.kind, str(wrong)], "sizes": []}, []
        except Exception as error:
            return {"failed": ["refused", function.failure(error)], "sizes": []}, []
        before = parts
        read = [memory.read() for memory in memories]
        parts, guards = [part for part, _ in read], [kept for _, kept in read]
        if run and not unsteady:
            unsteady = [i for i in message["outputs"] if before[i] != parts[i]]
        if not all(guards):
            break
    sizes = [len(part) for part in parts]
    return {"guards": guards, "unsteady": unsteady, "sizes": sizes}, parts


def main() -> int:
    source, sink = Connection(int(sys.argv[1])), Connection(int(sys.argv[2]))

    def send(message: dict[str, Any]) -> None:
        sink.send_bytes(json.dumps(message).encode())

    try:
        function = Function(sys.argv[3], sys.argv[4])
    except BaseException as error:
        kind = "" if type(error) is LookupError else f"{type(error).__name__}: "  # ours
        line = f": {error.text}" if isinstance(error, SyntaxError) and error.text else ""
        send({"broken": f"{kind}{' '.join(f'{error}{line}'.split())[:SHOWN]}"})
        return 1
    send({"ready": True, "kind": function.kind, "parameters": function.parameters()})
    arenas = Arenas(HostMemory())  # type: ignore[arg-type]  # what it calls of a Library
    while True:
        try:
            message = json.loads(source.recv_bytes())
        except EOFError:
            return 0
        data = [source.recv_bytes() if size else b"" for size in message["sizes"]]
        report = lambda step, run: send({"step": step, "run": run})  # noqa: E731
        reply, parts = answer(function, arenas, message, data, report)
        send(reply)
        for part in parts:
            if part:
                sink.send_bytes(part)


if __name__ == "__main__":
    sys.exit(main())
