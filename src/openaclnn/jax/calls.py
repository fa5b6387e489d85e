# SPDX-License-Identifier: Apache-2.0
"""A row as a custom call of XLA: its outputs from the row, its refusals when it is traced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import openaclnn

from ..rows.calling import PYTHON_NAMES, given, listed, made, sentence
from ..rows.schema import Op, Parameter
from ..settings import plays_any
from .building import target

NAMES = {np.dtype(jnp.dtype(name)): dtype for dtype, name in PYTHON_NAMES.items()}
_SCALARS = {"scalar": np.float64, "double": np.float64, "int64": np.int64, "bool": np.bool_}

Attributes = Mapping[str, Any]  # by Python name
Struct = Any  # jax.ShapeDtypeStruct: a shape and a dtype


def _check_dtypes(op: Op, inputs: Sequence[Any]) -> None:
    accepted = op.computed if plays_any() else op.dtypes
    for p, x in zip(op.inputs_, inputs, strict=True):
        if NAMES.get(np.dtype(x.dtype)) not in accepted:
            raise ValueError(
                f"{op.python}: {p.python_name} must have dtype {listed(accepted)}, "
                f"but got {x.dtype}"
            )


def _dtype(op: Op, p: Parameter, inputs: Sequence[Any]) -> Any:
    pairs = zip(op.inputs_, inputs, strict=True)
    dtypes = {np.dtype(x.dtype) for i, x in pairs if i.companion == p.companion}
    if len(dtypes) == 1:
        return dtypes.pop()
    return np.dtype(np.float64 if np.float64 in dtypes else np.float32)


def outputs(op: Op, inputs: Sequence[Any], attributes: Attributes) -> list[Struct]:
    """Shape and dtype of each output, None where nobody wants it. Sizes may be symbolic."""
    if op.inplace:
        return [jax.ShapeDtypeStruct(inputs[0].shape, inputs[0].dtype)]
    shapes = {p.name: x.shape for p, x in zip(op.inputs_, inputs, strict=True)}
    made_shapes = op.made_shapes(shapes, attributes, jnp.broadcast_shapes)
    return [
        None if shape is None else jax.ShapeDtypeStruct(shape, _dtype(op, p, inputs))
        for p, shape in zip(made(op), made_shapes, strict=True)
    ]


def _check(
    op: Op, inputs: Sequence[Any], attributes: Attributes, results: Sequence[Struct]
) -> None:
    """Runs phase 1 over memory that nobody touches, so that the library refuses a call when it is
    traced. Symbolic sizes are checked when the program runs."""
    structs = [*inputs, *(x for x in results if x is not None)]
    if not all(isinstance(n, int) for x in structs for n in x.shape):
        return
    taken: dict[str, Any] = {
        p.name: np.broadcast_to(np.zeros((), x.dtype), x.shape)
        for p, x in zip(op.inputs_, inputs, strict=True)
    }
    try:
        written = [None if x is None else np.empty(x.shape, x.dtype) for x in results]
    except MemoryError:
        return  # the program says so, or runs on a larger machine
    taken |= {p.name: y for p, y in zip(op.outputs, written, strict=True)}
    values = [
        attributes[p.python_name] if p.role == "attribute" else taken[p.name] for p in op.parameters
    ]
    try:
        openaclnn.plan(op.name, *values)
    except openaclnn.AclnnError as error:
        raise ValueError(sentence(op, str(error))) from None
    except TypeError as error:  # a number of more than 64 bits
        raise TypeError(sentence(op, str(error))) from None


def _undivided(
    op: Op, inputs: Sequence[Any], attributes: Attributes
) -> tuple[Parameter, str] | None:
    """What Op.undivided says. A symbolic size counts as 0, which every number divides."""
    shapes = {p.name: x.shape for p, x in zip(op.inputs_, inputs, strict=True)}
    known = op.known_sizes(shapes, attributes)
    return op.undivided({name: n if isinstance(n, int) else 0 for name, n in known.items()})


def _inferred(op: Op, inputs: Sequence[Any], attributes: Attributes) -> list[Struct]:
    """The outputs of a call that the library accepts."""
    _check_dtypes(op, inputs)
    wrong = _undivided(op, inputs, attributes)
    # A wrong number of groups may be none that a shape can have, which 0 is.
    sizes = attributes if wrong is None else {**attributes, wrong[0].python_name: 0}
    try:
        results = outputs(op, inputs, sizes)
    except (KeyError, ValueError, ZeroDivisionError):
        # The inputs do not fit each other. The library looks at them before it looks at outputs.
        likes = [jax.ShapeDtypeStruct(inputs[0].shape, inputs[0].dtype) for _ in op.outputs]
        _check(op, inputs, attributes, likes)
        raise
    _check(op, inputs, attributes, results)
    if wrong is not None:
        raise ValueError(f"{op.python}: {wrong[0].python_name} must {wrong[1]}")
    return results


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
    results = _inferred(op, inputs, attributes)
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
