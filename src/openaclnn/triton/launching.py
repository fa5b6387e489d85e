# SPDX-License-Identifier: Apache-2.0
"""Launches whose sizes do not change: after the first one, the compiled kernel is called directly,
without the search for it (10 to 20 µs a launch)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from triton.runtime.interpreter import InterpretedFunction

from .group_norm_arithmetic import swish

INTERPRETED = isinstance(swish, InterpretedFunction)


def aligned(tensors: Iterable[torch.Tensor]) -> tuple[bool, ...]:
    """What a kernel is compiled for, besides dtypes: which addresses are multiples of 16."""
    return tuple([t.data_ptr() % 16 == 0 for t in tensors])


class Launch:
    """A kernel with its grid and all arguments but the tensors, which come first. One launch serves
    tensors of one kind only: device, dtypes, aligned."""

    def __init__(
        self, kernel: Any, grid: int, sizes: dict[str, Any], options: dict[str, Any]
    ) -> None:
        self.kernel = kernel
        self.grid = (grid, 1, 1)
        self.sizes = sizes
        self.options = {"enable_fp_fusion": True, **options}  # a * b + c in one instruction
        self.compiled: Any = None
        self.values: tuple[Any, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the kernel does all but the sums over samples."""
        return bool(self.kernel.__name__ == "whole")

    def __call__(self, *tensors: torch.Tensor) -> None:
        if self.compiled is not None:
            self.compiled[self.grid](*tensors, *self.values)
            return
        names = self.kernel.arg_names[len(tensors) :]
        self.values = tuple(self.sizes[name] for name in names)
        compiled = self.kernel[self.grid](*tensors, *self.values, **self.options)
        if not INTERPRETED:
            self.compiled = compiled
