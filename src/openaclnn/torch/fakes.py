# SPDX-License-Identifier: Apache-2.0
"""What an operator returns without computing it: shapes, dtypes and strides, also symbolic ones.

torch.compile and torch.export trace with meta and fake tensors. Strides follow the rule of
core/torch/compute.h.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch

from ..rows.calling import argument_name, given, listed, made
from ..rows.schema import Op, Parameter
from ..rows.shapes import shape_of
from ..rows.table import OPS
from ..settings import plays_any
from .dtypes import NAMES, plain
from .schemas import NAMESPACE

Shape = Sequence[Any]  # int or torch.SymInt
MAX_RANK = 8


def _same(a: Shape, b: Shape) -> bool:
    return len(a) == len(b) and all(m == n for m, n in zip(a, b, strict=True))


def _empty(inputs: list[Any], shape: Shape, dtype: torch.dtype) -> Any:
    """Laid out like the first dense input of its shape, else like the first of its shape."""
    alike = [x for x in inputs if _same(x.shape, shape)]
    if not alike:
        return torch.empty(shape, dtype=dtype, device=inputs[0].device)
    is_dense = torch._prims_common.is_non_overlapping_and_dense_or_false
    like = alike[0] if len(alike) == 1 else next(filter(is_dense, alike), alike[0])
    return torch.empty_like(like, dtype=dtype)


def _refuse(op: Op, p: Parameter, what: str) -> NoReturn:
    raise ValueError(f"{op.python}: {argument_name(op, p)} must {what}")


def _check_devices(op: Op, tensors: list[tuple[Parameter, Any]]) -> None:
    """A meta tensor brings all of its call here, and the others would never be read."""
    (first, one), *rest = tensors
    for p, x in rest:
        if x.device != one.device:
            what = f"be on the device of {first.python_name}, {one.device}, but is on {x.device}"
            _refuse(op, p, what)


def _check(op: Op, named: dict[str, Any]) -> None:
    """Checks what can be seen before anything runs; kernels check everything."""
    first = op.inputs_[0]
    _check_devices(op, [(p, named[p.name]) for p in op.inputs_])
    for p in op.inputs_:
        x, whole = named[p.name], named[first.name].shape
        dtypes = op.computed if plays_any() else op.dtypes
        if NAMES.get(x.dtype) not in dtypes:
            _refuse(op, p, f"have dtype {listed(dtypes)}, but got {plain(x.dtype)}")
        if x.dim() > MAX_RANK:
            _refuse(op, p, f"have at most {MAX_RANK} dimensions, but got {x.dim()}")
        if op.shapes == "same" and not _same(x.shape, whole):
            what = f"have the shape of {first.python_name} {list(whole)}, but got {list(x.shape)}"
            _refuse(op, p, what)
    if op.shapes == "named":
        _check_named(op, named)


def _whose(op: Op, p: Parameter) -> str:
    """The words of core/ops/shapes.cpp: "of dy", "of the channels"."""
    before = op.inputs_[: op.inputs_.index(p)]
    alike = [q for q in before if q.form == p.form and q.form.rest]
    if alike:
        return f"of {alike[-1].python_name}"
    counts = [op.sizes[size] for size in p.form.sizes]
    return f"of the {counts[0]}" if len(counts) == 1 else f"of {' and '.join(counts)}"


def _check_named(op: Op, named: dict[str, Any]) -> None:
    """Named sizes are the same wherever they stand, and attributes divide those they should."""
    shapes = {p.name: named[p.name].shape for p in op.inputs_}
    shaped = [p for p in op.inputs_ if not p.form.flat]
    for p in shaped:
        rank, least = len(shapes[p.name]), len(p.form.sizes)
        if rank < least or (rank > least and not p.form.rest):
            wanted = f"{least} to {MAX_RANK} dimensions" if p.form.rest else f"{least} dimension"
            _refuse(op, p, f"have {wanted}{'s' * (least > 1 and not p.form.rest)}, but got {rank}")
    known = op.known_sizes(shapes, {p.python_name: named[p.name] for p in op.attributes})
    for p in shaped:
        shape, due = shapes[p.name], shape_of(p.form, known)
        if not _same(shape, due):
            what = f"have the shape {_whose(op, p)} {list(due)}, but got {list(shape)}"
            _refuse(op, p, what)
    if (wrong := op.undivided(known)) is not None:
        _refuse(op, *wrong)
    for p in (p for p in op.inputs_ if p.form.flat):
        shape, due = shapes[p.name], shape_of(p.form, known)
        if math.prod(shape) != math.prod(due) or (len(shape) > 1 and shape[0] != due[0]):
            counts = [op.sizes[size] for size in p.form.sizes]
            each = " and ".join(f"{n} {count}" for n, count in zip(due, counts, strict=True))
            what = f"have an element for each of {each}, {counts[0]} first"
            _refuse(op, p, f"{what}, but got shape {list(shape)}")


def _shapes(op: Op, named: dict[str, Any]) -> list[Shape | None]:
    """The shape of each output, None where nobody wants it."""
    shapes = {p.name: named[p.name].shape for p in op.inputs_}
    attributes = {p.python_name: named[p.name] for p in op.attributes}
    return op.made_shapes(shapes, attributes, torch.broadcast_shapes)


def _dtype(op: Op, p: Parameter, named: dict[str, Any]) -> torch.dtype:
    inputs = [named[i.name] for i in op.inputs_ if i.companion == p.companion]
    dtypes = {x.dtype for x in inputs}
    if len(dtypes) == 1:
        return dtypes.pop()
    return torch.float64 if torch.float64 in dtypes else torch.float32


def fake(op: Op) -> Callable[..., Any]:
    """An operator that makes its outputs or works in place."""

    def run(*positional: Any, **keywords: Any) -> Any:
        named = {p.name: p.default for p in given(op)}
        named |= {p.name: x for p, x in zip(given(op), positional, strict=False)}
        named |= {p.name: keywords[p.python_name] for p in given(op) if p.python_name in keywords}
        _check(op, named)
        if op.inplace:
            return next(named[p.name] for p in op.parameters if p.role == "inout")
        inputs = [named[p.name] for p in op.inputs_]
        results = [
            None if shape is None else _empty(inputs, shape, _dtype(op, p, named))
            for p, shape in zip(made(op), _shapes(op, named), strict=True)
        ]
        return results[0] if len(results) == 1 else tuple(results)

    return run


def fake_out(op: Op) -> Callable[..., Any]:
    """The overload with out=: it returns the tensors that it writes."""

    def run(*positional: Any, **keywords: Any) -> Any:
        values = zip(given(op), positional, strict=False)
        outs = [(p, keywords[argument_name(op, p)]) for p in made(op)]
        _check_devices(op, [(p, x) for p, x in values if p.kind == "tensor"] + outs)
        written = tuple(x for _, x in outs)
        return written[0] if len(written) == 1 else written

    return run


def register_fakes() -> None:
    for op in OPS:
        torch.library.register_fake(f"{NAMESPACE}::{op.python}", fake(op))
        if not op.inplace:
            torch.library.register_fake(f"{NAMESPACE}::{op.python}.out", fake_out(op))
