# SPDX-License-Identifier: Apache-2.0
"""Calls a function once somebody imports a module."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Once(MetaPathFinder):
    """Stands first among the finders until somebody imports the module."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self.name, self.then = name, then
        self.searching = threading.local()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.name or getattr(self.searching, "now", False):
            return None  # the module is found by the other finders
        self.searching.now = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self.searching.now = False
        if spec is not None and spec.loader is not None:
            loader, run = spec.loader, spec.loader.exec_module

            def run_then(module: ModuleType) -> None:
                run(module)  # may fail, and then the next import is the one
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                    self.then()

            setattr(loader, "exec_module", run_then)  # noqa: B010  # of this object alone
        return spec


def when_imported(name: str, then: Callable[[], None]) -> None:
    """Calls `then` now if the module is imported, else after its import."""
    if name in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _Once(name, then))
