# SPDX-License-Identifier: Apache-2.0
"""Runs when Python starts in a process of `openaclnn npu`; then runs the sitecustomize it hides."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import openaclnn_imports

openaclnn_imports.install()

_here = Path(__file__).resolve().parent
_hidden = PathFinder.find_spec(
    "sitecustomize", [folder for folder in sys.path if Path(folder).resolve() != _here]
)
if _hidden is not None and _hidden.loader is not None:
    _module = importlib.util.module_from_spec(_hidden)
    sys.modules["sitecustomize"] = _module
    _hidden.loader.exec_module(_module)
