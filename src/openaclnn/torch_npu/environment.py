# SPDX-License-Identifier: Apache-2.0
"""The environment in which torch_npu finds openaclnn and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..aten.library import built_library
from ..settings import home
from .names import NEEDED, WANTED, WANTED_IN_HOME

# The variables of an installed CANN: torch_npu looks there for operators first.
FOREIGN = ("ASCEND_CUSTOM_OPP_PATH",)
# What openaclnn chooses unless the user has chosen.
DEFAULTS = {
    # Operators run when they are called, so that a failure is an exception at the call. A small
    # operator on a CPU is over before it is queued.
    "TASK_QUEUE_ENABLE": "0",
}


def in_front(added: list[Path], before: str | None) -> str:
    first = [str(folder) for folder in added]
    rest = before.split(":") if before else []
    return ":".join([*first, *(path for path in rest if path not in first)])


def settings(base: Mapping[str, str]) -> dict[str, str]:
    """The variables to set beside LD_LIBRARY_PATH and PYTHONPATH."""
    root = str(home())
    found = {name: root for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")}
    found["ASCEND_OPP_PATH"] = f"{root}/opp"
    found["ASCEND_AICPU_PATH"] = root
    found |= {name: "" for name in FOREIGN if base.get(name)}
    traced = home() / "lib64" / "trace"
    if str(traced) in base.get("LD_PRELOAD", ""):  # `openaclnn trace` runs this process
        found["ASCEND_CUSTOM_OPP_PATH"] = str(traced)
    programs = [home() / "bin", home() / "tools" / "profiler" / "bin"]  # npu-smi, msprof
    found["PATH"] = in_front(programs, base.get("PATH"))
    return found | {name: value for name, value in DEFAULTS.items() if name not in base}


def folders() -> list[Path]:
    """Where the loader finds the libraries."""
    return [home() / "lib64" / "npu", home() / "lib64", built_library().parent]


def libraries() -> list[Path]:
    """What torch_npu names, to be loaded in this order."""
    root = home() / "lib64"
    return [
        *(root / "npu" / f"lib{name}.so" for name in (*NEEDED, *WANTED)),
        *(root / f"lib{name}.so" for name in (*WANTED_IN_HOME, "opapi")),
    ]


def modules() -> Path:
    """Where Python finds the module acl."""
    return home() / "python" / "site-packages"


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """`base` with all that a process needs."""
    found = {**base, **settings(base)}
    found["LD_LIBRARY_PATH"] = in_front(folders(), base.get("LD_LIBRARY_PATH"))
    found["PYTHONPATH"] = in_front([modules()], base.get("PYTHONPATH"))
    return found
