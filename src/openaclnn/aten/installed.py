# SPDX-License-Identifier: Apache-2.0
"""The installed PyTorch, found without importing it: with torch_npu installed, importing torch
imports that too, which fails without our libraries.
"""

from __future__ import annotations

import ctypes
import os
import re
from dataclasses import dataclass
from importlib import util
from pathlib import Path

from ..compiled import Torch

BUILDS = (("cuda", "CUDA"), ("hip", "ROCm"), ("xpu", "XPU"))
HIDES = {"CUDA": "CUDA_VISIBLE_DEVICES", "ROCm": "HIP_VISIBLE_DEVICES"}


@dataclass(frozen=True)
class Installed(Torch):
    """The installed PyTorch."""

    seconds = 100  # on two free cores

    accelerator: str | None  # "CUDA 12.8", where it was built for one

    def visible_gpu(self) -> str | None:
        """What this build computes on besides the CPU: "CUDA", where the driver has a device."""
        name = (self.accelerator or "").partition(" ")[0]
        count = {"CUDA": _cuda_devices, "ROCm": _rocm_devices}.get(name)
        if count is None:  # XPU has no driver call without its runtime
            return name or None
        return name if count() > 0 else None


def _cuda_devices() -> int:
    """How many the driver shows; it reads CUDA_VISIBLE_DEVICES itself."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def _rocm_devices() -> int:
    hidden = os.environ.get(HIDES["ROCm"]) in ("", "-1")
    return int(Path("/dev/kfd").exists() and not hidden)


def torch() -> Installed | None:
    found = util.find_spec("torch")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent
    version = folder / "version.py"
    text = version.read_text() if version.is_file() else ""

    def value(name: str) -> str | None:
        match = re.search(rf"^{name}\b[^=\n]*= *['\"]([^'\"]+)['\"]", text, re.M)
        return match[1] if match else None

    builds = [f"{title} {value(name)}" for name, title in BUILDS if value(name)]
    version_text, git = value("__version__") or "unknown", value("git_version") or ""
    return Installed(folder, version_text, git, builds[0] if builds else None)
