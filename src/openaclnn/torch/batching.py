# SPDX-License-Identifier: Apache-2.0
"""torch.vmap: element-wise rows take a batch as one more dimension, others are called once each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .._core import MAX_RANK
from ..rows.schema import Op
from ..rows.table import OPS
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
        if rank != MAX_RANK:
            return overload(*batched), 0
        # The batch is one dimension more than the library takes.
        shapes = [x.shape for x in batched if isinstance(x, torch.Tensor)]
        if op.shapes == "same" and len(set(shapes)) > 1:
            return _one_by_one(op, overload)(info, dims, *values)  # which refuses them
        whole = torch.broadcast_shapes(*shapes)
        flat = [x.expand(whole).flatten() if isinstance(x, torch.Tensor) else x for x in batched]
        return overload(*flat).reshape(whole), 0

    return rule


def _in_place(op: Op, overload: Any) -> Rule:
    def rule(info: Any, dims: tuple[Any, ...], *values: Any) -> tuple[Any, Any]:
        x, *attributes = values
        if x.dim() == MAX_RANK + 1:  # one dimension more than the library takes
            for i in range(info.batch_size):
                overload(x.select(dims[0], i), *attributes)
        else:
            overload(*values)  # the tensor, whichever of its dimensions is the batch
        return x, dims[0]

    return rule


def _sample(x: Any, dim: int, i: int) -> Any:
    """One of the batch; of an empty one the sum of its samples, which is one of zeros."""
    return x.select(dim, i) if x.shape[dim] > 0 else x.sum(dim)


def _one_by_one(op: Op, overload: Any) -> Rule:
    def rule(info: Any, dims: tuple[Any, ...], *values: Any) -> tuple[Any, Any]:
        calls = [
            overload(
                *(x if d is None else _sample(x, d, i) for x, d in zip(values, dims, strict=True))
            )
            for i in range(max(info.batch_size, 1))  # a call gives the shapes of its results
        ]

        def together(column: Any) -> Any:
            found = torch.stack(column)
            return found if info.batch_size > 0 else found[:0]

        if len(op.outputs) == 1:
            return together(calls), 0
        results = tuple(
            None if column[0] is None else together(column) for column in zip(*calls, strict=True)
        )
        return results, tuple(None if x is None else 0 for x in results)

    return rule


def register_vmaps() -> None:
    for op in OPS:
        make = _in_place if op.inplace else _pointwise if op.pointwise else _one_by_one
        overload = getattr(torch.ops.openaclnn, op.python).default
        torch.library.register_vmap(f"{NAMESPACE}::{op.python}", make(op, overload))
