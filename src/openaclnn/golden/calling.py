# SPDX-License-Identifier: Apache-2.0
"""Calls of C functions that ATen computes, as the child of `openaclnn verify` takes them."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..aten import Row
from ..aten.directory import directory
from ..reference.arrays import Array
from ..reference.layouts import root
from ..verify.child import WORKER, Child, Died, message_of
from ..verify.request import PATTERN, Packed
from .arguments import code_of

KINDS = {"int": "int64", "byte": "int8", "dtype": "int32"}  # where the child has another word
SECONDS = 600.0  # that a call may take


@dataclass(frozen=True)
class Call:
    """A call by values: of inputs and attributes, and arrays of the shapes and dtypes of the
    outputs; None where NULL is given."""

    row: Row
    given: Mapping[str, Any]
    outputs: Mapping[str, Array | None]


class CallRequest(Packed):
    """A call as the child takes it."""

    def __init__(
        self,
        call: Call,
        move: Callable[[Array], Array] = lambda x: x,
        move_output: Callable[[Array], Array] = lambda x: x,
        pattern: int = PATTERN,
        repeat: int = 1,
        alias: str = "",
        refuse: bool = False,
    ) -> None:
        """`move`, `move_output`: a C-ordered tensor in the layout wanted; `pattern`: what outputs
        hold before; `refuse`: phase 1 must refuse the call."""
        super().__init__(alias)

        def moved(x: Array) -> Array:
            return move(np.array(x, order="C"))

        parameters: list[dict[str, Any]] = []
        for p in call.row.given:
            kind = KINDS.get(p.kind, p.kind)
            if p.written and alias:
                self.written.append(p.name)
                parameters.append(self._tensor(p.name, self.views[alias], alias))
            elif p.written:
                template = call.outputs[p.name]
                view = (
                    None
                    if template is None
                    else move_output(np.zeros(template.shape, template.dtype))
                )
                if view is not None:
                    root(view).reshape(-1).view(np.uint8)[...] = pattern
                    self.written.append(p.name)
                parameters.append(self._tensor_or_null(p.name, view))
            elif kind == "tensor":
                x = call.given[p.name]
                parameters.append(self._tensor_or_null(p.name, None if x is None else moved(x)))
            elif kind == "tensors" and call.given[p.name] is not None:
                items = [None if x is None else moved(x) for x in call.given[p.name]]
                made = [self._tensor_or_null(f"{p.name}[{i}]", x) for i, x in enumerate(items)]
                parameters.append({"kind": kind, "value": made})
            else:
                parameters.append({"kind": kind, "value": call.given[p.name]})
        self.message = {
            "function": call.row.name,
            "parameters": parameters,
            "sizes": [len(part) for part in self.data],
            "outputs": sorted({self._memory[name] for name in self.written}),
            "repeat": repeat,
            "refuse": refuse,
            "fenced": [*range(len(self.data)), -1] if repeat > 1 else [],
        }

    def _tensor_or_null(self, name: str, view: Array | None) -> dict[str, Any]:
        return {"kind": "tensor", "null": True} if view is None else self._tensor(name, view)

    def _code(self, dtype: Any) -> int:
        code = code_of(dtype)
        assert code is not None  # arguments.py
        return code


class Refusal(Exception):
    """A call that was refused, in which step and with which status, or that ended its process."""

    def __init__(self, sentence: str, step: str = "", status: int = 0) -> None:
        super().__init__(sentence)
        self.step, self.status = step, status


_lock = threading.Lock()


@cache
def _child() -> Child:
    """openaclnn with the functions of ATen, in a child: torch of this process stays as it is."""
    libraries = directory() / "lib64"
    names = ("opapi", "ascendcl", "nnopbase")
    words = ["-I", str(WORKER), "", *(str(libraries / f"lib{name}.so") for name in names)]
    child = Child("openaclnn", words, SECONDS, os.environ | {"OPENACLNN_PRODUCT": "any"})
    atexit.register(child.close)
    return child


def computed(call: Call, pattern: int = PATTERN) -> list[Array | None]:
    """What openaclnn computes, for each output; Refusal says why not."""
    request = CallRequest(call, pattern=pattern)
    with _lock:
        try:
            answer, parts = _child().ask(request.message, request.data)
        except Died as died:
            raise Refusal(str(died)) from None
    if answer["status"] != 0:
        text = message_of(answer)
        step, status = answer["step"], answer["status"]
        raise Refusal(text or f"{step} returned {status}", step, status)
    outcome = request.outcome(answer, parts)
    if outcome.results is None:
        raise Refusal(outcome.sentence)
    results = dict(zip(request.written, outcome.results, strict=True))
    return [results.get(name) for name in call.outputs]
