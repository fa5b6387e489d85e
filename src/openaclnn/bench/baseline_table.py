# SPDX-License-Identifier: Apache-2.0
"""The baselines of all rows, by Python name."""

from __future__ import annotations

import importlib
from pathlib import Path

from .baseline import Baseline


def _all_baselines() -> dict[str, Baseline]:
    """Those of every <family>_baselines.py beside this file."""
    found: dict[str, Baseline] = {}
    for path in sorted(Path(__file__).parent.glob("*_baselines.py")):
        found |= importlib.import_module(f".{path.stem}", __package__).BASELINES
    return found


BASELINES = _all_baselines()
