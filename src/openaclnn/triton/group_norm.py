# SPDX-License-Identifier: Apache-2.0
"""GroupNormSwish and its gradient: layouts, workspaces, launches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..rows.schema import Op
from .group_norm_arithmetic import CAN_START_EARLY
from .group_norm_division import Division, Prepared, Tuning, prepare_forward, prepare_gradient

Named = dict[str, Any]
Enqueue = Callable[[Named], None]

tuning = Tuning()
_MULTIPROCESSORS, _GENERATION = 4, 8  # in the interpreter


def _gpu(device: torch.device) -> tuple[int, int]:
    """Multiprocessors, and the generation: 9 is Hopper."""
    if device.type != "cuda":
        return _MULTIPROCESSORS, _GENERATION
    properties = torch.cuda.get_device_properties(device)
    return properties.multi_processor_count, properties.major


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
    return t.movedim(1, -1).contiguous().movedim(-1, 1) if last else t.contiguous()


def _dense_like(out: Tensor, last: bool) -> Tensor:
    like = out.movedim(1, -1) if last else out
    made = torch.empty_like(like, memory_format=torch.contiguous_format)
    return made.movedim(-1, 1) if last else made


class _Tensors:
    """Of a kind of call: which inputs are copied for the kernels, which outputs from a tensor that
    they write instead. By name, whether the channels are last."""

    def __init__(self, named: Named, last: bool, large: set[str]) -> None:
        self.named, self.last, self.large = named, last, large
        self.copied: dict[str, bool] = {}
        self.replaced: dict[str, bool] = {}

    def _form(self, name: str) -> bool:
        return self.last and name in self.large

    def read(self, *names: str) -> None:
        for name in names:
            if not _is_dense(self.named[name], self._form(name)):
                self.copied[name] = self._form(name)

    def write(self, name: str, *read: str) -> None:
        """An output is replaced where it is not dense, or shares its memory with what other
        programs still read."""
        out, form = self.named[name], self._form(name)
        shares = any(out.data_ptr() == self.named[n].data_ptr() for n in read)
        if shares or not _is_dense(out, form):
            self.replaced[name] = form

    def around(self, enqueue: Enqueue) -> Enqueue:
        copied, replaced = self.copied, self.replaced
        if not copied and not replaced:
            return enqueue

        def with_copies(named: Named) -> None:
            dense = dict(named)
            for name, last in copied.items():
                dense[name] = _dense(named[name], last)
            for name, last in replaced.items():
                dense[name] = _dense_like(named[name], last)
            enqueue(dense)
            for name in replaced:
                named[name].copy_(dense[name])

        return with_copies


def _division(x: Tensor, last: bool, groups: int) -> Division:
    n, c, *positions = x.shape
    processors, generation = _gpu(x.device)
    return Division(
        n, c, math.prod(positions), groups, last, x.element_size(), processors, tuning,
        early=generation >= 9 and CAN_START_EARLY,
    )  # fmt: skip


def launcher(op: Op, named: Named) -> Enqueue:
    """What enqueues the row on tensors of the same kind; parameters by C name."""
    return (_forward if op.python == "group_norm_swish" else _gradient)(named)


def run(op: Op, named: Named) -> None:
    launcher(op, named)(named)


def _workspace(found: Prepared, like: Tensor) -> Tensor:
    return torch.empty(found.parts, dtype=found.dtype, device=like.device)


def _statistics(found: Prepared, like: Tensor) -> Tensor:
    return torch.empty(found.statistics, dtype=found.dtype, device=like.device)


def _counters(found: Prepared, like: Tensor) -> Tensor:
    return torch.zeros(found.counters, dtype=torch.int32, device=like.device)


def _forward(named: Named) -> Enqueue:
    last = _layout(named["x"])
    tensors = _Tensors(named, last, {"x", "yOut"})
    tensors.read("x", "gamma", "beta")
    tensors.write("yOut")
    tensors.write("meanOut", "gamma", "beta")
    tensors.write("rstdOut", "gamma", "beta")
    division = _division(named["x"], last, int(named["numGroups"]))
    eps, scale = float(named["eps"]), float(named["swishScale"])
    found = prepare_forward(division, eps, bool(named["activateSwish"]), scale)
    first, *others = found.launches

    def enqueue(named: Named) -> None:
        x = named["x"]
        all_ = x, named["gamma"], named["beta"], named["yOut"], named["meanOut"], named["rstdOut"]
        if first.is_whole:
            first(*all_)
            return
        parts = _workspace(found, x)
        if found.counters:
            first(*all_, parts, _counters(found, x))
            return
        first(x, parts)
        statistics = parts  # of no use where `apply` combines the parts itself
        if last:
            statistics = _statistics(found, x)
            others[0](parts, statistics, named["meanOut"], named["rstdOut"])
        others[-1](*all_, parts, statistics)

    return tensors.around(enqueue)


def _gradient(named: Named) -> Enqueue:
    last = _layout(named["x"])
    small = "mean", "rstd", "gamma", "beta"
    tensors = _Tensors(named, last, {"dy", "x", "dxOut"})
    tensors.read("dy", "x", *small)
    tensors.write("dxOut")
    flags = {"dgammaOut": "dgammaIsRequire", "dbetaOut": "dbetaIsRequire"}
    wanted = tuple(named[flag] and named[name] is not None for name, flag in flags.items())
    # One that is not wanted is not written.
    gamma_out, beta_out = (
        name if is_wanted else other
        for name, is_wanted, other in zip(flags, wanted, ("gamma", "beta"), strict=True)
    )
    for name, is_wanted in zip(flags, wanted, strict=True):
        if is_wanted:
            tensors.write(name, *small)
    division = _division(named["x"], last, int(named["numGroups"]))
    found = prepare_gradient(division, wanted[0], wanted[1], float(named["swishScale"]))
    first, *others = found.launches

    def enqueue(named: Named) -> None:
        x, dx, gamma = named["x"], named["dxOut"], named["gamma"]
        inputs = named["dy"], named["mean"], named["rstd"], x, gamma, named["beta"]
        outputs = named[gamma_out], named[beta_out]
        parts = _workspace(found, x)
        if found.counters:
            first(*inputs, dx, *outputs, parts, _counters(found, x))
        elif first.is_whole:
            first(*inputs, dx, parts)
            for launch in others:
                launch(parts, gamma, parts, *outputs)
        else:
            first(*inputs, parts)
            statistics = parts  # of no use where `apply` combines the parts itself
            if last:
                statistics = _statistics(found, x)
                others[0](parts, gamma, statistics, *outputs)
            others[-1](*inputs, dx, *outputs, parts, statistics)

    return tensors.around(enqueue)
