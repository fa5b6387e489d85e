# SPDX-License-Identifier: Apache-2.0
"""A baseline: another library that computes the same as a row. Those of a family are in
<family>_baselines.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

Tensors = Mapping[str, Any]  # inputs by Python name; "out" too, if the row has one output
Attributes = Mapping[str, Any]  # by Python name
Call = Callable[[], Any]  # writes "out", or over the input, or returns a tuple of all results
WithTorch = Callable[[ModuleType, Tensors, Attributes], Call]


@dataclass(frozen=True)
class Baseline:
    """How torch computes one row; for NumPy that is the formula of the reference."""

    torch: WithTorch
    # other ways of torch, by name
    others: Mapping[str, WithTorch] = field(default_factory=dict)
    # "computes silu: swish_scale must be 1" for attributes that torch lacks, else empty
    lacks: Callable[[Attributes], str] = lambda attributes: ""
    # in-place rows: attributes that do not change the data
    timed: Attributes = field(default_factory=dict)
    # smaller results are compared as if they were as large: torch cancels there
    cancels_below: float = 0.0
