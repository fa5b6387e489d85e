# SPDX-License-Identifier: Apache-2.0
"""Elements of a result that stand for all of it: some that are wrong, some that are right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..reference.arrays import Array
from ..reference.compare import element_at
from ..reference.comparison import Element
from ..reference.judge import Output

WRONG, RIGHT = 96, 96  # elements of each kind
SPECIAL = 2  # right elements of each special value besides
FAR, NEARLY_ALL = 1024, 0.9


@dataclass(frozen=True)
class Sample:
    """Some elements of an output, with what came in and what should have come out."""

    output: Output  # of these elements, in one dim
    at: Array  # their positions in the whole, row-major
    wrong: Array
    weight: Array  # how many elements of the whole each stands for
    unwritten: Array  # they hold what was there before
    shape: tuple[int, ...]  # of the whole
    wrong_in_all: int
    onset: int | None  # nearly all elements from here on are wrong
    reason: str = ""  # of the verdict

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def position(self, element: Element) -> int:
        return int(np.ravel_multi_index(element.index, self.shape)) if self.shape else 0

    def element(self, i: int) -> Element:
        found = element_at(self.output, i)
        return replace(found, index=tuple(int(n) for n in np.unravel_index(self.at[i], self.shape)))


def sample(output: Output, wrong: Array, unwritten: Array, reason: str = "") -> Sample:
    """The first wrong element and the worst are always among them, and right ones of special
    values, which may be single; the others are drawn."""
    flat = wrong.reshape(-1)
    bad, good = np.flatnonzero(flat), np.flatnonzero(~flat)
    rng = np.random.default_rng(flat.size)
    right = _drawn(rng, good, RIGHT)
    weight = dict.fromkeys(right.tolist(), good.size / max(1, right.size))
    for at, every in _special(output, flat):
        if not weight.keys() & set(at.tolist()):
            weight |= dict.fromkeys(at.tolist(), every / at.size)
    chosen = [_drawn(rng, bad, WRONG)]
    if bad.size:
        far, ulp = (x.reshape(-1)[bad] for x in (output.of_promise, output.ulp))
        farthest = np.flatnonzero(far == far.max())  # of these, as compare has it:
        worst = farthest[np.argmax(ulp[farthest])]
        chosen.append(bad[np.array([0, worst])])
    of_bad = np.unique(np.concatenate(chosen))
    weight |= dict.fromkeys(of_bad.tolist(), bad.size / max(1, of_bad.size))
    at = np.array(sorted(weight), np.int64)
    return Sample(
        output.take(at),
        at,
        flat[at],
        np.array([weight[i] for i in at.tolist()], np.float64),
        unwritten.reshape(-1)[at],
        output.got.shape,
        bad.size,
        _onset(bad, flat.size),
        reason,
    )


def _drawn(rng: np.random.Generator, of: Array, count: int) -> Array:
    return of if of.size <= count else rng.choice(of, count, replace=False)


def _special(output: Output, wrong: Array) -> Iterator[tuple[Array, int]]:
    """Some right elements of each special value, and how many there are: without them, "x is ±0"
    may be said where x is -0."""
    for x in (*(output.inputs if output.terms is None else ()), output.got):
        values = np.broadcast_to(x, output.got.shape).reshape(-1)
        with np.errstate(invalid="ignore"):  # signalling NaNs
            every = values == 0, np.isinf(values), np.isnan(values)
        for where in every:
            at = np.flatnonzero(where & ~wrong)
            minus = np.signbit(values[at])
            for own in (at[minus], at[~minus]):
                if own.size:
                    yield own[:SPECIAL], own.size


def _onset(bad: Array, size: int) -> int | None:
    """The first wrong element of a tail that is nearly all wrong: an index that overflows."""
    if bad.size and bad[0] >= FAR and bad.size >= NEARLY_ALL * (size - bad[0]):
        return int(bad[0])
    return None
