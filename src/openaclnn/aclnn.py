# SPDX-License-Identifier: Apache-2.0
"""The exact C names, for people who port code.

Phase 1 returns (workspaceSize, executor), phase 2 takes them:

    from openaclnn import aclnn
    workspaceSize, executor = aclnn.aclnnLeakyReluGetWorkspaceSize(x, 0.01, y)
    aclnn.aclnnLeakyRelu(None, workspaceSize, executor, stream)

Tensors are arrays and scalars numbers. As in C, phase 2 consumes the executor unless it was made
repeatable; unlike in C, the workspace may be None, because the executor has its own.
"""

from __future__ import annotations

import textwrap
import threading
from collections.abc import Callable
from typing import Any, NoReturn

from ._core import Plan, Stream
from .errors import AclnnError
from .plan import find, plan
from .rows.catalogue import formula_lines
from .rows.table import OPS

_PHASE1 = "GetWorkspaceSize"
_NULL, _INVALID, _INNER_NULL = 161001, 161002, 561103


class Executor:
    """aclOpExecutor: what phase 1 made and phase 2 runs."""

    def __init__(self, made: Plan) -> None:
        self._plan: Plan | None = made
        self._lock = threading.Lock()  # of what follows: exactly one of several threads runs it
        self._destroyed = False
        self.name = made.name
        self.repeatable = False

    def run(self, stream: Stream | None) -> None:
        """Phase 2. One that is refused consumes nothing."""
        with self._lock:
            taken = self._plan
            if not self.repeatable:
                self._plan = None
        if taken is None:
            raise AclnnError(
                _INVALID,
                f"{self.name}: executor was already run or destroyed; call {self.name}{_PHASE1} "
                "again, or make it repeatable",
            )
        try:
            taken.run(stream)
        except BaseException:
            with self._lock:
                if not self._destroyed:
                    self._plan = taken
            raise

    def make_repeatable(self, call: str) -> None:
        with self._lock:
            if self._plan is None:
                self._refuse(call)
            self.repeatable = True

    def destroy(self, call: str) -> None:
        """As in C, one that phase 2 consumed may be destroyed, any number of times."""
        with self._lock:
            if self._destroyed:
                self._refuse(call)
            gone, self._plan = self._plan, None  # arrays that go may run code: after the lock
            self._destroyed = gone is not None

    def _refuse(self, call: str) -> NoReturn:
        ended = "destroyed" if self._destroyed else "run"
        raise AclnnError(_INVALID, f"{call}: executor was already {ended}")


def aclSetAclOpExecutorRepeatable(executor: Executor) -> None:
    """Lets phase 2 run the executor any number of times."""
    call = "aclSetAclOpExecutorRepeatable"
    _executor(call, executor, _INNER_NULL).make_repeatable(call)


def aclDestroyAclOpExecutor(executor: Executor) -> None:
    """Ends an executor, whether phase 2 has consumed it or not."""
    call = "aclDestroyAclOpExecutor"
    _executor(call, executor, _INNER_NULL).destroy(call)


def _executor(call: str, executor: Executor | None, null: int = _NULL) -> Executor:
    if executor is None:
        raise AclnnError(null, f"{call}: executor must not be None")
    if not isinstance(executor, Executor):
        raise AclnnError(_INVALID, f"{call}: executor must be one of phase 1, but got {executor!r}")
    return executor


def _phase1(name: str) -> Callable[..., tuple[int, Executor]]:
    def get_workspace_size(*arguments: Any, **named: Any) -> tuple[int, Executor]:
        made = plan(name, *arguments, **named)
        return made.workspace_size, Executor(made)

    return get_workspace_size


def _phase2(name: str) -> Callable[[Any, int, Executor, Stream | None], None]:
    def run(
        workspace: Any, workspaceSize: int, executor: Executor, stream: Stream | None = None
    ) -> None:
        live = _executor(name, executor)
        if live.name != name:
            raise AclnnError(
                _INVALID,
                f"{name}: executor belongs to {live.name}; pass that of {name}{_PHASE1}",
            )
        live.run(stream)

    return run


def __getattr__(name: str) -> Any:
    base = name.removesuffix(_PHASE1)
    if not any(op.name == base for op in OPS):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _, op = find(base)
    function: Callable[..., Any] = _phase2(base) if name == base else _phase1(base)
    function.__name__ = function.__qualname__ = name
    formula = textwrap.indent("\n".join(formula_lines(op, 92)), " " * 4)
    function.__doc__ = f"{op.doc}\n\n{formula}"
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    names = [name for op in OPS for name in (op.name, op.name + _PHASE1)]
    return sorted([*names, "Executor", "aclDestroyAclOpExecutor", "aclSetAclOpExecutorRepeatable"])
