# SPDX-License-Identifier: Apache-2.0
"""`out=` of functions with several results."""

from __future__ import annotations

from typing import Any


def several(out: Any, operator: str, *names: str) -> Any:
    """`out` when it is a tuple or list with an array, or None, for each name."""
    if isinstance(out, tuple | list) and len(out) == len(names):
        return out
    wanted = f"{operator}: out must be a tuple ({', '.join(names)})"
    if isinstance(out, tuple | list):
        raise TypeError(f"{wanted}, but got {len(out)} elements")
    raise TypeError(f"{wanted}, but got {type(out).__name__}")
