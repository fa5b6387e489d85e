# SPDX-License-Identifier: Apache-2.0
"""The operators without a compiler: the same schemas, gradients and sentences, through Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._functorch.autograd_function import enable_single_level_autograd_function
from torch.autograd.forward_ad import unpack_dual

import openaclnn

from .. import _core
from ..rows.calling import argument_name, given, made
from ..rows.schema import Op
from ..rows.table import OPS
from .fallback_gradient import backward, save
from .schemas import NAMESPACE, out_schema, schema

_libraries: list[Any] = []  # operators live as long as the library object
WITH_OUT = "tensors of a call with out= must not require a gradient or carry a tangent"


def _overload(op: Op, name: str = "default") -> Any:
    return getattr(getattr(torch.ops.openaclnn, op.python), name)


def _tensors(values: Any) -> list[Any]:
    return [x for x in values if isinstance(x, torch.Tensor)]


def _has_tangents(tensors: list[Any]) -> bool:
    """Of nested tensors, which the kernel refuses, nobody can ask."""
    dense = [x for x in tensors if not x.is_nested]
    return any(unpack_dual(x, level=0).tangent is not None for x in dense)


def _is_recorded(tensors: list[Any]) -> bool:
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def _refuse_tangents(op: Op, tensors: list[Any]) -> None:
    if _has_tangents(tensors):
        raise NotImplementedError(
            f"{op.python}: there is no forward-mode derivative without the compiled operators"
        )


def _kernel(op: Op) -> Callable[..., Any]:
    """The CPU kernel."""
    function = getattr(openaclnn, op.python)

    def run(*values: Any, **named: Any) -> Any:
        outs = tuple(named[argument_name(op, p)] for p in made(op)) if named else ()
        written = {"out": outs[0] if len(outs) == 1 else outs} if outs else {}
        try:
            with torch.no_grad():
                return function(*values, **written)
        except openaclnn.AclnnError as error:
            raise ValueError(_core.python_sentence(OPS.index(op), str(error))) from None

    return run


def _below(overload: Any, keys: Any, values: Any, named: Any) -> Any:
    """The kernel below autograd."""
    with torch._C._AutoDispatchBelowAutograd():
        return overload.redispatch(keys & torch._C._after_autograd_keyset, *values, **named)


def _recorded(op: Op) -> Callable[..., Any]:
    """The autograd kernel of an operator that makes its outputs."""
    overload = _overload(op)

    # Tangents of one level: transforms of torch.func have removed theirs before they come here.
    class Recorded(torch.autograd.function._SingleLevelFunction):
        @staticmethod
        def forward(ctx: Any, keys: Any, *values: Any) -> Any:
            result = _below(overload, keys, values, {})
            save(op, ctx, values, result)
            return result

        @staticmethod
        def backward(ctx: Any, *incoming: Any) -> Any:
            return None, *backward(op, ctx, incoming, ctx.needs_input_grad[1:])

    def run(keys: Any, *values: Any) -> Any:
        _refuse_tangents(op, _tensors(values))
        if not _is_recorded(_tensors(values)):
            return _below(overload, keys, values, {})
        rest = [p.default for p in given(op)[len(values) :]]  # the dispatcher leaves defaults away
        with enable_single_level_autograd_function():
            return Recorded.apply(keys, *values, *rest)

    return run


def _recorded_in_place(op: Op) -> Callable[..., Any]:
    """Calls the plain form and copies its result; autograd knows both."""
    overload = _overload(op)
    plain_form = getattr(torch.ops.openaclnn, op.python.removesuffix("_")).default

    def run(keys: Any, x: Any, *values: Any) -> Any:
        _refuse_tangents(op, [x])
        if _is_recorded([x]):
            return x.copy_(plain_form(x.clone(), *values))
        return _below(overload, keys, (x, *values), {})

    return run


def _not_recorded(op: Op) -> Callable[..., Any]:
    """The autograd kernel of the overload with out=."""
    overload = _overload(op, "out")

    def run(keys: Any, *values: Any, **outs: Any) -> Any:
        tensors = _tensors((*values, *outs.values()))
        if _has_tangents(tensors) or _is_recorded(tensors):
            raise ValueError(f"{op.python}: {WITH_OUT}")
        return _below(overload, keys, values, outs)

    return run


def _tags(op: Op) -> tuple[Any, ...]:
    """`inplace`, new in torch 2.13, says that torch.compile may look through the write."""
    known = [torch.Tag.pt2_compliant_tag]
    if op.inplace and hasattr(torch.Tag, "inplace"):
        known.append(torch.Tag.inplace)
    return tuple(known)


def register() -> None:
    library = torch.library.Library(NAMESPACE, "DEF")
    _libraries.append(library)
    for op in OPS:
        library.define(schema(op), tags=_tags(op))
        library.impl(op.python, _kernel(op), "CPU")
        if (overload := out_schema(op)) is not None:
            library.define(overload, tags=_tags(op))
            library.impl(f"{op.python}.out", _kernel(op), "CPU")
    for op in OPS:
        kernel = _recorded_in_place(op) if op.inplace else _recorded(op)
        library.impl(op.python, kernel, "Autograd", with_keyset=True)
        if not op.inplace:
            library.impl(f"{op.python}.out", _not_recorded(op), "Autograd", with_keyset=True)
