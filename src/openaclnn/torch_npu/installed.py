# SPDX-License-Identifier: Apache-2.0
"""Whether the installed torch_npu runs on the installed PyTorch, without importing either."""

from __future__ import annotations

from importlib import metadata, util

from ..aten.installed import HIDES, torch
from .names import OLDEST, VERSION

INSTALL = f"pip install torch=={VERSION} torch_npu=={VERSION} pyyaml"


def torch_npu() -> str | None:
    """Its version, where it is installed."""
    try:
        return metadata.version("torch_npu")
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3] if part.isdigit())


def problem() -> str | None:
    """Why torch_npu cannot run with what is installed, and what to do; None when it can."""
    own, wheel = torch(), torch_npu()
    if own is None:
        return f"PyTorch is not installed; install both with: {INSTALL}"
    if wheel is None:
        return f"torch_npu is not installed; install it with: {INSTALL}"
    if (name := own.visible_gpu()) is not None:
        todo = f"hide the GPU with {HIDES[name]}=" if name in HIDES else "install the CPU build"
        return (
            f"torch {own.version} sees a GPU ({own.accelerator}), and torch_npu refuses to share a "
            f"process with another accelerator; {todo}"
        )
    if own.accelerator is not None and _numbers(own.release) >= (2, 14):
        return (
            f"torch {own.version}, a build for {own.accelerator}, and torch_npu {wheel} register "
            "the same allocator setting, which ends the process; install the CPU build of torch"
        )
    if _numbers(wheel) < _numbers(OLDEST):
        return f"torch_npu {wheel} is older than {OLDEST}; install another with: {INSTALL}"
    if wheel.split(".")[:2] != own.release.split(".")[:2]:
        return (
            f"torch_npu {wheel} needs torch {'.'.join(wheel.split('.')[:3])}, but torch "
            f"{own.version} is installed; install what fits with: {INSTALL}"
        )
    if util.find_spec("yaml") is None:
        return "torch_npu needs PyYAML, which is not installed; install it with: pip install pyyaml"
    return None
