# SPDX-License-Identifier: Apache-2.0
"""The sections of benchmarks/gpu.py: a function for each, in the module of its subject."""

from __future__ import annotations

import importlib
from types import ModuleType

MODULES = {
    "checking": ("smoke", "matrix", "determinism", "sanitizer"),
    "using": ("ways", "unet", "compiled_unet"),
    "measuring": ("copy", "elementwise"),
    "norms": ("group_norm", "compiled"),
    "tuning": ("variants", "resident", "warm"),
    "blocks": ("blocks",),
}


def sections(name: str) -> ModuleType:
    module = next(m for m, names in MODULES.items() if name in names)
    return importlib.import_module(f".{module}", __package__)
