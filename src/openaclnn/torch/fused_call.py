# SPDX-License-Identifier: Apache-2.0
"""What stands in a rewritten forward where a SiLU took the result of a GroupNorm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import Module

from .dtypes import NAMES
from .functions import group_norm_swish

DEVICES = ("cpu", "cuda", "meta")
# SiLU as functions, and as classes of modules; source.py adds those that it has read.
SILU: set[Any] = {torch.nn.SiLU, torch.nn.functional.silu, torch.ops.aten.silu.default}
NORMS: set[Any] = {torch.nn.GroupNorm}  # classes; source.py adds those that compute the same


def has_hooks(module: Module) -> bool:
    """A call of the module would run more than its forward."""
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
        or "forward" in module.__dict__
    )


def _is_silu(act: Any) -> bool:
    if isinstance(act, Module):
        return type(act) in SILU and not has_hooks(act)
    return act in SILU


def silu_of_norm(act: Callable[[Any], Any], norm: Any, x: torch.Tensor) -> Any:
    """act(norm(x)), in one pass where these still are what they were when the call was written."""
    if (
        type(norm) in NORMS
        and not has_hooks(norm)
        and _is_silu(act)
        and x.dtype in NAMES
        and x.dtype != torch.float64
        and x.device.type in DEVICES
    ):
        return group_norm_swish(x, norm.num_groups, norm.weight, norm.bias, norm.eps)
    return act(norm(x))
