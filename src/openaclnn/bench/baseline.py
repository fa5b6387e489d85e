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
    """How torch, and NumPy if it can, compute one row: each function returns a call."""

    torch: WithTorch
    numpy: Callable[[Tensors, Attributes], Call] | None = None
    # other ways of torch, by name, for a benchmark that knows them
    others: Mapping[str, WithTorch] = field(default_factory=dict)
    # "computes silu: swish_scale must be 1", if it lacks these attributes; empty if it has them
    lacks: Callable[[Attributes], str] = lambda attributes: ""
    # in-place rows: attributes that keep the data what it was
    timed: Attributes = field(default_factory=dict)
    # results below this are compared as if they were as large: there baselines cancel
    cancels_below: float = 0.0
