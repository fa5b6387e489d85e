# SPDX-License-Identifier: Apache-2.0
"""What sets a case apart from others, and elements that nobody wrote."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..reference import patterns
from ..reference.compare import element_at
from ..reference.comparison import Element
from ..reference.evaluation import Array
from ..reference.judge import Output, wide
from ..reference.layouts import CASE_LAYOUTS, EXPANDED, of_output
from ..reference.patterns import Pattern as Pattern
from ..reference.patterns import Selection
from ..rows.dtypes import DTYPES
from .cases import Case, Shape
from .request import PATTERN

GAPS = ("strided", "padded")  # the other layouts are dense
BROADCAST = "where inputs are broadcast or have several shapes"
EVERY = "in every case"
NEVER = "it was never written"
LARGE = 1 << 16
PERMUTED = ("transposed", "swapped", "channels_last")  # dense, dims in another order
ZEROS = "where the right result is 0"
# Two parts of the elements: a kernel may lose NaN, or the sign of zeros, besides what else is wrong
# with it.
DIVISIONS = (
    ("with finite inputs", "with a NaN or infinite input"),
    ("where inputs and results are finite", "where an input or a result is NaN or infinite"),
    (ZEROS, "where the right result is not 0"),
)
UNWRITTEN = len(DIVISIONS)  # the next of the parts
LAST_BLOCK = UNWRITTEN + 1
# What a name of values does not say.
VALUES = {
    "special": ": zeros, infinities, NaN, subnormals, ends of ranges",
    "large": ": the exponentials of some overflow",
    "mixed": ": a quarter of them special",
    "every": ": all bit patterns of the dtype",
    "bits": ": any bit patterns",
    "hard": ": where an approximation is at its worst",
}
# What a mistake is made with.
TENSORS = {"null input": "an input", "wrong shape": "the output", "wrong dtype": "a tensor"}


# Kinds of errors. A kernel that computes in FLOAT is off by rounding nearly everywhere, and many
# lose -0: either would hide another mistake.
FAR, CLOSE = "far off", "off by little"
SEVERITIES = (FAR, "", CLOSE)  # the second: zeros of the wrong sign
# Relative errors that are close: twice the rounding of 16 bits; 128 ulp, which FLOAT may lose.
CLOSE_BY = {"BFLOAT16": 2.0**-6, "FLOAT16": 2.0**-9, "FLOAT": 2.0**-16, "DOUBLE": 2.0**-16}
CLOSE_TO_ZERO = 2.0**-20  # of the median result: where differences cancel


@dataclass(frozen=True)
class Part:
    """Some elements of a result."""

    patterns: tuple[Pattern, ...]
    wrong: int
    size: int
    element: Element | None = None  # the worst of the wrong ones
    parts: tuple[tuple[Part, Part], ...] = ()  # of a severity


def unwritten(output: Output) -> Array:
    """The elements that hold what was there before."""
    got = output.got
    bits = np.ascontiguousarray(got).view(np.uint8).reshape(*got.shape, got.dtype.itemsize)
    return np.asarray((bits == PATTERN).all(axis=-1))


def of_elements(case: Case, output: Output, wrong: Array) -> tuple[Part, tuple[Part, ...]]:
    """What holds for every wrong element, in all and for each of SEVERITIES."""
    zero, close = wrong & output.other_zeros, wrong & _is_close(output)
    split = [wrong & ~zero & ~close, zero, close]
    kinds = [kind for kind in split if kind.any()]
    # Beside what is far off, the others count as right; nothing is known of them the other way.
    others = [None, ~split[0], ~split[0]]
    views: list[tuple[Array, Array | None]] = [(wrong, None)]
    if len(kinds) > 1:
        views += [(kind, among) for kind, among in zip(split, others, strict=True) if kind.any()]
    selections = [_selections(case, output, *view) for view in views]
    every = [s for of_view in selections for s in of_view]
    texts = iter(patterns.of_elements(output, every, (NEVER, unwritten(output))))
    whole, *each = (
        _whole([Part(next(texts), s.count, s.size, _worst(output, s.wrong)) for s in of_view])
        for of_view in selections
    )
    left = iter(each or [whole])
    none = replace(whole, patterns=(), wrong=0, element=None)
    return whole, tuple(next(left) if kind.any() else none for kind in split)


def _worst(output: Output, wrong: Array) -> Element | None:
    at = np.flatnonzero(wrong)
    return element_at(output, int(at[np.argmax(output.ulp.flat[at])])) if at.size else None


def _whole(parts: Sequence[Part]) -> Part:
    first, *halves = parts
    return replace(first, parts=tuple(zip(halves[::2], halves[1::2], strict=True)))


def _selections(case: Case, output: Output, wrong: Array, among: Array | None) -> list[Selection]:
    """All of the wrong elements, and those of both halves of each division."""
    found = [Selection(wrong, among)]
    for first in _divisions(case, output, wrong):
        for half in (first, ~first):
            found.append(Selection(wrong & half, half if among is None else half & among))
    return found


def _is_close(output: Output) -> Array:
    """Off by what rounded intermediate results make, roughly."""
    due, near, got = (wide(x) for x in (output.expected, output.nearest, output.got))
    if output.dtype not in CLOSE_BY:
        return np.zeros(got.shape, bool)
    known = np.isfinite(near) & np.isfinite(got) & ~output.other_zeros
    sizes = np.abs(due if output.terms is None else wide(output.terms))
    usual = sizes[known & (sizes != 0)]
    least = CLOSE_TO_ZERO * float(np.median(usual)) if usual.size else 0.0
    form = DTYPES[output.dtype]
    least = max(least, 2 * math.ldexp(1, form.least - form.digits + 1))  # of subnormals
    with np.errstate(all="ignore"):
        error = np.abs(got - due)
        return np.asarray(known & (error <= CLOSE_BY[output.dtype] * sizes + least))


def sizes(case: Case, output: Output) -> tuple[tuple[Part, Part], ...]:
    """The parts of a result that passed: a case without such elements says nothing of them."""
    counts = [(int(np.count_nonzero(n)), n.size) for n in _divisions(case, output, None)]
    return tuple((Part((), 0, n), Part((), 0, size - n)) for n, size in counts)


def _divisions(case: Case, output: Output, wrong: Array | None) -> Iterator[Array]:
    """The elements of the first part: as DIVISIONS names them; those never written; the last
    block; by each input those where it is 0 or at a threshold. None for sums."""
    if output.terms is not None or not case.op.pointwise:
        return
    inputs = np.ones(output.got.shape, bool)
    points = [np.zeros(output.got.shape, bool)] * 2
    if wrong is not None:
        points = [wrong & unwritten(output), _last_block(wrong)]
    with np.errstate(invalid="ignore"):  # ml_dtypes warns of signalling NaNs
        for x in output.inputs:
            inputs &= np.isfinite(x)
            for at in (x == 0, patterns.at_threshold(case.op, x, case.attributes)):
                points.append(np.broadcast_to(at, inputs.shape))
        values = inputs & np.isfinite(output.got)
        if wrong is not None:
            values &= np.isfinite(output.nearest)
        zeros = wide(output.got if wrong is None else output.nearest) == 0
    yield from (inputs, values, zeros, *points)


def _last_block(wrong: Array) -> Array:
    """The elements past the last full block of those at the end that are all wrong."""
    flat = wrong.reshape(-1)
    begin = flat.size - int(np.argmin(flat[::-1])) if not flat.all() else 0
    begin += -begin % patterns.BLOCKS[0]
    return np.asarray(np.arange(flat.size).reshape(wrong.shape) >= begin)


def of_case(case: Case, usual: Case) -> Iterator[str]:
    """What may set it apart, the simplest first; `usual`: the first case of the operator."""
    if case.mistake:
        for subject in (TENSORS[case.mistake], case.at):
            what = "is NULL" if case.mistake == "null input" else f"has the {case.mistake}"
            yield from [f"when {subject} {what}, which must be refused"] if subject else []
        return
    yield EVERY
    for name, value in case.attributes.items():
        first = usual.attributes[name]
        if not _same(value, first):
            yield f"where {name} is not {short(first)}"
            yield f"with {name} = {short(value)}"
    yield from [case.changed] if case.changed else []
    yield f"in {case.dtype}"
    if case.out:
        yield f"in {case.out}"
    if DTYPES[case.dtype].bits == 16:
        yield "in dtypes of 16 bits"
    yield from of_place(case)
    yield from of_layout(case)
    yield from of_shapes(case.shapes)
    yield of_values(case)


def of_values(case: Case) -> str:
    return f"with values {case.values}{VALUES.get(case.values, '')}"


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


def of_shapes(shapes: Sequence[tuple[int, ...]]) -> Iterator[str]:
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
    if max(sizes) >= LARGE:
        yield f"for tensors of {LARGE:,} elements or more"


def of_blocks(case: Case) -> Iterator[str]:
    """Sizes beyond which a kernel writes that computes whole blocks, perhaps of dense tensors
    alone."""
    size = max(math.prod(shape) for shape in case.shapes)
    dense = not any(_strided(case))
    for block in patterns.BLOCKS:
        if size % block:
            text = f"the number of elements is not a multiple of {block}"
            yield f"where {text}"
            if dense:
                yield f"where all tensors are contiguous and {text}"


def _same(a: object, b: object) -> bool:
    return a == b or (a != a and b != b)


def short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
