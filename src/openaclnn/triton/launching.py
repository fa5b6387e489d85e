# SPDX-License-Identifier: Apache-2.0
"""Launches whose sizes do not change: after the first one, the compiled kernel is called directly,
without the search for it (10 to 20 µs a launch)."""

from __future__ import annotations

from typing import Any

import torch
from triton.runtime.interpreter import InterpretedFunction

from .group_norm_arithmetic import swish

INTERPRETED = isinstance(swish, InterpretedFunction)


class Launch:
    """A kernel with its grid and all arguments but the tensors, which come first. One launch serves
    tensors of one kind only: device, dtypes, which addresses are multiples of 16."""

    def __init__(
        self, kernel: Any, grid: int, sizes: dict[str, Any], options: dict[str, Any]
    ) -> None:
        self.kernel = kernel
        self.grid = (grid, 1, 1)
        self.options = {"enable_fp_fusion": True, **options}  # a * b + c in one instruction
        self.sizes = sizes
        self.is_whole = kernel.__name__ == "whole"  # it does all but the sums over samples
        self.values: tuple[Any, ...] = ()
        self.compiled: Any = None
        self.run: Any = None

    def __call__(self, *tensors: torch.Tensor) -> None:
        if self.compiled is None:
            names = self.kernel.arg_names[len(tensors) :]
            self.values = tuple(self.sizes[name] for name in names)
            compiled = self.kernel[self.grid](*tensors, *self.values, **self.options)
            if not INTERPRETED:
                self.compiled = compiled
            return
        if self.run is None:
            self.run = self.compiled[self.grid]
        # Addresses: Triton asks the driver whose memory a tensor's is.
        self.run(*[t.data_ptr() for t in tensors], *self.values)
