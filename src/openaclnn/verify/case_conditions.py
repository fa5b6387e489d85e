# SPDX-License-Identifier: Apache-2.0
"""What may set a case apart from others, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from ..reference import patterns
from ..reference.layouts import CASE_LAYOUTS, EXPANDED, of_output
from ..rows.dtypes import DTYPES
from .cases import Case, Shape
from .condition import Condition

GAPS = ("strided", "padded")  # the other layouts are dense
BROADCAST = "where inputs are broadcast or have several shapes"
EVERY = "in every case"
SOME, LARGE = 1000, 1 << 16  # elements
PERMUTED = ("transposed", "swapped", "channels_last")  # dense, dims in another order
# What a name of values does not say.
VALUES = {
    "special": ": zeros, infinities, NaN, subnormals, ends of ranges",
    "large": ": the exponentials of some overflow",
    "mixed": ": a quarter of them special",
    "every": ": all bit patterns of the dtype",
    "bits": ": any bit patterns",
    "far": ": means far from 0, where sums of 16 bits overflow and E[x²] - E[x]² cancels",
    "hard": ": where an approximation is at its worst",
}
# What a mistake is made with.
TENSORS = {"null input": "an input", "wrong shape": "the output", "wrong dtype": "a tensor"}


def of_case(case: Case) -> Iterator[Condition]:
    """What may set it apart besides its attributes, the simplest first."""
    yield from [Condition(case.changed)] if case.changed else []
    yield from (Condition(text, of_dtypes=True) for text in _of_dtypes(case))
    yield from map(Condition, _of_memory(case))
    yield from map(Condition, _of_layout(case))
    yield from map(Condition, _of_shapes(case.shapes))
    yield Condition(f"with values {case.values}{VALUES.get(case.values, '')}")


def of_mistake(case: Case) -> str:
    what = "is NULL" if case.mistake == "null input" else f"has the {case.mistake}"
    return f"when {case.at or TENSORS[case.mistake]} {what}, which must be refused"


def _of_dtypes(case: Case) -> Iterator[str]:
    yield f"in {case.dtype}"
    if case.out:
        yield f"in {case.out}"
        yield "when the output has another dtype than the inputs"
    if DTYPES[case.dtype].bits == 16:
        yield "in dtypes of 16 bits"
    if case.companion:
        yield "with tensors of FLOAT beside those of 16 bits"


def _of_memory(case: Case) -> Iterator[str]:
    if case.alias:
        output = case.op.outputs[0].result_name
        yield f"when {output} is in the memory of an input"
        yield f"when {output} is in the memory of {case.alias}"


def _of_layout(case: Case) -> Iterator[str]:
    if names := list(_strided(case)):
        yield "where a tensor is not contiguous"
        yield from (f"where {name} is not contiguous" for name in names)
        if case.of:
            yield "where one tensor alone is not contiguous"
        if case.layout in GAPS:
            yield "where a tensor has gaps between its elements"
        if case.layout in PERMUTED:
            yield "where the dims of a tensor are permuted in memory"
    if case.layout in EXPANDED:
        yield "where a stride is 0"
    elif case.layout == "offset":
        yield "where a tensor begins at an offset"
    if case.layout != "contiguous":
        yield f"with layout {case.layout}"


def _strided(case: Case) -> Iterator[str]:
    """Names of tensors that are not contiguous."""
    for name, shape, written in case.tensors():
        if not _contiguous(_small(shape), case.layout_of(name), written):
            yield name


def _small(shape: Shape) -> Shape:
    """Contiguous in the same layouts."""
    return tuple(min(size, 2) for size in shape)


@lru_cache(maxsize=4096)
def _contiguous(shape: Shape, layout: str, output: bool) -> bool:
    move = of_output(layout) if output else CASE_LAYOUTS[layout]
    return bool(move(np.zeros(shape, np.int8)).flags.c_contiguous)


def _of_shapes(shapes: Sequence[tuple[int, ...]]) -> Iterator[str]:
    sizes = [math.prod(shape) for shape in shapes]
    if 0 in sizes:
        yield "for empty tensors"
    if len(set(shapes)) > 1:
        yield BROADCAST
    rank = max(map(len, shapes))
    if rank == 0:
        yield "for tensors of rank 0"
    if rank > 1:
        yield "for tensors of 2 dims or more"
    if rank > 4:
        yield "for tensors of more than 4 dims"
    for size in (SOME, LARGE):
        if max(sizes) >= size:
            yield f"for tensors of {size:,} elements or more"


def of_blocks(case: Case) -> Iterator[Condition]:
    """Sizes beyond which a kernel writes that computes whole blocks, perhaps of dense tensors
    alone."""
    size = max(math.prod(shape) for shape in case.shapes)
    dense = not any(_strided(case))
    for block in patterns.BLOCKS:
        if size % block:
            text = f"the number of elements is not a multiple of {block}"
            yield Condition(f"where {text}")
            if dense:
                yield Condition(f"where all tensors are contiguous and {text}")


def short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
