# SPDX-License-Identifier: Apache-2.0
"""What a function does with results: `out=` of several, and the kind of the input."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def as_kind_of(like: Any, array: npt.NDArray[Any]) -> Any:
    """Returns `array` as an object of the library that `like` comes from.

    That library is neither NumPy nor torch: its from_dlpack converts, and where it has none the
    array stays as it is. NumPy does not lend bfloat16 by DLPack; the library's asarray may take it.
    """
    namespaces = []
    if hasattr(like, "__array_namespace__"):
        namespaces.append(like.__array_namespace__())
    namespaces.append(sys.modules.get(type(like).__module__.partition(".")[0]))
    for namespace in namespaces:
        convert = getattr(namespace, "from_dlpack", None)
        if convert is None:
            continue
        try:
            return convert(array)
        except BufferError:
            if (convert := getattr(namespace, "asarray", None)) is not None:
                return convert(array)
    return np.asarray(array)


def unpack_outputs(out: Any, operator: str, *names: str) -> Any:
    """`out` when it is a tuple or list with an array, or None, for each name."""
    if isinstance(out, tuple | list) and len(out) == len(names):
        return out
    wanted = f"{operator}: out must be a tuple ({', '.join(names)})"
    if isinstance(out, tuple | list):
        raise TypeError(f"{wanted}, but got {len(out)} elements")
    raise TypeError(f"{wanted}, but got {type(out).__name__}")
