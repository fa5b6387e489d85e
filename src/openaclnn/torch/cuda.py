# SPDX-License-Identifier: Apache-2.0
"""The kernels of the operators for CUDA tensors: phase 1 on metadata, then Triton."""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable
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


def guard(device: torch.device) -> Any:
    """Makes the device of the tensors the current one."""
    return torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext()


def kernel(op: Op) -> Callable[..., Any]:
    """The kernel of every overload of the row."""
    bind, check = binder(op), checker(op)
    outputs = [(p.name, argument_name(op, p)) for p in made(op)]
    is_dense = torch.ops.aten.is_non_overlapping_and_dense.default

    def run(*positional: Any, **keywords: Any) -> Any:
        named = bind(positional, keywords)
        for name, argument in outputs:
            named[name] = keywords.get(argument)
        shapes = check(named)
        inputs = [named[p.name] for p in op.input_tensors]
        for (name, _), found in zip(outputs, shapes, strict=True):
            if found is not None:
                dtype, shape = getattr(torch, found[0]), found[1]
                named[name] = empty_output(inputs, shape, dtype, operator.eq, is_dense)
        with guard(inputs[0].device):
            _kernels().compute(op, named)
        results = tuple(named[p.name] for p in op.outputs)
        return results[0] if len(results) == 1 else results

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
