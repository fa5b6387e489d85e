# SPDX-License-Identifier: Apache-2.0
"""openaclnn's own functions on tensors whose gradient is recorded, or on CUDA tensors.

`openaclnn.leaky_relu(x)` refuses such a tensor before it has written anything. From the import of
openaclnn.torch on, the call is made again through torch.ops.openaclnn, which records it and
computes where the tensors are. `openaclnn.plan` of CUDA tensors is a plan of this package.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch

from .. import functions
from .._core import Plan as PlanOnCpu
from .._core import launch as launch_unrecorded
from ..errors import AclnnError
from ..rows.calling import argument_name, given, made
from ..rows.table import OPS
from .cuda import Plan, is_cuda
from .fallback import WITH_OUT
from .scalars import plain_number

plans = importlib.import_module("openaclnn.plan")  # the package has a function of this name


def _is_recorded(values: tuple[Any, ...]) -> bool:
    tensors = (x for x in values if isinstance(x, torch.Tensor))
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def _launch(index: int, *values: Any) -> Any:
    """What the functions call: a value or None for each parameter of the row."""
    try:
        return launch_unrecorded(index, *values)
    except AclnnError:
        if not _is_recorded(values) and not any(map(is_cuda, values)):
            raise
    op = OPS[index]
    named = {p.name: x for p, x in zip(op.parameters, values, strict=True)}
    outs = {argument_name(op, p): named[p.name] for p in made(op)}
    packet = getattr(torch.ops.openaclnn, op.python)
    arguments = [plain_number(named[p.name]) for p in given(op)]
    missing = [name for name, x in outs.items() if x is None]
    if len(missing) < len(outs):
        if missing:  # no overload takes some of them
            raise ValueError(f"{op.python}: {WITH_OUT}")
        return packet.out(*arguments, **outs)
    return packet.default(*arguments)


def _plan(index: int, *values: Any) -> Any:
    return (Plan if any(map(is_cuda, values)) else PlanOnCpu)(index, *values)


def start() -> None:
    setattr(functions, "launch", _launch)  # noqa: B010  # a name of the module, for mypy
    setattr(plans, "Plan", _plan)  # noqa: B010


def stop() -> None:
    setattr(functions, "launch", launch_unrecorded)  # noqa: B010
    setattr(plans, "Plan", PlanOnCpu)  # noqa: B010
