# SPDX-License-Identifier: Apache-2.0
"""The kernels of the operators for CUDA tensors: phase 1 on metadata, then Triton."""

from __future__ import annotations

import contextlib
import functools
import operator
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from .. import _core
from ..rows.calling import argument_name, made
from ..rows.schema import Op, Parameter
from ..rows.table import OPS
from .dtypes import plain
from .fakes import binder, check_devices, empty_output
from .schemas import NAMESPACE

_libraries: list[Any] = []  # registrations live as long as the library object


@functools.cache
def _kernels() -> Any:
    """openaclnn.triton, imported with the first CUDA tensor."""
    if torch.version.hip is not None:
        raise RuntimeError("openaclnn.torch: GPUs must be NVIDIA's, but this torch is for ROCm")
    try:
        from .. import triton
    except ImportError as error:
        raise RuntimeError(
            f"openaclnn.torch: CUDA tensors need the package triton: pip install triton ({error})"
        ) from None
    return triton


def _refuse(op: Op, p: Parameter, what: str) -> None:
    raise ValueError(f"{op.python}: {argument_name(op, p)} must {what}")


def _described(op: Op, p: Parameter, x: Any) -> tuple[str, Any, Any, int]:
    """A tensor as phase 1 sees it."""
    if x.layout is not torch.strided:
        _refuse(op, p, f"be a dense tensor in CPU or CUDA memory, but is one of layout {x.layout}")
    address = x.data_ptr()
    if address == 0 and x.numel() > 0:
        _refuse(op, p, "be a dense tensor in CPU or CUDA memory, but is one without memory")
    return plain(x.dtype), x.shape, x.stride(), address


def _number(op: Op, p: Parameter, value: Any) -> Any:
    if isinstance(value, complex):
        _refuse(op, p, "be a real number, but is complex")
    return value


Checked = list[tuple[str, tuple[int, ...]] | None]


def checker(op: Op) -> Callable[[dict[str, Any]], Checked]:
    """Phase 1 of the row: from values by C name to dtype and shape of each output that is to be
    made."""
    index = OPS.index(op)  # compares rows
    describers = [(p, _described if p.kind == "tensor" else _number) for p in op.parameters]

    def check(named: dict[str, Any]) -> Checked:
        values = [(p, named.get(p.name), describe) for p, describe in describers]
        check_devices(
            op, [(p, x) for p, x, describe in values if describe is _described and x is not None]
        )
        return _core.check(
            index, *(None if x is None else describe(op, p, x) for p, x, describe in values)
        )

    return check


_HERE = contextlib.nullcontext()


