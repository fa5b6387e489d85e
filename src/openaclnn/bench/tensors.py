# SPDX-License-Identifier: Apache-2.0
"""The inputs and results of a call that is measured, and the call."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import openaclnn

from ..reference.evaluation import REFERENCES, Array, input_shapes, numpy_dtype
from ..rows.schema import Op
from ..rows.shapes import shape_of
from .machine import memory_for
from .measure import aligned

BLOCK = 1 << 16  # values drawn; large inputs repeat them, and the formula judges as many
SEED = 5


class CannotMeasure(ValueError):
    """One sentence."""


def tensors(
    op: Op, shape: tuple[int, ...], dtype: str, attributes: Mapping[str, Any]
) -> tuple[list[Array], list[Array]]:
    """Inputs of ordinary values, and results; in place the result is the input."""
    kind = numpy_dtype(dtype)
    try:
        shapes = input_shapes(op, shape, attributes)
        known = op.known_sizes({op.inputs_[0].name: shape}, attributes)
    except (KeyError, ValueError, IndexError):
        form = op.inputs_[0].form
        raise CannotMeasure(
            f"--shape must be {form} for {op.python}, but is {text(shape)}"
        ) from None
    made = [p for p in op.outputs if p.role == "output"]
    out = [shapes[0] if p.form.broadcast else shape_of(p.form, known) for p in made]
    need = sum(math.prod(one) for one in (*shapes, *out)) * kind.itemsize
    if not memory_for(2 * need):
        raise CannotMeasure(
            f"--shape {text(shape)} needs {2 * need >> 20:,} MiB, more than is free"
        )
    rng = np.random.default_rng(SEED)
    inputs = []
    for one, draw in zip(shapes, REFERENCES[op.kernel].domain, strict=True):
        memory = aligned(math.prod(one), kind)
        with np.errstate(over="ignore"):
            values = draw(rng, min(BLOCK, memory.size)).astype(kind)
        memory[...] = np.resize(values, memory.size)
        inputs.append(memory.reshape(one))
    _imply(op, inputs, attributes)
    if op.inplace:
        return inputs, [inputs[0]]
    return inputs, [aligned(math.prod(one), kind).reshape(one) for one in out]


def _imply(op: Op, inputs: list[Array], attributes: Mapping[str, Any]) -> None:
    """A gradient gets the mean and the rstd of its x: a peer that keeps the output of the forward
    computes something else with others."""
    implied = REFERENCES[op.kernel].implied
    if implied is not None:
        named = {p.python_name: x for p, x in zip(op.inputs_, inputs, strict=True)}
        for name, values in implied(named, attributes).items():
            named[name][...] = values.reshape(named[name].shape)


def ours(
    op: Op, inputs: list[Array], results: list[Array], attributes: Mapping[str, Any]
) -> Callable[[], Any]:
    """The call a user writes, into memory that is there."""
    given = {p.python_name: x for p, x in zip(op.inputs_, inputs, strict=True)} | dict(attributes)
    ordered = [given[p.python_name] for p in op.parameters if p.role != "output"]
    out: dict[str, Any] = {}
    if not op.inplace:
        out["out"] = results[0] if len(results) == 1 else tuple(results)
    return partial(getattr(openaclnn, op.python), *ordered, **out)


def text(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def to_torch(torch: Any, x: Array) -> Any:
    if x.dtype.name == "bfloat16":
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)
