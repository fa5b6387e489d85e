# SPDX-License-Identifier: Apache-2.0
"""The library of operators that ATen computes, under a name that torch_npu searches after
libopapi.so: operators of openaclnn itself come first.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..aten.source import source
from ..compiled import Library
from ..settings import home
from .installed import torch

SONAME = "libaclnn_math.so"


@cache
def library() -> Library:
    own = torch()
    assert own is not None  # installed.problem() comes first
    sources = home() / "share" / "aten"
    files = sorted((sources / "core" / "torch" / "aten").glob("*.cpp"))
    # One unit: torch's headers take three quarters of the time of each.
    together = "".join(f'#include "core/torch/aten/{file.name}"\n' for file in files)
    generated = {"library.cpp": together, "rows.cpp": source()}
    return Library("the operators that ATen computes", own, sources, generated, SONAME)


def provider() -> Path:
    """The library, compiled if it is not in the cache."""
    return library().build()
