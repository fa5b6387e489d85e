# SPDX-License-Identifier: Apache-2.0
"""The gradients of the rows as custom_vjp: the row that each row names, or a refusal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from ..rows.gradients import WHERE, differentiable, gradient_row, refusal, sources
from ..rows.schema import Op
from ..rows.table import OPS
from ..settings import is_unrestricted
from .calls import NAMES, Attributes, call

BY_PYTHON_NAME = {op.python: op for op in OPS}


def _check(op: Op, inputs: Sequence[Any], attributes: Attributes, wanted: set[str]) -> None:
    """Whether the row has the gradients that are wanted, for these arguments."""
    having = {p.name for p in differentiable(op)} | set(op.gradient.zero if op.gradient else ())
    for p in op.input_tensors:
        if p.name in wanted - having:
            second = ", a second derivative" if op.gradient else ""
            raise NotImplementedError(
                f"{op.python}: there is no gradient by {p.python_name}{second}"
            )
    if op.gradient is None or not wanted:
        return
    named = {p.name: attributes[p.python_name] for p in op.attributes}
    found = {p.name: np.dtype(x.dtype) for p, x in zip(op.input_tensors, inputs, strict=True)}
    dtypes = {name: NAMES.get(dtype, str(dtype)) for name, dtype in found.items()}
    if why := refusal(op, dtypes, named, is_unrestricted()):
        raise ValueError(why)
    for p in op.attributes:
        if p.name in op.gradient.nonnegative and named[p.name] < 0:
            raise ValueError(
                f"{op.python}: {p.python_name} must not be negative {WHERE}, "
                f"but got {named[p.name]:g}"
            )


def _fitted(gradient: Any, x: Any) -> Any:
    """The gradient of an input that was broadcast or is narrower than the result."""
    extra = gradient.ndim - x.ndim
    spread = tuple(
        d for d in range(gradient.ndim) if d < extra or (x.shape[d - extra] != gradient.shape[d])
    )
    if spread:
        gradient = gradient.sum(spread, keepdims=True).reshape(x.shape)
    return gradient.astype(x.dtype)


def _gradients(
    op: Op, values: Mapping[str, Any], incoming: Any, wanted: Mapping[str, Any]
) -> dict[str, Any]:
    """The gradient row, by input."""
    row = gradient_row(op)
    assert row is not None
    tensors: list[Any] = []
    attributes: dict[str, Any] = {}
    for s in sources(op):
        known = {"incoming": incoming, "constant": s.constant, "wanted": s.name in wanted}
        if s.kind == "made":
            continue
        value = known[s.kind] if s.kind in known else values[s.name]
        if s.parameter.kind == "tensor":
            tensors.append(value)
        else:
            attributes[s.parameter.python_name] = value
    results = differentiable_call(row, attributes)(*tensors)
    order = [s.name for s in sources(op) if s.kind == "made"]
    return dict(zip(order, results, strict=True))


def differentiable_call(op: Op, attributes: Attributes) -> Callable[..., tuple[Any, ...]]:
    """The row for these attributes, as a function of its inputs that jax.grad knows."""
    return _cached(op.python, tuple((name, *_exact(x)) for name, x in attributes.items()))


def _exact(value: Any) -> tuple[Any, ...]:
    """Distinguishes 0.0 from -0.0, and True from 1, which are equal."""
    return value, type(value), math.copysign(1.0, value) if isinstance(value, float) else None


@lru_cache(maxsize=1024)
def _cached(name: str, given: tuple[Any, ...]) -> Callable[..., tuple[Any, ...]]:
    op, attributes = BY_PYTHON_NAME[name], {name: value for name, value, *_ in given}
    function = jax.custom_vjp(partial(call, op, attributes))
    names = [p.name for p in op.input_tensors]
    used = {s.name for s in sources(op) if s.kind == "value"}

    def forward(*primals: Any) -> Any:
        inputs = [x.value for x in primals]
        wanted = {n for n, x in zip(names, primals, strict=True) if x.perturbed}
        _check(op, inputs, attributes, wanted)
        results = function(*inputs)  # which jax.grad of a gradient knows
        known = dict(zip(names, inputs, strict=True))
        known |= {p.name: y for p, y in zip(op.outputs, results, strict=True)}
        kept = {n: x for n, x in known.items() if n in used}
        # The names of what is wanted and the shapes of the inputs are not arrays: dtypes and shapes
        # pass as arrays without elements, names as keys.
        likes = [jnp.zeros((0, *x.shape), x.dtype) for x in inputs]
        return results, (kept, likes, dict.fromkeys(wanted))

    def backward(residuals: Any, incoming: Any) -> Any:
        kept, likes, wanted = residuals
        for p, g in zip(op.outputs[1:], incoming[1:], strict=True):
            if g is not None and not isinstance(g, SymbolicZero):
                raise NotImplementedError(
                    f"{op.python}: there is no gradient of {p.result_name}; "
                    "jax.lax.stop_gradient makes it a constant"
                )
        able = wanted.keys() & {p.name for p in differentiable(op)}
        if not able or isinstance(incoming[0], SymbolicZero):
            return (None,) * len(names)
        values = {p.name: attributes[p.python_name] for p in op.attributes} | kept
        found = _gradients(op, values, incoming[0], wanted)
        return tuple(
            _fitted(found[n], jax.ShapeDtypeStruct(like.shape[1:], like.dtype))
            if n in able
            else None
            for n, like in zip(names, likes, strict=True)
        )

    function.defvjp(forward, backward, symbolic_zeros=True)
    compiled: Callable[..., tuple[Any, ...]] = jax.jit(function)
    return compiled
