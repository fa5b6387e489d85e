# SPDX-License-Identifier: Apache-2.0
"""The compiled kernels of the PyTorch operators."""

from __future__ import annotations

from pathlib import Path

import torch

from ..compiled import NO_COMPILER, BuildError, Library, Torch, cache, compiler
from ..rows.table import OPS
from ..settings import home
from .schemas import out_schema, schema

__all__ = ["NO_COMPILER", "BuildError", "build", "cache", "compiler", "library", "sources"]


def sources() -> Path:
    """core/torch and the header that it needs, as installed."""
    return home() / "share" / "torch"


def _quoted(text: str | None) -> str:
    return "nullptr" if text is None else f'"{text}"'


def schemas() -> str:
    """What core/torch/library.cpp registers."""
    lines = (
        f"{{{', '.join(map(_quoted, (op.name, schema(op), out_schema(op))))}}},\n" for op in OPS
    )
    return "// SPDX-License-Identifier: Apache-2.0\n" + "".join(lines)


def _library() -> Library:
    own = Torch(
        Path(torch.__file__).parent, str(torch.__version__), torch.version.git_version or ""
    )
    generated = {"schemas.inc": schemas(), "operators.cpp": '#include "library.cpp"\n'}
    return Library("the PyTorch operators", own, sources(), generated)


def library() -> Path:
    """The file of the build that fits, whether or not it exists."""
    return _library().target()


def build() -> Path:
    """The compiled kernels, compiled now if they are not in the cache. BuildError says why not."""
    return _library().build()
