# SPDX-License-Identifier: Apache-2.0
"""Results in the kind of the input, for DLPack producers other than NumPy and torch."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt


def as_kind_of(like: Any, array: npt.NDArray[Any]) -> Any:
    """`array` as what `like` is, by the from_dlpack of its library; where it has none, as it is."""
    namespaces = []
    if hasattr(like, "__array_namespace__"):
        namespaces.append(like.__array_namespace__())
    namespaces.append(sys.modules.get(type(like).__module__.partition(".")[0]))
    for namespace in namespaces:
        convert = getattr(namespace, "from_dlpack", None)
        if convert is not None:
            return convert(array)
    return np.asarray(array)
