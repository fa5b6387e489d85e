# SPDX-License-Identifier: Apache-2.0
"""A row as a custom call of XLA: its outputs from the row, its refusals when it is traced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _core
from ..rows.calling import PYTHON_NAMES, given
from ..rows.schema import Op
from ..rows.table import OPS
from .building import target

NAMES = {np.dtype(jnp.dtype(name)): dtype for dtype, name in PYTHON_NAMES.items()}
_SCALARS = {"scalar": np.float64, "double": np.float64, "int64": np.int64, "bool": np.bool_}

Attributes = Mapping[str, Any]  # by Python name
Struct = Any  # jax.ShapeDtypeStruct: a shape and a dtype


def outputs(op: Op, inputs: Sequence[Any], attributes: Attributes) -> list[Struct]:
    """Shape and dtype of each output of a call that the library accepts, None where nobody wants
    it. Symbolic sizes are checked when the program runs."""
    shapes = {p.name: x.shape for p, x in zip(op.input_tensors, inputs, strict=True)}
    examples = op.example_shapes(shapes, attributes)
    taken: dict[str, Any] = {
        p.name: (str(x.dtype), examples[p.name])
        for p, x in zip(op.input_tensors, inputs, strict=True)
    }
    taken |= {p.name: attributes[p.python_name] for p in op.attributes}
    found = _core.check(OPS.index(op), *(taken.get(p.name) for p in op.parameters))
    if op.inplace:
        return [jax.ShapeDtypeStruct(inputs[0].shape, inputs[0].dtype)]
    made_shapes: Sequence[Any] = [None if x is None else x[1] for x in found]
    if examples != shapes:
        made_shapes = op.made_shapes(shapes, attributes, jnp.broadcast_shapes)
    return [
        None if x is None else jax.ShapeDtypeStruct(shape, jnp.dtype(x[0]))
        for x, shape in zip(found, made_shapes, strict=True)
    ]


def _of_one_rank(inputs: Sequence[Any]) -> list[Any]:
    """Adds leading dimensions of 1, so that batches come first in all inputs."""
    rank = max(x.ndim for x in inputs)
    return [x.reshape((1,) * (rank - x.ndim) + x.shape) for x in inputs]


def _batching(op: Op) -> str:
    if not op.pointwise:
        return "sequential"
    return "expand_dims" if op.shapes == "broadcast" else "broadcast_all"


def call(op: Op, attributes: Attributes, *inputs: Any) -> tuple[Any, ...]:
    """The outputs of a row, None for those that nobody wants."""
    results = outputs(op, inputs, attributes)
    wanted = [x for x in results if x is not None]
    function = jax.ffi.ffi_call(
        target(op.python),
        wanted,
        vmap_method=_batching(op),
        input_output_aliases={0: 0} if op.inplace else None,
    )
    named = {
        p.python_name: _SCALARS[p.kind](attributes[p.python_name])
        if p.kind in _SCALARS
        else attributes[p.python_name]
        for p in given(op)
        if p.role == "attribute" and attributes[p.python_name] is not None
    }
    found = iter(function(*(_of_one_rank(inputs) if op.shapes == "broadcast" else inputs), **named))
    return tuple(None if x is None else next(found) for x in results)
