# SPDX-License-Identifier: Apache-2.0
"""A row as a custom call of XLA: its outputs from the row, its refusals when it is traced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _core
from ..rows.calling import DTYPES, given
from ..rows.schema import Op, Parameter
from ..rows.table import OPS
from .building import target

NAMES = {np.dtype(jnp.dtype(name)): dtype for dtype, name in DTYPES.items()}
_SCALARS = {"scalar": np.float64, "double": np.float64, "int64": np.int64, "bool": np.bool_}

Attributes = Mapping[str, Any]  # by Python name
Struct = Any  # jax.ShapeDtypeStruct: a shape and a dtype


def _is_symbolic(size: Any) -> bool:
    return not isinstance(size, int)


def _examples(op: Op, inputs: Sequence[Any], attributes: Attributes) -> list[tuple[int, ...]]:
    """The shapes with an integer in the place of each symbolic size: the one that another input
    gives, or the attribute that divides the size, or 1."""
    values = {p.name: attributes[p.python_name] for p in op.attributes}
    fitting: dict[str, Any] = {s: max(1, values[divisor]) for s, divisor in op.multiples.items()}

    def names(p: Parameter, shape: Sequence[Any]) -> list[tuple[str, Any]]:
        rest = ("..." if p.form.broadcast else f"*{d}" for d in range(len(shape)))
        return list(zip((*p.form.sizes, *rest), shape, strict=False))

    pairs = [(p, names(p, x.shape)) for p, x in zip(op.inputs_, inputs, strict=True)]
    for p, named in reversed(pairs):  # the first counts
        if not (p.form.flat or p.form.broadcast):
            fitting |= {name: n for name, n in named if not _is_symbolic(n)}
    fitting |= values
    return [
        tuple(fitting.get(size, 1) for size in p.form.sizes)
        if p.form.flat
        else tuple(fitting.get(name, 1) if _is_symbolic(n) else n for name, n in named)
        for p, named in pairs
    ]


def outputs(op: Op, inputs: Sequence[Any], attributes: Attributes) -> list[Struct]:
    """Shape and dtype of each output of a call that the library accepts, None where nobody wants
    it. Symbolic sizes are checked when the program runs."""
    symbolic = any(_is_symbolic(n) for x in inputs for n in x.shape)
    shapes = _examples(op, inputs, attributes) if symbolic else [x.shape for x in inputs]
    taken: dict[str, Any] = {
        p.name: (str(x.dtype), shape)
        for p, x, shape in zip(op.inputs_, inputs, shapes, strict=True)
    }
    taken |= {p.name: attributes[p.python_name] for p in op.attributes}
    found = _core.check(OPS.index(op), *(taken.get(p.name) for p in op.parameters))
    if op.inplace:
        return [jax.ShapeDtypeStruct(inputs[0].shape, inputs[0].dtype)]
    made_shapes: Sequence[Any] = [None if x is None else x[1] for x in found]
    if symbolic:
        own = {p.name: x.shape for p, x in zip(op.inputs_, inputs, strict=True)}
        made_shapes = op.made_shapes(own, attributes, jnp.broadcast_shapes)
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
