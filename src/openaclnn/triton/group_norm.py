# SPDX-License-Identifier: Apache-2.0
"""GroupNormSwish and its gradient: layouts, workspaces, launches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..rows.schema import Op
from .group_norm_division import Division, Prepared, Tuning, prepare_forward, prepare_gradient
from .launching import aligned

tuning = Tuning()
_MULTIPROCESSORS, _GENERATION = 4, 8  # in the interpreter
_prepared: dict[Any, Prepared] = {}
_gpus: dict[int | None, tuple[int, int]] = {}


def _gpu(device: torch.device) -> tuple[int, int]:
    """Multiprocessors, and the generation: 9 is Hopper."""
    if device.type != "cuda":
        return _MULTIPROCESSORS, _GENERATION
    if device.index not in _gpus:
        properties = torch.cuda.get_device_properties(device)
        _gpus[device.index] = properties.multi_processor_count, properties.major
    return _gpus[device.index]


def _is_last(t: Tensor) -> bool:
    """Whether it is dense with the channels last in memory."""
    if t.dim() == 4:
        return bool(t.is_contiguous(memory_format=torch.channels_last))
    return bool(t.movedim(1, -1).is_contiguous())


def _layout(x: Tensor) -> bool:
    """Whether the kernels see the channels last; x is copied if it is in neither layout."""
    if x.is_contiguous():
        return bool(math.prod(x.shape[2:]) == 1)
    return _is_last(x)


def _is_dense(t: Tensor, last: bool) -> bool:
    return _is_last(t) if last else t.is_contiguous()


def _dense(t: Tensor, last: bool) -> Tensor:
    if _is_dense(t, last):
        return t
    return t.movedim(1, -1).contiguous().movedim(-1, 1) if last else t.contiguous()


def _writable(out: Tensor, last: bool, read: list[Tensor]) -> Tensor:
    """`out`, or a tensor to be copied to it: where it is not dense, or shares its memory with what
    other programs still read."""
    if _is_dense(out, last) and all(out.data_ptr() != t.data_ptr() for t in read):
        return out
    like = out.movedim(1, -1) if last else out
    made = torch.empty_like(like, memory_format=torch.contiguous_format)
    return made.movedim(-1, 1) if last else made


def _find(
    kind: str, tensors: list[Tensor], last: bool, groups: int, numbers: Any,
    prepare: Callable[[Division], Prepared],
) -> Prepared:  # fmt: skip
    """The launches for tensors of this kind; the first is x."""
    x = tensors[0]
    dtypes = tuple(t.dtype for t in tensors)
    key = (
        kind, x.shape, last, groups, repr(numbers), dtypes, aligned(tensors), x.device, tuning,
    )  # fmt: skip
    found = _prepared.get(key)
    if found is None:
        n, c, *positions = x.shape
        processors, generation = _gpu(x.device)
        division = Division(
            n, c, math.prod(positions), groups, last, x.element_size(), processors, tuning,
            early=generation >= 9,
        )  # fmt: skip
        found = _prepared[key] = prepare(division)
    return found


def _counters(x: Tensor, count: int) -> Tensor:
    return torch.zeros(count, dtype=torch.int32, device=x.device)


def run(op: Op, named: dict[str, Any]) -> None:
    """Enqueues the row; parameters by C name."""
    if op.python == "group_norm_swish":
        _forward(named)
    else:
        _gradient(named)


def _forward(named: dict[str, Any]) -> None:
    groups, eps, scale = int(named["numGroups"]), float(named["eps"]), float(named["swishScale"])
    swish = bool(named["activateSwish"])
    last = _layout(named["x"])
    x = _dense(named["x"], last)
    gamma, beta = named["gamma"].contiguous(), named["beta"].contiguous()
    names = "yOut", "meanOut", "rstdOut"
    y = _writable(named["yOut"], last, [])
    mean, rstd = (_writable(named[name], False, [gamma, beta]) for name in names[1:])
    found = _find(
        "forward", [x, gamma, beta, y, mean, rstd], last, groups, (eps, swish, scale),
        lambda d: prepare_forward(d, eps, swish, scale),
    )  # fmt: skip
    first, *others = found.launches
    if first.is_whole:
        first(x, gamma, beta, y, mean, rstd)
    elif found.counters:
        parts = torch.empty(found.parts, dtype=found.dtype, device=x.device)
        first(x, gamma, beta, y, mean, rstd, parts, _counters(x, found.counters))
    else:
        parts = torch.empty(found.parts, dtype=found.dtype, device=x.device)
        statistics = parts  # of no use where `apply` combines the parts itself
        first(x, parts)
        if last:
            statistics = torch.empty(found.statistics, dtype=found.dtype, device=x.device)
            others[0](parts, statistics, mean, rstd)
        others[-1](x, gamma, beta, y, mean, rstd, parts, statistics)
    for name, made in zip(names, (y, mean, rstd), strict=True):
        if made is not named[name]:
            named[name].copy_(made)


def _gradient(named: dict[str, Any]) -> None:
    groups, scale = int(named["numGroups"]), float(named["swishScale"])
    last = _layout(named["x"])
    dy, x = _dense(named["dy"], last), _dense(named["x"], last)
    small = [named[name].contiguous() for name in ("mean", "rstd", "gamma", "beta")]
    mean, rstd, gamma, beta = small
    dx = _writable(named["dxOut"], last, [])
    written = {"dxOut": dx}
    for flag, name in (("dgammaIsRequire", "dgammaOut"), ("dbetaIsRequire", "dbetaOut")):
        if named[flag] and named[name] is not None:
            written[name] = _writable(named[name], False, small)
    wanted = "dgammaOut" in written, "dbetaOut" in written
    dgamma = written.get("dgammaOut", gamma)  # not written then
    dbeta = written.get("dbetaOut", beta)
    found = _find(
        "gradient", [x, dy, dx, *small, dgamma, dbeta], last, groups, (wanted, scale),
        lambda d: prepare_gradient(d, *wanted, scale),
    )  # fmt: skip
    first, *others = found.launches
    parts = torch.empty(found.parts, dtype=found.dtype, device=x.device)
    if found.counters:
        counters = _counters(x, found.counters)
        first(dy, mean, rstd, x, gamma, beta, dx, dgamma, dbeta, parts, counters)
    elif first.is_whole:
        first(dy, mean, rstd, x, gamma, beta, dx, parts)
        for launch in others:
            launch(parts, gamma, parts, dgamma, dbeta)
    else:
        first(dy, mean, rstd, x, gamma, beta, parts)
        statistics = parts  # of no use where `apply` combines the parts itself
        if last:
            statistics = torch.empty(found.statistics, dtype=found.dtype, device=x.device)
            others[0](parts, gamma, statistics, dgamma, dbeta)
        others[-1](dy, mean, rstd, x, gamma, beta, dx, dgamma, dbeta, parts, statistics)
    for name, made in written.items():
        if made is not named[name]:
            named[name].copy_(made)
