# SPDX-License-Identifier: Apache-2.0
"""What an operator returns without computing it: shapes, dtypes and strides, also symbolic ones.

torch.compile and torch.export trace with meta and fake tensors. Strides follow the rule of
core/torch/compute.h.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .. import _core
from ..rows.calling import argument_name, given, made
from ..rows.schema import Op, Parameter
from ..rows.shapes import shape_of
from ..rows.table import OPS
from .dtypes import plain
from .schemas import NAMESPACE

Shape = Sequence[Any]  # int or torch.SymInt


def _same(a: Shape, b: Shape) -> bool:
    """Whether two shapes are surely equal."""
    pairs = list(zip(a, b, strict=False))
    if not any(isinstance(n, torch.SymInt) for pair in pairs for n in pair):
        return tuple(a) == tuple(b)
    from torch.fx.experimental.symbolic_shapes import guard_or_false  # sympy comes with it

    return len(a) == len(b) and all(guard_or_false(m == n) for m, n in pairs)


def _is_dense(x: Any) -> bool:
    return bool(torch._prims_common.is_non_overlapping_and_dense_or_false(x))


def empty_output(
    inputs: list[Any], shape: Shape, dtype: torch.dtype,
    same: Callable[[Shape, Shape], bool] = _same,
    is_dense: Callable[[Any], bool] = _is_dense,
) -> Any:  # fmt: skip
    """Laid out like the first dense input of its shape, else like the first of its shape. The two
    questions by default take symbolic sizes."""
    alike = [x for x in inputs if same(x.shape, shape)]
    if not alike:
        return torch.empty(shape, dtype=dtype, device=inputs[0].device)
    like = alike[0] if len(alike) == 1 else next(filter(is_dense, alike), alike[0])
    return torch.empty_like(like, dtype=dtype)


def check_devices(op: Op, tensors: list[tuple[Parameter, Any]]) -> None:
    """A tensor on a device brings all of its call there, and the others could not be read."""
    (first, one), *rest = tensors
    for p, x in rest:
        if x.device != one.device:
            raise ValueError(
                f"{op.python}: {argument_name(op, p)} must be on the device of "
                f"{first.python_name}, {one.device}, but is on {x.device}"
            )


def _known(value: Any) -> Any:
    """A symbolic number as the example that is traced, itself where only data give it."""
    if not isinstance(value, torch.SymInt | torch.SymFloat) or not value.node.has_hint():
        return value
    return value.node.hint


def _written(x: Any) -> Any:
    """A tensor that is written: its strides say whether it overlaps itself."""
    shape, strides = [_known(n) for n in x.shape], [_known(n) for n in x.stride()]
    plainly = all(isinstance(n, int) for n in (*shape, *strides))
    return (plain(x.dtype), shape, strides) if plainly else None


def _check(op: Op, named: dict[str, Any]) -> list[tuple[str, tuple[int, ...]] | None]:
    """Phase 1 of the call: dtype and shape of the outputs that are not among the arguments."""
    taken = {p.name: _known(named[p.name]) for p in op.attributes}
    unknown = [n for n, x in taken.items() if isinstance(x, torch.SymInt | torch.SymFloat)]
    taken |= dict.fromkeys(unknown, 1)
    shapes = {p.name: [_known(n) for n in named[p.name].shape] for p in op.input_tensors}
    attributes = {p.python_name: taken[p.name] for p in op.attributes}
    examples = op.example_shapes(shapes, attributes)
    taken |= {p.name: (plain(named[p.name].dtype), examples[p.name]) for p in op.input_tensors}
    taken |= {
        p.name: written
        for p in op.outputs
        if (x := named.get(p.name)) is not None and (written := _written(x)) is not None
    }
    return _core.check(OPS.index(op), *(taken.get(p.name) for p in op.parameters))


def _symbolic_shapes(op: Op, named: dict[str, Any]) -> list[Shape | None]:
    """The shape of each output, None where nobody wants it. Sizes of one name become one size."""
    shapes = {p.name: named[p.name].shape for p in op.input_tensors}
    attributes = {p.python_name: named[p.name] for p in op.attributes}
    known = op.known_sizes(shapes, attributes)
    for p in (p for p in op.input_tensors if not (p.form.flat or p.form.broadcast)):
        shape, due = list(shapes[p.name]), list(shape_of(p.form, known))
        what = f"{op.python}: {p.python_name} must have the shape {due}, but got {shape}"
        for m, n in zip(shape, due, strict=True):
            torch._check_value(m == n, lambda what=what: what)
    return op.made_shapes(shapes, attributes, torch.broadcast_shapes)


def _is_symbolic(op: Op, named: dict[str, Any]) -> bool:
    sizes = [n for p in op.input_tensors for n in named[p.name].shape]
    values = [named[p.name] for p in op.attributes]
    return any(isinstance(n, torch.SymInt) for n in (*sizes, *values))


def binder(op: Op) -> Callable[[Sequence[Any], dict[str, Any]], dict[str, Any]]:
    """What makes of a call's arguments what is given, by C name; the dispatcher leaves defaults
    away."""
    defaults = {p.name: p.default for p in given(op)}
    names = tuple(defaults)
    by_argument = [(p.name, p.python_name) for p in given(op)]

    def bind(positional: Sequence[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        named = defaults | dict(zip(names, positional, strict=False))
        if keywords:
            named |= {name: keywords[python] for name, python in by_argument if python in keywords}
        return named

    return bind


def fake(op: Op) -> Callable[..., Any]:
    """An operator that makes its outputs or works in place."""
    bind = binder(op)

    def run(*positional: Any, **keywords: Any) -> Any:
        named = bind(positional, keywords)
        check_devices(op, [(p, named[p.name]) for p in op.input_tensors])
        found = _check(op, named)
        if op.inplace:
            return next(named[p.name] for p in op.parameters if p.role == "inout")
        shapes: Sequence[Any] = [None if x is None else x[1] for x in found]
        if _is_symbolic(op, named):
            shapes = _symbolic_shapes(op, named)
        inputs = [named[p.name] for p in op.input_tensors]
        results = [
            None if x is None else empty_output(inputs, shape, getattr(torch, x[0]))
            for x, shape in zip(found, shapes, strict=True)
        ]
        return results[0] if len(results) == 1 else tuple(results)

    return run


def fake_out(op: Op) -> Callable[..., Any]:
    """The overload with out=: it returns the tensors that it writes."""
    bind = binder(op)

    def run(*positional: Any, **keywords: Any) -> Any:
        outs = {p.name: keywords[argument_name(op, p)] for p in made(op)}
        named = bind(positional, keywords) | outs
        check_devices(op, [(p, named[p.name]) for p in op.tensors])
        _check(op, named)
        written = tuple(outs.values())
        return written[0] if len(written) == 1 else written

    return run


def register_fakes() -> None:
    for op in OPS:
        torch.library.register_fake(f"{NAMESPACE}::{op.python}", fake(op))
        if not op.inplace:
            torch.library.register_fake(f"{NAMESPACE}::{op.python}.out", fake_out(op))
