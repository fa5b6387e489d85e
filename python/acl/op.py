# SPDX-License-Identifier: Apache-2.0
"""acl.op: operators by type, the interface before aclnn."""

from __future__ import annotations

import ctypes
from typing import Any

from .absent import absent
from .call import functions
from .kinds import LONG, items

_functions = functions("op")
_set_lists = _functions.pop("_set_attr_list_list_int")
globals().update(_functions)


def set_attr_list_list_int(attr: int, name: str, values: Any) -> int:
    """ret = acl.op.set_attr_list_list_int(attr, name, values)"""
    try:
        rows = [[LONG.to_c(entry) for entry in items(row)] for row in items(values)]  # type: ignore[misc]
    except (TypeError, ValueError) as error:
        raise type(error)(f"acl.op.set_attr_list_list_int: values {error}") from None
    arrays = [(ctypes.c_int64 * len(row))(*row) for row in rows]
    addresses = [ctypes.addressof(array) for array in arrays]
    return _set_lists(attr, name, [len(row) for row in rows], addresses)  # type: ignore[no-any-return]


_MODELS = "operators compiled for an NPU cannot be loaded; call acl.op.execute_v2"
create_handle = absent("op.create_handle", _MODELS)
destroy_handle = absent("op.destroy_handle", _MODELS)
execute_with_handle = absent("op.execute_with_handle", _MODELS)
load = absent("op.load", _MODELS)
create_kernel = absent("op.create_kernel", _MODELS)

__all__ = [
    *_functions,
    "create_handle",
    "create_kernel",
    "destroy_handle",
    "execute_with_handle",
    "load",
    "set_attr_list_list_int",
]
