# SPDX-License-Identifier: Apache-2.0
"""The installed PyTorch, found without importing it: with torch_npu installed, importing torch
imports that too, which fails without our libraries.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import util
from pathlib import Path

from ..compiled import Torch

BUILDS = (("cuda", "CUDA"), ("hip", "ROCm"), ("xpu", "XPU"))


@dataclass(frozen=True)
class Installed(Torch):
    """The installed PyTorch."""

    seconds = 30

    accelerator: str | None  # "CUDA 12.8", where it was built for one


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
