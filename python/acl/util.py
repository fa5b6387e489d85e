# SPDX-License-Identifier: Apache-2.0
"""acl.util: addresses of NumPy arrays and bytes, memory as arrays and bytes, threads."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .call import functions
from .kinds import integer, items

if TYPE_CHECKING:
    import numpy

INVALID_PARAM = 100000
DEVICE, MANAGED = 1, 3  # aclrtMemLocationType
CHUNK = 1 << 30  # one read of Linux ends at 2 GiB

_attributes = functions("rt")["_pointer_get_attributes"]
_threads: dict[int, threading.Thread] = {}


def bytes_to_ptr(value: bytes) -> int:
    """ptr = acl.util.bytes_to_ptr(bytes_data); valid as long as the object lives."""
    if not isinstance(value, bytes):
        raise TypeError(f"acl.util.bytes_to_ptr: must be bytes, but got {type(value).__name__}")
    return ctypes.cast(ctypes.c_char_p(value), ctypes.c_void_p).value or 0


def numpy_to_ptr(array: numpy.ndarray[Any, Any]) -> int:
    """ptr = acl.util.numpy_to_ptr(array); valid as long as the array lives."""
    return int(_checked("numpy_to_ptr", array).ctypes.data)


def numpy_contiguous_to_ptr(
    array: numpy.ndarray[Any, Any],
) -> tuple[int, numpy.ndarray[Any, Any]]:
    """ptr, array = acl.util.numpy_contiguous_to_ptr(array); a copy if it is not contiguous."""
    import numpy

    found = numpy.ascontiguousarray(_checked("numpy_contiguous_to_ptr", array))
    return int(found.ctypes.data), found


def ptr_to_bytes(ptr: int, size: int) -> bytes:
    """bytes_data = acl.util.ptr_to_bytes(ptr, size); a copy of host memory."""
    return _read("ptr_to_bytes", *_range("ptr_to_bytes", ptr, size))


def ptr_to_numpy(ptr: int, shape: Sequence[int], dtype: Any) -> numpy.ndarray[Any, Any]:
    """array = acl.util.ptr_to_numpy(ptr, shape, type); host memory itself, no copy.

    type is a number of NumPy's C interface (11 for float32) or a dtype.
    """
    import numpy

    call = "ptr_to_numpy"
    if isinstance(dtype, int):
        kinds = {numpy.dtype(code).num: code for code in numpy.typecodes["AllInteger"] + "?efdFD"}
        if dtype not in kinds:
            raise ValueError(f"acl.util.{call}: type {dtype} is not a number type of NumPy")
        dtype = kinds[dtype]
    kind = numpy.dtype(dtype)
    if kind.hasobject:
        raise ValueError(f"acl.util.{call}: type must be a number type, but got {kind}")
    try:
        dims = tuple(integer(entry, 63, signed=False) for entry in items(shape))
    except (TypeError, ValueError) as error:
        raise type(error)(f"acl.util.{call}: shape {error}") from None
    size = kind.itemsize
    for entry in dims:
        size *= entry
    start, size = _range(call, ptr, size)
    if size == 0:
        return numpy.empty(dims, kind)
    for place in (start, start + size - 1):
        _read(call, place, 1)
    buffer = (ctypes.c_char * size).from_address(start)
    found: numpy.ndarray[Any, Any] = numpy.ndarray(dims, kind, buffer)  # type: ignore[arg-type]
    return found


def start_thread(function: Callable[[Any], Any], arguments: Any) -> tuple[int, int]:
    """thread_id, ret = acl.util.start_thread(function, arguments); runs function(arguments)."""
    if not callable(function):
        name = type(function).__name__
        raise TypeError(f"acl.util.start_thread: function must be a function, but got {name}")
    thread = threading.Thread(target=function, args=(arguments,), daemon=True)
    thread.start()
    assert thread.ident is not None
    _threads[thread.ident] = thread
    return thread.ident, 0


def stop_thread(thread_id: int) -> int:
    """ret = acl.util.stop_thread(thread_id); waits until its function has returned."""
    thread = _threads.get(thread_id)
    if thread is None or thread is threading.current_thread():
        return INVALID_PARAM
    del _threads[thread_id]
    thread.join()
    return 0


def _checked(call: str, array: Any) -> Any:
    import numpy

    if not isinstance(array, numpy.ndarray):
        name = type(array).__name__
        raise TypeError(f"acl.util.{call}: must be a NumPy array, but got {name}")
    return array


def _range(call: str, ptr: Any, size: Any) -> tuple[int, int]:
    """Address and size of memory that the host may read."""
    try:
        start, count = integer(ptr, 64, signed=False), integer(size, 63, signed=False)
    except (TypeError, ValueError) as error:
        raise type(error)(f"acl.util.{call}: ptr and size {error}") from None
    if count > 0 and start > 0 and _attributes(start)[0] in (DEVICE, MANAGED):
        raise ValueError(
            f"acl.util.{call}: {start:#x} is device memory; copy it to the host with acl.rt.memcpy"
        )
    return start, count


def _read(call: str, start: int, size: int) -> bytes:
    """By the kernel, which answers where the memory is not there."""
    parts = []
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        while size > 0:
            try:
                part = os.pread(memory.fileno(), min(size, CHUNK), start)
            except (OSError, OverflowError):
                part = b""
            if not part:
                raise ValueError(f"acl.util.{call}: no readable memory at {start:#x}")
            parts.append(part)
            start, size = start + len(part), size - len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


__all__ = [
    "bytes_to_ptr",
    "numpy_contiguous_to_ptr",
    "numpy_to_ptr",
    "ptr_to_bytes",
    "ptr_to_numpy",
    "start_thread",
    "stop_thread",
]
