# SPDX-License-Identifier: Apache-2.0
"""acl.rt: devices, contexts, streams, events, memory, callbacks."""

from __future__ import annotations

from typing import Any

from . import callbacks
from .call import functions

_functions = functions("rt")
_launch = _functions.pop("_launch_callback")
_set_callback = _functions.pop("_set_exception_info_callback")
_functions.pop("_pointer_get_attributes")
globals().update(_functions)


def launch_callback(fn: Any, user_data: Any, block_type: int, stream: int) -> int:
    """ret = acl.rt.launch_callback(fn, user_data, block_type, stream); calls fn(user_data)."""
    return callbacks.launch(_launch, fn, user_data, block_type, stream)


def set_exception_info_callback(fn: Any) -> int:
    """ret = acl.rt.set_exception_info_callback(fn); calls fn(info) for each task that fails."""
    return callbacks.listen(_set_callback, fn)


__all__ = [*_functions, "launch_callback", "set_exception_info_callback"]
