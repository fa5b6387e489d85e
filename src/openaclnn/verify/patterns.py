# SPDX-License-Identifier: Apache-2.0
"""What the wrong elements of a result have in common, and what sets a case apart from others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..reference.evaluation import REFERENCES, Array
from ..reference.judge import Output, wide
from ..reference.layouts import CASE_LAYOUTS, EXPANDED, of_output
from ..rows.dtypes import DTYPES
from .cases import Case, Shape
from .request import PATTERN

EVERY = "in every case"
NEVER = "it was never written"
NEAR = 0.125
BLOCKS = (8, 16, 32, 64, 128, 256, 512, 1024)  # what kernels are unrolled by
# Where kernels clamp, or take another formula.
BOUNDS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 16, 20, 25, 30, 32, 40, 50, 64, 80, 88, 100, 104)
LARGE = 1 << 16


@dataclass(frozen=True)
class Pattern:
    """What all wrong elements have in common, and how many elements have it."""

    text: str
    matching: int


def of_elements(case: Case, output: Output, wrong: Array) -> tuple[Pattern, ...]:
    """Those that hold for every wrong element."""
    if not wrong.any():
        return ()
    found = []
    with np.errstate(all="ignore"):
        for text, where in _predicates(case, output):
            if bool(where[wrong].all()):
                found.append(Pattern(text, int(np.count_nonzero(where))))
    return tuple(found)


def _predicates(case: Case, output: Output) -> Iterator[tuple[str, Array]]:
    got = output.got
    shape = got.shape
    bits = np.ascontiguousarray(got).view(np.uint8).reshape(*shape, got.dtype.itemsize)
    yield NEVER, (bits == PATTERN).all(axis=-1)
    if output.terms is None:
        for p, x in zip(case.op.input_tensors, output.inputs, strict=True):
            yield from _of_values(p.python_name, np.broadcast_to(wide(x), shape), output.dtype)
            yield from _beyond(p.python_name, np.broadcast_to(wide(x), shape))
            points = np.array([*REFERENCES[case.op.kernel].special(case.attributes)], np.float64)
            points = points.astype(x.dtype).astype(np.float64)
            points = points[~np.isnan(points)]
            at = np.isin(np.abs(np.broadcast_to(wide(x), shape)), np.abs(points))
            yield f"{p.python_name} is exactly where the formula switches", at
    if output.dtype in DTYPES:
        yield from _of_values("the right result", np.asarray(wide(output.nearest)), output.dtype)
    position = np.arange(got.size).reshape(shape)
    yield "it is the first element", position == 0
    for block in BLOCKS:
        if got.size > block:
            text = f"it lies behind the last multiple of {block} elements"
            yield text, position >= got.size - got.size % block


def _of_values(name: str, x: Array, dtype: str) -> Iterator[tuple[str, Array]]:
    least = math.ldexp(1, DTYPES[dtype].least)
    zero, minus = x == 0, np.signbit(x)
    yield f"{name} is ±0", zero
    yield f"{name} is -0", zero & minus
    yield f"{name} is +0", zero & ~minus
    yield f"{name} is NaN", np.isnan(x)
    yield f"{name} is infinite", np.isinf(x)
    yield f"{name} is NaN or infinite", ~np.isfinite(x)
    yield f"{name} is subnormal", (np.abs(x) < least) & (x != 0)
    yield f"{name} is between -{NEAR} and {NEAR}", np.abs(x) <= NEAR
    yield f"{name} is negative", np.signbit(x) & ~np.isnan(x)
    yield f"{name} is positive", ~np.signbit(x) & ~np.isnan(x)


def _beyond(name: str, x: Array) -> Iterator[tuple[str, Array]]:
    for bound in BOUNDS:
        yield f"{name} is below -{bound}", x < -bound
        yield f"{name} is above {bound}", x > bound


def of_case(case: Case, usual: Case) -> Iterator[str]:
    """What may set it apart, the simplest first; `usual`: the first case of the operator."""
    if case.mistake:
        yield {"null input": "when an input is NULL, which must be refused"}.get(
            case.mistake, f"when the output has the {case.mistake}, which must be refused"
        )
        return
    yield EVERY
    for name, value in case.attributes.items():
        first = usual.attributes[name]
        if not _same(value, first):
            yield f"with every {name} but {short(first)}"
            yield f"with {name} = {short(value)}"
    yield f"in {case.dtype}"
    if DTYPES[case.dtype].bits == 16:
        yield "in dtypes of 16 bits"
    yield from of_place(case)
    yield from of_layout(case)
    yield from of_shapes(case.shapes)
    yield f"with values {case.values}"


def of_place(case: Case) -> Iterator[str]:
    """The memory and the dtype of outputs and companions."""
    if case.alias:
        output = case.op.outputs[0].result_name
        yield f"when {output} is in the memory of an input"
        yield f"when {output} is {case.alias}"
    if case.out:
        yield "when the output has another dtype than the inputs"
    if case.companion:
        yield "with tensors of FLOAT beside those of 16 bits"


def of_layout(case: Case) -> Iterator[str]:
    if names := list(_strided(case)):
        yield "where a tensor is not contiguous"
        yield from (f"where {name} is not contiguous" for name in names)
    if case.layout in EXPANDED:
        yield "where a stride is 0"
    elif case.layout == "offset":
        yield "where a tensor begins at an offset"
    if case.layout != "contiguous":
        yield f"with layout {case.layout}"


def _strided(case: Case) -> Iterator[str]:
    """Names of tensors that are not contiguous."""
    for name, shape, written in case.tensors():
        if not _contiguous(_small(shape), case.layout, written):
            yield name


def _small(shape: Shape) -> Shape:
    """Contiguous in the same layouts."""
    return tuple(min(size, 2) for size in shape)


@lru_cache(maxsize=4096)
def _contiguous(shape: Shape, layout: str, output: bool) -> bool:
    move = of_output(layout) if output else CASE_LAYOUTS[layout]
    return bool(move(np.zeros(shape, np.int8)).flags.c_contiguous)


def of_shapes(shapes: Sequence[tuple[int, ...]]) -> Iterator[str]:
    sizes = [math.prod(shape) for shape in shapes]
    if 0 in sizes:
        yield "for empty tensors"
    if len(set(shapes)) > 1:
        yield "where inputs are broadcast or have several shapes"
    rank = max(map(len, shapes))
    if rank == 0:
        yield "for tensors of rank 0"
    if rank > 4:
        yield "for tensors of more than 4 dims"
    if max(sizes) >= LARGE:
        yield f"for tensors of {LARGE:,} elements or more"


def _same(a: object, b: object) -> bool:
    return a == b or (a != a and b != b)


def short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
