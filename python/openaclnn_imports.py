# SPDX-License-Identifier: Apache-2.0
"""What openaclnn changes in packages of a process on device npu, at the moment they are imported.

Standard library only: every Python process of `openaclnn npu` runs it, and most import none of
these packages. The changes themselves: openaclnn.torch_npu.compiling, .profiling and
.triton_kernels.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import threading
import warnings
from collections.abc import Sequence
from types import ModuleType

# The module, and the module whose function `change` is called with it.
CHANGES = {
    "torch_npu.dynamo": "openaclnn.torch_npu.compiling",
    "torch_npu.op_plugin.meta._meta_registrations": "openaclnn.torch_npu.compiling",
    "torch_npu.profiler.analysis.prof_common_func._task_manager": "openaclnn.torch_npu.profiling",
    "torch_npu.utils._dynamo": "openaclnn.torch_npu.compiling",
    "torch._dynamo.trace_rules": "openaclnn.torch_npu.compiling",
    "torch._inductor.compile_fx": "openaclnn.torch_npu.compiling",
    "triton": "openaclnn.torch_npu.triton_kernels",
}


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: importlib.abc.Loader) -> None:
        self.loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        module.__loader__ = spec.loader = self.loader
        self.loader.exec_module(module)
        importlib.import_module(CHANGES[module.__name__]).change(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing itself; wraps the loader of a module of CHANGES."""

    def __init__(self) -> None:
        self._here = threading.local()  # .searching: find_spec calls itself

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in CHANGES or getattr(self._here, "searching", False):
            return None
        self._here.searching = True
        try:
            spec = importlib.util.find_spec(name)
            # Another Python than openaclnn's: nothing is changed.
            if spec is None or spec.loader is None or not importlib.util.find_spec("openaclnn"):
                return spec
        finally:
            self._here.searching = False
        if name == "triton":  # read when a kernel is decorated, those of triton itself included
            os.environ.setdefault("TRITON_INTERPRET", "1")
        spec.loader = _Loader(spec.loader)
        return spec


def install() -> None:
    if "triton" in sys.modules and not os.environ.get("TRITON_INTERPRET"):
        warnings.warn(
            "triton was imported before openaclnn.npu: its kernels do not take npu tensors; "
            "import openaclnn.npu first",
            stacklevel=3,
        )
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
