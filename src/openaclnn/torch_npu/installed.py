# SPDX-License-Identifier: Apache-2.0
"""What is installed of PyTorch and torch_npu, found without importing either: to import torch is
to import torch_npu, and that fails without the libraries.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from ..compiled import Torch
from .names import VERSION

INSTALL = f"pip install torch=={VERSION} torch_npu=={VERSION} pyyaml"


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


BUILDS = (("cuda", "CUDA"), ("hip", "ROCm"), ("xpu", "XPU"))


def torch_npu() -> str | None:
    """Its version, where it is installed."""
    try:
        return metadata.version("torch_npu")
    except metadata.PackageNotFoundError:
        return None


def problem() -> str | None:
    """Why torch_npu cannot run with what is installed, and what to do; None when it can."""
    own, wheel = torch(), torch_npu()
    if own is None:
        return f"PyTorch is not installed; install both with: {INSTALL}"
    if wheel is None:
        return f"torch_npu is not installed; install it with: {INSTALL}"
    if own.accelerator is not None:
        return (
            f"torch {own.version} is a build for {own.accelerator}, and torch_npu refuses to share "
            f"a process with another accelerator; install the CPU build with: "
            f"pip install torch=={wheel.partition('.post')[0]}+cpu, from PyTorch's index for CPUs"
        )
    if wheel.split(".")[:2] != own.release.split(".")[:2]:
        return (
            f"torch_npu {wheel} needs torch {'.'.join(wheel.split('.')[:3])}, but torch "
            f"{own.version} is installed; install what fits with: {INSTALL}"
        )
    if util.find_spec("yaml") is None:
        return "torch_npu needs PyYAML, which is not installed; install it with: pip install pyyaml"
    return None