def guard(device: torch.device) -> Any:
    """Makes the device of the tensors the current one."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return _HERE
    return torch.cuda.device(device)


class _Call:
    """What follows from the kind of a call: how its outputs are made, and what enqueues it."""

    def __init__(self, op: Op, named: dict[str, Any], shapes: Checked) -> None:
        inputs = [named[p.name] for p in op.input_tensors]
        self.device: torch.device = inputs[0].device
        self.outputs: list[tuple[str, Callable[[], Any]]] = []
        for p, found in zip(made(op), shapes, strict=True):
            if found is not None:
                dtype, shape = getattr(torch, found[0]), found[1]
                out = empty_output(inputs, shape, dtype, operator.eq, _is_dense)
                make = functools.partial(
                    torch.empty_strided, out.shape, out.stride(), dtype=dtype, device=self.device
                )
                self.outputs.append((p.name, make))
                named[p.name] = out
        with guard(self.device):
            self.launch = _kernels().launcher(op, named)


_is_dense = torch.ops.aten.is_non_overlapping_and_dense.default
_pattern = struct.Struct("d").pack

_calls: dict[tuple[Any, ...], _Call] = {}  # by kind
_MOST = 4096


def forget() -> None:
    """Prepares calls again from now on: they were too many, or the tuning has changed."""
    _calls.clear()


def _kind(index: int, values: Iterable[Any]) -> tuple[Any, ...] | None:
    """All that phase 1 and the kernels ask of a call whose outputs share no memory with its inputs;
    None if that cannot be said. Numbers by their bits, which tell -0 from 0."""
    kind = [index, _core.product()]
    for x in values:
        if isinstance(x, torch.Tensor):
            if x.layout is not torch.strided:
                return None
            address = x.data_ptr()
            kind += (x.dtype, x.shape, x.stride(), x.device, address % 16 if address else None)
        elif isinstance(x, float):
            kind.append(_pattern(x))
        elif x is None or isinstance(x, int | str):
            kind += (x.__class__, x)
        else:
            return None
    return tuple(kind)


def kernel(op: Op) -> Callable[..., Any]:
    """The kernel of every overload of the row."""
    bind, check, index = binder(op), checker(op), OPS.index(op)
    outputs = [(p.name, argument_name(op, p)) for p in made(op)]
    results = [p.name for p in op.outputs]
    only = results[0] if len(results) == 1 else None
    absent = dict.fromkeys((name for name, _ in outputs), None)
    # Where a call writes into a tensor beside others, phase 1 compares their addresses.
    alone = not op.inplace or len(op.tensors) == 1

    def shared(named: dict[str, Any]) -> Iterator[bool]:
        """Which outputs start where which inputs do."""
        inputs = [named[p.name].data_ptr() for p in op.input_tensors]
        for name, _ in outputs:
            if named[name] is not None:
                yield from (named[name].data_ptr() == address for address in inputs)

    def found(named: dict[str, Any], given: bool) -> _Call:
        kind = _kind(index, named.values())
        if given and kind is not None:
            kind += tuple(shared(named))
        call = _calls.get(kind) if kind is not None else None
        if call is None or given or not alone:
            shapes = check(named)
            if call is None:
                call = _Call(op, dict(named), shapes)
                if len(_calls) >= _MOST:
                    forget()
                if kind is not None:
                    _calls[kind] = call
        return call

    def run(*positional: Any, **keywords: Any) -> Any:
        named = bind(positional, keywords) | absent
        given = False
        if keywords:
            for name, argument in outputs:
                named[name] = keywords.get(argument)
                given = given or named[name] is not None
        call = found(named, given)
        with guard(call.device):
            for name, make in call.outputs:
                named[name] = make()
            call.launch(named)
        if only is not None:
            return named[only]
        return tuple([named[name] for name in results])

    return run


class Plan:
    """Phase 1 once; each run enqueues phase 2 on torch's current stream, or on the given one."""

    def __init__(self, index: int, *values: Any) -> None:
        self._op = OPS[index]
        named = {p.name: x for p, x in zip(self._op.parameters, values, strict=True)}
        for p in self._op.tensors:
            x = named[p.name]
            if x is None:
                continue
            if not isinstance(x, torch.Tensor):
                _refuse(
                    self._op, p, f"be a torch tensor, like the others, but is a {type(x).__name__}"
                )
            if x.requires_grad and torch.is_grad_enabled():
                _refuse(self._op, p, "not require a gradient, which plans never record")
        missing = [x is not None for x in checker(self._op)(named)]
        if any(missing):
            _refuse(self._op, made(self._op)[missing.index(True)], "be given to a plan")
        self._device = next(named[p.name].device for p in self._op.tensors)
        with guard(self._device):
            self._launch = _kernels().prepare(self._op, named)

    @property
    def name(self) -> str:
        return self._op.name

    @property
    def workspace_size(self) -> int:
        """Kernels take theirs from torch's allocator."""
        return 0

    def run(self, stream: Any = None) -> None:
        if stream is not None and not isinstance(stream, torch.cuda.Stream):
            raise TypeError(
                f"{self._op.python}: stream must be a torch.cuda.Stream for CUDA tensors, "
                f"but got {type(stream).__name__}"
            )
        with guard(self._device), torch.cuda.stream(stream):
            self._launch()


def is_cuda(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_cuda


def register() -> None:
    library = torch.library.Library(NAMESPACE, "IMPL", "CUDA")
    _libraries.append(library)
    for op in OPS:
        library.impl(op.python, kernel(op))
        if not op.inplace:
            library.impl(f"{op.python}.out", kernel(op))
