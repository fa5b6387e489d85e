# SPDX-License-Identifier: Apache-2.0
"""The exact C names, for people who port code.

Phase 1 returns (workspaceSize, executor), phase 2 takes them:

    from openaclnn import aclnn
    workspaceSize, executor = aclnn.aclnnLeakyReluGetWorkspaceSize(x, 0.01, y)
    aclnn.aclnnLeakyRelu(None, workspaceSize, executor, stream)

Tensors are arrays and scalars numbers; the executor is an openaclnn Plan, which owns its workspace
and may run again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._core import Plan, Stream
from .plan import find, plan
from .table import OPS

_PHASE1 = "GetWorkspaceSize"


def _phase1(name: str) -> Callable[..., tuple[int, Plan]]:
    def get_workspace_size(*arguments: Any, **named: Any) -> tuple[int, Plan]:
        executor = plan(name, *arguments, **named)
        return executor.workspace_size, executor

    return get_workspace_size


def _phase2(name: str) -> Callable[[Any, int, Plan, Stream | None], None]:
    def run(
        workspace: Any, workspaceSize: int, executor: Plan, stream: Stream | None = None
    ) -> None:
        if executor.name != name:
            raise ValueError(
                f"{name}: executor must come from {name}{_PHASE1}, but is of {executor.name}"
            )
        executor.run(stream)

    return run


def __getattr__(name: str) -> Any:
    base = name.removesuffix(_PHASE1)
    try:
        _, op = find(base)
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    function = (_phase2 if name == base else _phase1)(base)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{op.doc}\n\n    {op.formula}"
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted(name for op in OPS for name in (op.name, op.name + _PHASE1))
