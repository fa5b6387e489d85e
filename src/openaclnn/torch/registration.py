# SPDX-License-Identifier: Apache-2.0
"""Puts the operators into torch.ops.openaclnn, once: compiled kernels, or else Python ones."""

from __future__ import annotations

import os
import warnings

import torch

from . import cuda, fallback
from .batching import register_vmaps
from .building import BuildError, build
from .fakes import register_fakes
from .importing import when_imported
from .nested import refuse_nested
from .sharding import register_sharding

kind = ""  # "compiled" or "python"


def _compiled() -> str | None:
    """Why the compiled kernels are not available; None when they are loaded."""
    if os.environ.get("OPENACLNN_TORCH") == "python":
        return "OPENACLNN_TORCH is python"
    try:
        torch.ops.load_library(build())
    except BuildError as error:
        return str(error)
    except OSError as error:
        return f"the compiled operators cannot be loaded: {error}"
    return None


def register() -> None:
    global kind
    if kind:  # operators are registered once for a process, however often a module is reloaded
        return
    why = _compiled()
    kind = "compiled" if why is None else "python"
    if why is not None:
        fallback.register()
        warnings.warn(
            f"openaclnn.torch: the operators run through Python, several times slower on small "
            f"tensors, because {why}",
            RuntimeWarning,
            stacklevel=4,
        )
    cuda.register()
    register_fakes()
    register_vmaps()
    when_imported("torch.distributed.tensor", register_sharding)
    when_imported("torch.nested._internal.nested_tensor", refuse_nested)
