# SPDX-License-Identifier: Apache-2.0
"""A call of a row on NumPy arrays, whatever its outputs are, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..plan import plan
from ..rows.calling import made
from ..rows.schema import Op
from .arrays import Array


def execute(
    op: Op, inputs: list[Array], attributes: Mapping[str, Any], repeats: int = 1
) -> tuple[list[Any], float]:
    """The results, None for those that nobody wants, and the fastest run in seconds. The inputs are
    not changed."""
    own = [
        x.copy() if p.role == "inout" else x for x, p in zip(inputs, op.input_tensors, strict=True)
    ]
    named: dict[str, Any] = {p.name: x for p, x in zip(op.input_tensors, own, strict=True)}
    shapes = op.made_shapes(
        {name: x.shape for name, x in named.items()}, attributes, np.broadcast_shapes
    )
    for p, shape in zip(made(op), shapes, strict=True):
        named[p.name] = None if shape is None else np.empty(shape, inputs[0].dtype)
    planned = plan(op.name, **named, **attributes)
    seconds = float("inf")
    for _ in range(repeats):
        for x, original in zip(own, inputs, strict=True):
            if x is not original:
                x[...] = original
        start = time.perf_counter()
        planned.run()
        seconds = min(seconds, time.perf_counter() - start)
    return [named[p.name] for p in op.outputs], seconds
