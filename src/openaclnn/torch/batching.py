# SPDX-License-Identifier: Apache-2.0
"""torch.vmap: element-wise rows take a batch as one more dimension, others are called once each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..schema import Op
from ..table import OPS
from .schemas import NAMESPACE

Rule = Callable[..., tuple[Any, Any]]


def _first(x: Any, dim: int, rank: int) -> Any:
    """The batch first, then as many ones as `rank` takes, then the rest."""
    moved = x.movedim(dim, 0)
    return moved.reshape(moved.shape[0], *(1,) * (rank - moved.dim() + 1), *moved.shape[1:])


def _pointwise(op: Op, overload: Any) -> Rule:
    def rule(info: Any, dims: tuple[Any, ...], *values: Any) -> tuple[Any, Any]:
        tensors = [(x, d) for x, d in zip(values, dims, strict=True) if isinstance(x, torch.Tensor)]
        rank = max(x.dim() - (d is not None) for x, d in tensors)
        batched: list[Any] = []
        for x, d in zip(values, dims, strict=True):
            if d is not None:
                x = _first(x, d, rank)
            elif isinstance(x, torch.Tensor) and op.shapes == "same":
                x = x.expand(info.batch_size, *x.shape)
            batched.append(x)
        return overload(*batched), 0

    return rule


def _in_place(op: Op, overload: Any) -> Rule:
    def rule(info: Any, dims: tuple[Any, ...], *values: Any) -> tuple[Any, Any]:
        overload(*values)  # the tensor, whichever of its dimensions is the batch
        return values[0], dims[0]

    return rule


def _one_by_one(op: Op, overload: Any) -> Rule:
    def rule(info: Any, dims: tuple[Any, ...], *values: Any) -> tuple[Any, Any]:
        calls = [
            overload(
                *(x if d is None else x.select(d, i) for x, d in zip(values, dims, strict=True))
            )
            for i in range(info.batch_size)
        ]
        if len(op.outputs) == 1:
            return torch.stack(calls), 0
        results = tuple(
            None if column[0] is None else torch.stack(column)
            for column in zip(*calls, strict=True)
        )
        return results, tuple(None if x is None else 0 for x in results)

    return rule


def register_vmaps() -> None:
    for op in OPS:
        make = _in_place if op.inplace else _pointwise if op.pointwise else _one_by_one
        overload = getattr(torch.ops.openaclnn, op.python).default
        torch.library.register_vmap(f"{NAMESPACE}::{op.python}", make(op, overload))
