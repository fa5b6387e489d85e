# SPDX-License-Identifier: Apache-2.0
"""The rows as functions of JAX arrays and static attributes."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..rows.calling import given
from ..rows.schema import Op, Parameter
from .differentiating import differentiable_call


def _flag(value: Any) -> bool:
    """Takes True and False alone: bool() would make "False" true."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError
    return bool(value)


def _number(value: Any) -> float:
    """Takes no text, which float() would read."""
    if isinstance(value, str | bytes | bytearray):
        raise TypeError
    return float(value)


_KINDS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "scalar": (_number, "a number"),
    "double": (_number, "a number"),
    "int64": (operator.index, "an integer"),
    "bool": (_flag, "True or False"),
}


def _attribute(op: Op, p: Parameter, value: Any) -> Any:
    if value is None and p.has_default:
        return p.default if p.kind != "double" and p.kind != "scalar" else float(p.default or 0)
    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"{op.python}: {p.python_name} must be known when the call is traced, but is a traced "
            "value; under jax.jit name it in static_argnames; jax.grad and jax.vmap cannot vary it"
        )
    if p.kind == "text":
        if not isinstance(value, str):
            raise TypeError(f"{op.python}: {p.python_name} must be a string, but got {value!r}")
        return value
    convert, what = _KINDS[p.kind]
    try:
        return convert(value)
    except (TypeError, ValueError):
        raise TypeError(f"{op.python}: {p.python_name} must be {what}, but got {value!r}") from None
    except OverflowError:
        raise ValueError(
            f"{op.python}: {p.python_name} must be {what} that float64 holds"
        ) from None


def _array(op: Op, p: Parameter, value: Any) -> Any:
    if isinstance(value, jax.Array):  # tracers among them; asarray takes 3 us
        return value
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError):
        kind = type(value).__name__
        raise TypeError(f"{op.python}: {p.python_name} must be an array, but got {kind}") from None


def _parameter(p: Parameter) -> inspect.Parameter:
    default = p.default if p.has_default else inspect.Parameter.empty
    return inspect.Parameter(
        p.python_name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default
    )


def function(op: Op) -> Callable[..., Any]:
    """The public function of a row."""
    signature = inspect.Signature([_parameter(p) for p in given(op)])
    inputs = [(p.python_name, p) for p in given(op) if p.role != "attribute"]
    attributes = [(p.python_name, p) for p in given(op) if p.role == "attribute"]
    single = len(op.outputs) == 1

    def run(*positional: Any, **named: Any) -> Any:
        try:
            bound = signature.bind(*positional, **named)
        except TypeError as error:
            raise TypeError(f"{op.python}{signature}: {error}") from None
        bound.apply_defaults()
        values = bound.arguments
        static = {name: _attribute(op, p, values[name]) for name, p in attributes}
        arrays = [_array(op, p, values[name]) for name, p in inputs]
        results = differentiable_call(op, static)(*arrays)
        return results[0] if single else results

    run.__name__ = run.__qualname__ = op.python
    run.__module__ = "openaclnn.jax"
    run.__doc__ = f"{op.doc}\n\n    {op.formula}\n"
    setattr(run, "__signature__", signature)  # noqa: B010  # what help() shows
    return run
