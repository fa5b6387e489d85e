# SPDX-License-Identifier: Apache-2.0
"""What torch.compile makes of the operators: inductor's kernels on the CPU.

A compilation takes seconds, so there is one for each operator and dtype: of the first attribute
set, for tensors of any size. Element-wise tensors are broadcast and flattened, those of group norm
have three dimensions. Sizes 0 and 1 are compiled for themselves; torch does that by itself.
"""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable
from typing import Any

from ..reference.evaluation import REFERENCES
from .cases import Case
from .provider import BadProvider
from .torch_provider import CALLS, Tensors, TorchProvider

LIMIT = 64  # compilations of one function: shapes with sizes of 1, or two sizes that are equal


class CompiledProvider(TorchProvider):
    name = "torch:compiled"
    alone_too = False  # torch compiles again for each number of threads

    def __init__(self) -> None:
        super().__init__()
        if shutil.which("g++") is None and shutil.which("clang++") is None:
            raise BadProvider("torch:compiled needs a C++ compiler; install g++ or clang++")
        self._key: tuple[str, str] | None = None
        self._compiled: Callable[..., Any] | None = None

    def missing(self, case: Case) -> str:
        if why := super().missing(case):
            return why
        if repr(dict(case.attributes)) != repr(dict(REFERENCES[case.op.kernel].usual)):
            return "torch:compiled has the first attribute set of an operator only"
        return ""

    def _call(self, case: Case, tensors: Tensors) -> Any:
        function = self._function(case)
        if case.op.pointwise:
            wide = self._torch.broadcast_tensors(*tensors)
            return function(*(x.reshape(-1) for x in wide)).reshape(wide[0].shape)
        rank = len(case.shapes[0])
        first = [x.reshape(*x.shape[:2], -1) if x.dim() == rank > 2 else x for x in tensors]
        if rank == 2:
            of_x = (0,) if case.op.python == "group_norm_swish" else (0, 3)
            first = [x.unsqueeze(2) if i in of_x else x for i, x in enumerate(tensors)]
        y, *rest = function(*(x.contiguous() for x in first))
        return y.reshape(case.shapes[0]), *rest

    def _function(self, case: Case) -> Callable[..., Any]:
        """Of the newest operator and dtype: torch counts the compilations of one function."""
        key = case.op.kernel, case.dtype
        if key != self._key or self._compiled is None:
            dynamo = importlib.import_module("torch._dynamo")
            dynamo.reset()
            dynamo.config.recompile_limit = LIMIT
            call, aten, attributes = CALLS[case.op.kernel], self._torch.ops.aten, case.attributes

            def function(*tensors: Any) -> Any:
                return call(aten, tensors, attributes)

            self._key = key
            self._compiled = self._torch.compile(function, dynamic=True, fullgraph=True)
        return self._compiled
