# SPDX-License-Identifier: Apache-2.0
"""What core/torch/gradient.h does, for the operators without a compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..rows.calling import given, made
from ..rows.gradients import (
    differentiable,
    gradient_row,
    refusal,
    sources,
)
from ..rows.schema import Op
from ..settings import is_unrestricted
from .dtypes import NAMES, plain


def _check(op: Op, named: dict[str, Any]) -> None:
    """Whether the row has a gradient for these arguments."""
    if op.gradient is None:
        return
    found = {p.name: named[p.name].dtype for p in op.input_tensors}
    dtypes = {name: NAMES.get(dtype, plain(dtype)) for name, dtype in found.items()}
    if why := refusal(op, dtypes, named, is_unrestricted()):
        raise ValueError(why)


def save(op: Op, ctx: Any, values: Sequence[Any], result: Any) -> None:
    """What the gradient takes, in the context of an autograd.Function."""
    results = result if isinstance(result, tuple) else (result,)
    named = {p.name: x for p, x in zip(given(op), values, strict=True)}
    _check(op, named)
    named |= {p.name: y for p, y in zip(made(op), results, strict=True)}
    zero = op.gradient.zero if op.gradient else ()
    used = {s.name: named[s.name] for s in sources(op) if s.kind == "value"}
    used |= {name: named[name] for name in zero}
    tensors = [name for name, x in used.items() if isinstance(x, torch.Tensor)]
    ctx.save_for_backward(*(used[name] for name in tensors))
    ctx.names = tensors
    ctx.attributes = {name: x for name, x in used.items() if name not in tensors}
    ctx.mark_non_differentiable(*(y for y in results[1:] if y is not None and op.gradient))
    ctx.set_materialize_grads(False)


def backward(
    op: Op, ctx: Any, incoming: Sequence[Any], needed: Sequence[bool]
) -> tuple[torch.Tensor | None, ...]:
    """One gradient or None for each argument."""
    wanted = {p.name for p, need in zip(given(op), needed, strict=True) if need}
    if all(g is None for g in incoming) or not wanted:
        return (None,) * len(needed)
    named = ctx.attributes | dict(zip(ctx.names, ctx.saved_tensors, strict=True))
    having = {p.name for p in differentiable(op)}
    found: dict[str, Any] = {}
    for p in op.input_tensors:
        if p.name not in wanted - having:
            continue
        if op.gradient is None or p.name not in op.gradient.zero:
            second = ", a second derivative" if op.gradient else ""
            raise NotImplementedError(
                f"{op.python}: there is no gradient by {p.python_name}{second}"
            )
        found[p.name] = torch.zeros_like(named[p.name])
    if wanted & having:
        found |= _call(op, named, incoming[0], wanted)
    return tuple(found.get(p.name) if p.name in wanted else None for p in given(op))


def _call(op: Op, named: dict[str, Any], incoming: Any, wanted: set[str]) -> dict[str, Any]:
    """The gradient row, by input."""
    row = gradient_row(op)
    assert row is not None
    values: dict[str, Any] = {}
    for s in sources(op):
        known = {"incoming": incoming, "constant": s.constant, "wanted": s.name in wanted}
        values[s.parameter.name] = known[s.kind] if s.kind in known else named.get(s.name)
    results = getattr(torch.ops.openaclnn, row.python)(*(values[p.name] for p in given(row)))
    results = results if isinstance(results, tuple) else (results,)
    return dict(zip([s.name for s in sources(op) if s.kind == "made"], results, strict=True))
