# SPDX-License-Identifier: Apache-2.0
"""Calls a function once somebody imports a module."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Once(MetaPathFinder):
    """Stands first among the finders until somebody imports the module."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self.name, self.then = name, then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)  # so that the module is found by the others
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            loader, run = spec.loader, spec.loader.exec_module

            def run_then(module: ModuleType) -> None:
                run(module)
                self.then()

            setattr(loader, "exec_module", run_then)  # noqa: B010  # of this object alone
        return spec


def when_imported(name: str, then: Callable[[], None]) -> None:
    """Calls `then` now if the module is imported, else after its import."""
    if name in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _Once(name, then))
