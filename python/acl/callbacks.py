# SPDX-License-Identifier: Apache-2.0
"""Python functions that the library calls: callbacks of streams, and for tasks that fail."""

from __future__ import annotations

import atexit
import ctypes
import itertools
from collections.abc import Callable
from typing import Any

# A launched function and its argument, by the number that C passes back.
waiting: dict[int, tuple[Callable[[Any], Any], Any]] = {}
numbers = itertools.count(1)
on_failure: Callable[[int], Any] | None = None


def _run(number: int) -> None:
    function, argument = waiting.pop(number)
    function(argument)


def _failed(info: int) -> None:
    if on_failure is not None:
        on_failure(info)


CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
run, failed = CALLBACK(_run), CALLBACK(_failed)


def address(function: Any) -> int:
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found


def checked(call: str, function: Any) -> Callable[[Any], Any]:
    if not callable(function):
        raise TypeError(f"{call}: fn must be a function, but got {type(function).__name__}")
    return function  # type: ignore[no-any-return]


def launch(launcher: Callable[..., int], function: Any, argument: Any, *rest: Any) -> int:
    """Launches; what the library did not take is forgotten."""
    number = next(numbers)
    waiting[number] = (checked("acl.rt.launch_callback", function), argument)
    ret = -1
    try:
        ret = launcher(address(run), number, *rest)
    finally:
        if ret != 0:
            waiting.pop(number, None)
    return ret


def listen(setter: Callable[[int], int], function: Any) -> int:
    """Calls `function` for each task that fails, until the interpreter ends."""
    global on_failure
    listener = checked("acl.rt.set_exception_info_callback", function)
    ret = setter(address(failed))
    if ret == 0:
        if on_failure is None:
            atexit.register(setter, 0)
        on_failure = listener
    return ret
