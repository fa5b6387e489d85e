# SPDX-License-Identifier: Apache-2.0
"""Errors of the functions of openaclnn.torch name the arguments as their caller does."""

from __future__ import annotations

import inspect
import numbers
import re
from collections.abc import Callable
from typing import Any

import torch

# Rows name these parameters otherwise than torch's functions, which ours follow.
_NAMES = {"x": "input", "gamma": "weight", "beta": "bias"}
# Each annotation takes these types and has this name in a sentence.
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "Tensor": ((torch.Tensor,), "a torch tensor"),
    "float": ((numbers.Real, torch.SymFloat, torch.SymInt), "a number"),
    "int": ((numbers.Integral, torch.SymInt), "an integer"),
    "bool": ((bool,), "True or False"),
}


def _text(value: Any) -> str:
    return "None" if value is None else type(value).__name__


def explained(error: Exception, function: Callable[..., Any], *values: Any) -> Exception:
    """Returns an error that says more, or the same error where there is nothing to add.

    `values` has one value for each parameter of the function, in order.
    """
    name = function.__name__
    for p, value in zip(inspect.signature(function).parameters.values(), values, strict=True):
        kind, *none = str(p.annotation).split(" | ")
        types, what = _KINDS[kind]
        if not isinstance(value, types) and not (none and value is None):
            return TypeError(f"{name}: {p.name} must be {what}, but got {_text(value)}")
    first = values[0]
    if isinstance(error, IndexError) and name == "group_norm_swish" and first.dim() < 2:
        shape = list(first.shape)
        return ValueError(f"{name}: input must have at least 2 dimensions, but has shape {shape}")
    head, _, rest = str(error).partition(": ")
    if type(error) is not ValueError or head.rstrip("_") != name:
        return error
    return ValueError(f"{head}: {re.sub(r'[a-z]+', lambda m: _NAMES.get(m[0], m[0]), rest)}")
