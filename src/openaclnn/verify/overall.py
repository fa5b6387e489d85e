# SPDX-License-Identifier: Apache-2.0
"""One cause for all failures: what each failed case has, and what nearly all that passed lack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from .attributes import either_attribute, of_attributes, two_attributes
from .cases import Case
from .patterns import of_blocks, of_layout, of_place, of_shapes
from .runner import Result
from .trait import CHANCE, COMPLETE, MANY, MOST, NOTHING, SEEN, Trait, counted

PARTLY = 0.5  # of the cases with the values of an attribute have failed
SMALL_CHANCE = 0.1
ENDED = ("crashed", "hung", "outside")
BEYOND = ("outside", "damaged")  # kinds of writes past the end


def complete(failed: Sequence[Result], passed: Sequence[Result]) -> Trait:
    """The attributes or the place that separate failed cases from passed ones, if any."""
    fair = [r for r in passed if r.size]  # an empty tensor has nothing wrong
    return (
        of_attributes(failed, fair, COMPLETE)
        or _places(failed, fair, COMPLETE)
        or two_attributes(failed, fair, COMPLETE)
        or either_attribute(failed, fair)
        or _dtypes(failed, passed)
    )


def _dtypes(failed: Sequence[Result], passed: Sequence[Result]) -> Trait:
    """The dtypes beside which every case has failed."""
    good = {dtype for r in passed for dtype in r.case.dtypes}
    if not good or any(good.issuperset(r.case.dtypes) for r in failed):
        return NOTHING
    names = " or ".join(sorted(good))
    return counted(f"only where a tensor is not {names}", len(failed), 0)


def likely(failed: Sequence[Result], passed: Sequence[Result]) -> Trait:
    """The same where part of such cases passed, too."""
    fair = [r for r in passed if r.size]
    return (
        _places(failed, fair, SEEN)
        or of_attributes(failed, fair, PARTLY)
        or two_attributes(failed, fair, PARTLY)
    )


def _places(failed: Sequence[Result], passed: Sequence[Result], share: float) -> Trait:
    """Layouts, aliases, shapes."""
    blocks = any(r.kind in BEYOND for r in failed)
    texts = [set(_of_case(r.case, blocks)) for r in failed]
    # In the order of the first case, so that what is general comes before what is particular.
    common = [t for t in _of_case(failed[0].case, blocks) if all(t in own for own in texts)]
    good = Counter(t for r in passed for t in _of_case(r.case, blocks))
    n, every = len(failed), len(failed) + len(passed)
    found = []
    for text in common:
        with_it = n + good[text]
        by_chance = (with_it / every) ** n > CHANCE if share < COMPLETE else with_it == every
        if failed[0].kind in ENDED:  # after few cases: the rest of a dtype was left out
            by_chance = (with_it / every) ** n > SMALL_CHANCE
        if n >= share * with_it and not by_chance:
            found.append(text)
    if not found:
        return NOTHING
    best = min(found, key=lambda t: good[t])
    return counted(f"only {best}", n, good[best])


def of_most(failed: Sequence[Result], passed: Sequence[Result]) -> str:
    """The layout or alias that most failed cases have, by more than chance; or ""."""
    bad = Counter(t for r in failed for t in set(_of_memory(r.case)))
    good = Counter(t for r in passed if r.size for t in set(_of_memory(r.case)))
    every = len(failed) + sum(1 for r in passed if r.size)
    found = [
        text for text, n in bad.items()
        if len(failed) >= MANY and n >= MOST * len(failed)
        and n >= SEEN * (n + good[text]) and ((n + good[text]) / every) ** n <= CHANCE
    ]  # fmt: skip
    return min(found, key=lambda t: (good[t], -bad[t]), default="")


def _of_memory(case: Case) -> Iterator[str]:
    yield from of_layout(case)
    yield from of_place(case)


def _of_case(case: Case, blocks: bool) -> Iterator[str]:
    yield from _of_memory(case)
    yield from of_shapes(case.shapes)
    yield from of_blocks(case) if blocks else ()
