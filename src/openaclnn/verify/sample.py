# SPDX-License-Identifier: Apache-2.0
"""Elements of a result that stand for all of it: some that are wrong, some that are right."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..reference.compare import element_at
from ..reference.comparison import Element
from ..reference.evaluation import Array
from ..reference.judge import Output

WRONG, RIGHT = 96, 96  # elements of each kind
FAR, NEARLY_ALL = 1024, 0.9


@dataclass(frozen=True)
class Sample:
    """Some elements of an output, with what came in and what should have come out."""

    output: Output  # of these elements, in one dim
    at: Array  # their positions in the whole, row-major
    wrong: Array
    unwritten: Array  # they hold what was there before
    shape: tuple[int, ...]  # of the whole
    wrong_in_all: int
    onset: int | None  # nearly all elements from here on are wrong

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def position(self, element: Element) -> int:
        return int(np.ravel_multi_index(element.index, self.shape)) if self.shape else 0

    def element(self, i: int) -> Element:
        found = element_at(self.output, i)
        return replace(found, index=tuple(int(n) for n in np.unravel_index(self.at[i], self.shape)))


def sample(output: Output, wrong: Array, unwritten: Array) -> Sample:
    """The first wrong element and the worst are always among them; the others are drawn."""
    flat = wrong.reshape(-1)
    bad, good = np.flatnonzero(flat), np.flatnonzero(~flat)
    rng = np.random.default_rng(flat.size)
    chosen = [_drawn(rng, bad, WRONG), _drawn(rng, good, RIGHT)]
    if bad.size:
        far, ulp = (x.reshape(-1)[bad] for x in (output.of_promise, output.ulp))
        farthest = np.flatnonzero(far == far.max())  # of these, as compare has it:
        worst = farthest[np.argmax(ulp[farthest])]
        chosen.append(bad[np.array([0, worst])])
    at = np.unique(np.concatenate(chosen))
    return Sample(
        _taken(output, at),
        at,
        flat[at],
        unwritten.reshape(-1)[at],
        output.got.shape,
        bad.size,
        _onset(bad, flat.size),
    )


def _drawn(rng: np.random.Generator, of: Array, count: int) -> Array:
    return of if of.size <= count else rng.choice(of, count, replace=False)


def _onset(bad: Array, size: int) -> int | None:
    """The first wrong element of a tail that is nearly all wrong: an index that overflows."""
    if bad.size and bad[0] >= FAR and bad.size >= NEARLY_ALL * (size - bad[0]):
        return int(bad[0])
    return None


def _taken(output: Output, at: Array) -> Output:
    shape = output.got.shape
    inputs = output.inputs if output.terms is None else ()

    def take(x: Array) -> Array:
        return np.broadcast_to(x, shape).reshape(-1)[at] if x.shape != shape else x.reshape(-1)[at]

    return replace(
        output,
        inputs=tuple(take(x) for x in inputs),
        got=take(output.got),
        expected=take(output.expected),
        terms=None if output.terms is None else take(output.terms),
    )
