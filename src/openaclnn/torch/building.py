# SPDX-License-Identifier: Apache-2.0
"""The compiled kernels of the PyTorch operators."""

from __future__ import annotations

from pathlib import Path

import torch

from ..compiled import NO_COMPILER, BuildError, Library, Torch, cache, compiler
from ..settings import home
from .source import rows

__all__ = ["NO_COMPILER", "BuildError", "build", "cache", "compiler", "library", "sources"]


def sources() -> Path:
    """core/torch and the header that it needs, as installed."""
    return home() / "share" / "torch"


def _library() -> Library:
    own = Torch(
        Path(torch.__file__).parent, str(torch.__version__), torch.version.git_version or ""
    )
    generated = {"rows.inc": rows(), "operators.cpp": '#include "library.cpp"\n'}
    return Library("the PyTorch operators", own, sources(), generated)


def library() -> Path:
    """The file of the build that fits, whether it is there or not."""
    return _library().target()


def build() -> Path:
    """The compiled kernels, compiled now if they are not in the cache. BuildError says why not."""
    return _library().build()
