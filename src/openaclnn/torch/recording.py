# SPDX-License-Identifier: Apache-2.0
"""openaclnn's own functions on tensors whose gradient is recorded: they become the operators.

`openaclnn.leaky_relu(x)` refuses such a tensor before it has written anything. From the import of
openaclnn.torch on, the call is made again through torch.ops.openaclnn, which records it.
"""

from __future__ import annotations

from typing import Any

import torch

from .. import functions
from .._core import launch as launch_unrecorded
from ..errors import AclnnError
from ..rows.calling import argument_name, given, made
from ..rows.table import OPS
from .fallback import WITH_OUT
from .scalars import plain_number


def _is_recorded(values: tuple[Any, ...]) -> bool:
    tensors = (x for x in values if isinstance(x, torch.Tensor))
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def _launch(index: int, *values: Any) -> Any:
    """What the functions call: a value or None for each parameter of the row."""
    try:
        return launch_unrecorded(index, *values)
    except AclnnError:
        if not _is_recorded(values):
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


def start() -> None:
    setattr(functions, "launch", _launch)  # noqa: B010  # a name of the module, for mypy


def stop() -> None:
    setattr(functions, "launch", launch_unrecorded)  # noqa: B010
