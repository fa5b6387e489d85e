# SPDX-License-Identifier: Apache-2.0
"""The device `npu` of PyTorch on this CPU, through the published torch_npu wheel.

    import openaclnn.npu      # before torch
    import torch

    torch.randn(4, device="npu")

The import loads the libraries that the wheel names, so that the loader finds them by name, puts the
module acl on the path, and prepares torch.compile and Triton for the device. Where torch_npu has
been imported already, or failed to be, it is too late: `openaclnn npu -- COMMAND` sets the
environment of a whole process instead.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys

from .aten.library import built_library
from .compiled import BuildError
from .torch_npu.environment import libraries, modules, settings
from .torch_npu.installed import problem


class NpuError(ImportError):
    """Why the device npu is not available: one sentence, and what to do."""


def _load() -> None:
    if "torch_npu" in sys.modules:
        raise NpuError(
            "openaclnn.npu must be imported before torch, but torch_npu is loaded already; "
            "import it first, or start the program with `openaclnn npu -- COMMAND`"
        )
    if trouble := problem():
        raise NpuError(f"openaclnn.npu: {trouble}")
    try:
        operators = built_library()
    except BuildError as error:
        raise NpuError(f"openaclnn.npu: {error}") from None
    os.environ.update(settings(os.environ))
    sys.path.insert(0, str(modules()))
    importlib.import_module("openaclnn_imports").install()
    for library in libraries():
        ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
    importlib.import_module("torch_npu")  # and torch, whose libraries the operators need
    ctypes.CDLL(str(operators), ctypes.RTLD_GLOBAL)


_load()
