# SPDX-License-Identifier: Apache-2.0
"""How the operands of an element-wise call lie in memory, reduced to what a kernel needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Options of every launch: no contraction of a * b + c, so that a formula has the same bits in each
# kernel, and in Triton's interpreter.
OPTIONS = {"enable_fp_fusion": False}

View = tuple[Sequence[int], Sequence[int]]  # shape and strides

# Offsets below this fit in 32 bits, with a block to spare.
LARGE = 2**31 - 2**16


@dataclass(frozen=True)
class Layout:
    """Dimensions from the outermost to the innermost, and the strides of each operand in them."""

    shape: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    @property
    def is_flat(self) -> bool:
        """Whether element i of every operand lies at offset i."""
        return len(self.shape) <= 1 and all(s == (1,) * len(s) for s in self.strides)

    @property
    def is_large(self) -> bool:
        """Whether an index or an offset needs 64 bits."""
        count = 1
        for n in self.shape:
            count *= n
        reach = (
            sum((n - 1) * s for n, s in zip(self.shape, strides, strict=True))
            for strides in self.strides
        )
        return max(count, *reach) >= LARGE


def collapse(operands: Sequence[View]) -> Layout:
    """The layout of operands that broadcast to the shape of the first, whose strides decide the
    order of the dimensions. Dimensions that can be walked as one become one."""
    shape = operands[0][0]
    strides = []
    for own, steps in operands:
        missing = (0,) * (len(shape) - len(own))
        # a dimension that is repeated stays where it is
        strides.append((*missing, *(0 if n == 1 else s for n, s in zip(own, steps, strict=True))))
    order = sorted((d for d in range(len(shape)) if shape[d] != 1), key=lambda d: -strides[0][d])
    sizes: list[int] = []
    walks: list[list[int]] = []  # the strides of all operands, for each dimension
    for d in order:
        walk = [s[d] for s in strides]
        if sizes and all(a == shape[d] * b for a, b in zip(walks[-1], walk, strict=True)):
            sizes[-1] *= shape[d]
            walks[-1] = walk
        else:
            sizes.append(shape[d])
            walks.append(walk)
    return Layout(tuple(sizes), tuple(tuple(w[i] for w in walks) for i in range(len(operands))))
