# SPDX-License-Identifier: Apache-2.0
"""What the wrong elements of a result have in common."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ..rows.dtypes import DTYPES
from ..rows.schema import Op
from .evaluation import REFERENCES, Array
from .judge import Output, wide
from .precision import TEXTS, of_results

EVERY_WRONG, ALL_SUCH = "every wrong element", "all such elements are wrong"
IN_COMMON = f"{EVERY_WRONG} has this in common"
TAIL = "it lies past the last full block"
NEAR = 0.125
NEAR_ZERO = f"is between -{NEAR} and {NEAR}"
FAR, NEARLY_ALL = 1024, 0.9
BLOCKS = (8, 16, 32, 64, 128, 256, 512, 1024)  # what kernels are unrolled by
# Where kernels clamp, or take another formula.
BOUNDS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 16, 20, 25, 30, 32, 40, 50, 64, 80, 88, 100, 104)
CHANCE = 1e-2  # that all wrong elements would have a pattern if they were spread evenly


@dataclass(frozen=True)
class Pattern:
    """What all wrong elements have in common, and how many elements have it."""

    text: str
    matching: int
    silent: bool = False  # it holds, but tells nothing unless other results have it too


@dataclass(frozen=True)
class Selection:
    """Some elements of an output: the wrong ones, and all that count, those of `among` if given."""

    wrong: Array
    among: Array | None = None

    @property
    def count(self) -> int:
        return int(np.count_nonzero(self.wrong))

    @property
    def size(self) -> int:
        return self.wrong.size if self.among is None else int(np.count_nonzero(self.among))


def of_elements(
    output: Output, selections: Sequence[Selection], *more: tuple[str, Array]
) -> list[tuple[Pattern, ...]]:
    """For each selection, the patterns that hold for every wrong element; `more`: others than of
    values and positions. Predicates are computed once, and one at a time: outputs may be large."""
    chosen = [(s, np.flatnonzero(s.wrong), list[Pattern]()) for s in selections]
    some = [entry for entry in chosen if entry[1].size]

    def add(text: str, where: Array) -> None:
        flat = where.reshape(-1)
        for s, wrong, own in some:
            if flat[wrong[0]] and flat[wrong].all():  # most fail at the first
                own.append(_counted(text, where, s))

    with np.errstate(all="ignore"):
        for text, where in more:
            add(text, where)
        for s, _, own in some:
            own += [_counted(text, where, s) for text, where in _from_there_on(s.wrong)]
        for text, where in _predicates(output) if some else ():
            add(text, where)
        for s, wrong, own in some:
            own += [
                Pattern(text, wrong.size, silent) for text, silent in of_results(output, s.wrong)
            ]
    return [tuple(own) for _, _, own in chosen]


def _counted(text: str, where: Array, selection: Selection) -> Pattern:
    counted = where if selection.among is None else where & selection.among
    return Pattern(text, int(np.count_nonzero(counted)))


def common(patterns: Sequence[Pattern], wrong: int, size: int) -> str:
    """What `wrong` elements of one result of `size` have in common, by more than chance; or ""."""
    # What all elements have tells nothing, but for how the results are off.
    told = [p for p in patterns if not p.silent and (p.matching < size or p.text in TEXTS)]
    found = [p for p in told if p.matching == wrong or (p.matching / size) ** wrong <= CHANCE]
    if not found:
        return ""
    best = min(found, key=lambda p: p.matching)
    return sentence(best.text, wrong, best.matching)


def sentence(text: str, wrong: int, matching: int, never: bool = False) -> str:
    """`never`: no wrong element was ever written."""
    every = f"; {ALL_SUCH}" if wrong >= matching and text not in TEXTS else ""
    every = "; they were never written" if never else every
    return f"{IN_COMMON}: {text}{every}"


def _predicates(output: Output) -> Iterator[tuple[str, Array]]:
    got, op, attributes = output.got, output.op, output.attributes
    shape = got.shape
    if output.terms is None and output.inputs:  # a golden value has none
        reference = REFERENCES[op.kernel]
        points = {t: v for t, v in reference.special(attributes).items() if t != "0"}
        known: list[tuple[str, Array]] = []
        for p, x in zip(op.input_tensors, output.inputs, strict=True):
            values = np.broadcast_to(wide(x), shape)
            for text, point in points.items():
                yield f"{p.python_name} is above {text}", values > point
                if "/" not in text:  # the range of an exponential, below which nearly all lie
                    yield f"{p.python_name} is below {text}", values < point
            known.append((p.python_name, values))
            yield from _of_values(p.python_name, values, output.dtype)
            yield from _beyond(p.python_name, values)
            if rate := reference.rates.get(p.python_name):
                yield from _beyond(f"{rate} * {p.python_name}", attributes[rate] * values)
            at = np.broadcast_to(at_threshold(op, x, attributes), shape)
            yield f"{p.python_name} is exactly at a threshold of the formula", at
            nan = np.isnan(values)  # two comparisons the wrong way round: both in one tensor
            yield f"{p.python_name} is NaN or exactly at a threshold of the formula", nan | at
        for (first, a), (second, b) in combinations(known, 2):  # a kernel that compares another
            yield f"only one of {first} and {second} is positive", (a > 0) != (b > 0)
            for text, point in points.items():
                both = f"only one of |{first}| and |{second}| is at most {text}"
                yield both, (np.abs(a) <= point) != (np.abs(b) <= point)
    if output.dtype in DTYPES:
        result = np.asarray(wide(output.nearest))
        yield from _of_values("the right result", result, output.dtype)
        yield from _out_of_range(result, output.dtype)
        if not output.inputs:
            yield from _beyond("the right result", result)
    position = np.arange(got.size).reshape(shape)
    yield "it is the first element", position == 0
    for block in BLOCKS:  # of a tensor smaller than a block, every element
        text = f"{TAIL} of {block} elements"
        yield text, position >= got.size - got.size % block


def at_threshold(op: Op, x: Array, attributes: Mapping[str, Any]) -> Array:
    """Where the formula switches."""
    points = np.array([*REFERENCES[op.kernel].special(attributes).values()], np.float64)
    points = points.astype(x.dtype).astype(np.float64)
    return np.isin(np.abs(wide(x)), np.abs(points[~np.isnan(points)]))


def _from_there_on(wrong: Array) -> Iterator[tuple[str, Array]]:
    """Nearly all elements from the first wrong one on: an index that overflows or is cut."""
    first = int(np.argmax(wrong))
    if first >= FAR and np.count_nonzero(wrong) >= NEARLY_ALL * (wrong.size - first):
        yield (
            f"it is element {first:,} or later",
            np.arange(wrong.size).reshape(wrong.shape) >= first,
        )


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
    yield f"{name} {NEAR_ZERO}", np.abs(x) <= NEAR
    yield f"{name} is negative", np.signbit(x) & ~np.isnan(x)
    yield f"{name} is positive or +0", ~np.signbit(x) & ~np.isnan(x)


def _out_of_range(result: Array, dtype: str) -> Iterator[tuple[str, Array]]:
    """Infinite or 0, if intermediate results are of a narrower dtype."""
    for narrow in ("FLOAT16", "FLOAT"):
        form = DTYPES[narrow]
        if form.greatest < DTYPES[dtype].greatest:
            size = np.abs(result)
            outside = (size >= 2.0 ** (form.greatest + 1)) | (size < 2.0**form.least)
            outside &= np.isfinite(result) & (result != 0)
            yield f"the right result is outside the range of {narrow}", outside


def _beyond(name: str, x: Array) -> Iterator[tuple[str, Array]]:
    for bound in BOUNDS:
        yield f"{name} is below -{bound}", x < -bound
        yield f"{name} is above {bound}", x > bound
