# SPDX-License-Identifier: Apache-2.0
"""The library of operators that ATen computes and of communication over gloo, under a name that
torch_npu searches after libopapi.so: operators of openaclnn itself come first.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..compiled import Library
from ..settings import home
from .installed import torch
from .products.source import source as product_rules
from .source import source

SONAME = "libaclnn_math.so"


@cache
def library() -> Library:
    own = torch()
    assert own is not None  # installed.problem() comes first
    sources = home() / "share" / "aten"
    generated = {"rows.cpp": source(), "product_rules.cpp": product_rules()}
    # One unit of each folder: torch's headers take three quarters of the time of each file.
    for folder in ("aten", "aten/composites", "hccl"):
        files = sorted((sources / "core" / "torch" / folder).glob("*.cpp"))
        together = "".join(f'#include "core/torch/{folder}/{file.name}"\n' for file in files)
        generated[f"{Path(folder).name}.cpp"] = together
    return Library(
        "the operators that ATen computes",
        own,
        sources,
        generated,
        soname=SONAME,
        declarations=("core/torch/hccl/declarations",),
    )


def built_library() -> Path:
    """The library, compiled if it is not in the cache."""
    return library().build()
