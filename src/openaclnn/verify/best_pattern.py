# SPDX-License-Identifier: Apache-2.0
"""The cause that explains the most of some failed results: what all have in common, a pattern of
their wrong elements, or one of their cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Sequence

from ..reference.patterns import IN_COMMON, TAIL
from ..reference.precision import CUT, NEAR, NEAR_SUMS, SCALARS
from ..reference.precision import TEXTS as PRECISION
from .overall import complete, likely
from .patterns import EVERY, LAST_BLOCK, NEVER, Part
from .runner import Result
from .trait import NOTHING, Trait

SHARE = 0.7  # of the cases with a pattern that must have failed
FEW = 4  # results fewer than this may share a layout, values or an attribute by chance
WHOLE = 0.98  # of the elements with a pattern are wrong
MANY = 0.8  # of them, where an input of 0 may hide the mistake
VAGUE = 0.3  # the share of such cases that passed
USUAL = 0.7  # of all cases
SEEN = 0.3  # of the results that have a pattern of elements
SMALL = (NEAR, NEAR_SUMS)
ALL = 0.9
RARE = 0.7  # a pattern of elements that more of all elements have says nothing


def _divisions(r: Result, texts: Iterable[str]) -> Iterator[tuple[Part, Part]]:
    """The last block counts if it is one of the causes: any elements may be the last."""
    of_tail = any(text.startswith(TAIL) for text in texts)
    return (d for i, d in enumerate(r.parts) if of_tail or i != LAST_BLOCK)


def is_covered(r: Result, texts: Iterable[str]) -> bool:
    """Whether causes that are known explain both parts of a division, each another one."""
    return any(
        all(part.wrong and any(p.text in texts for p in part.patterns) for part in division)
        for division in _divisions(r, texts)
    )


def remainder(r: Result, texts: Iterable[str]) -> Result:
    """The result without the part of its wrong elements that known causes explain; itself if they
    explain no part, or both."""
    for division in _divisions(r, texts):
        for part, other in (division, division[::-1]):
            known, left = ([q.text in texts for q in p.patterns] for p in (part, other))
            if part.wrong and other.wrong and any(known) and not any(left):
                return r.of_part(other)
    return r


def part_with(r: Result, texts: Collection[str]) -> tuple[str, Part] | None:
    """The first of the causes that a part has, and the part."""
    parts = [part for division in _divisions(r, texts) for part in division]
    every = ((t, q) for t in texts for q in parts if any(p.text == t for p in q.patterns))
    return next(every, None)


def one_cause(left: Sequence[Result], passed: Sequence[Result]) -> Trait:
    """What all that are left have in common; nothing if elements say more."""
    if len(left) < FEW - 1 or any(r.case.mistake for r in left):
        return NOTHING
    counts = Counter(t for r in left for t in rare_of(r))
    if any(counts[text] >= SHARE * len(left) for text in PRECISION):
        return NOTHING  # results that are only badly rounded say more than attributes
    trait = complete(left, passed)
    if not trait and not any(
        n >= len(left) / 2 and t != NEVER and all_wrong(t, [r for r in left if t in rare_of(r)])
        for t, n in counts.items()
    ):
        trait = likely(left, passed)
    if not trait:
        return trait
    if all(NEVER in matching_of(r) for r in left):
        return trait.said(after="; the wrong elements were never written")
    if any(n >= SEEN * len(left) for n in counts.values()) and (
        trait.vagueness > VAGUE or trait.such > USUAL * (len(left) + len(passed))
    ):
        return NOTHING  # elements say more than what passed cases, or most cases, have
    where = rarest_of_all(left) if len(left) >= FEW else ""
    return trait.said(after=f"; {IN_COMMON}: {where}") if where else trait


def rarest_of_all(results: Sequence[Result], without: Container[str] = ()) -> str:
    """The pattern that the wrong elements of all results have and most elements have not."""
    counts, matching = Counter[str](), Counter[str]()
    for r in results:
        told = {p.text: p.matching for p in r.patterns if not p.silent and p.text not in without}
        counts.update(told.keys())
        matching.update(told)
    most = RARE * sum(r.size for r in results)
    common = [t for t, n in counts.items() if n == len(results) and matching[t] <= most]
    return min(common, key=lambda t: matching[t], default="")


def all_wrong(text: str, results: Sequence[Result], share: float = WHOLE) -> bool:
    """Nearly all elements with a pattern are wrong."""
    return sum(r.wrong for r in results) >= share * sum(matching_of(r)[text] for r in results)


def _of_usual(results: Sequence[Result]) -> str:
    """The pattern, all of whose elements are wrong, of nearly all results with usual attributes: an
    attribute may be ignored besides, which shows in the others alone. Or ""."""
    usual = [r for r in results if not r.case.unusual()]
    counts = Counter(t for r in usual for t in matching_of(r))
    rare = Counter(t for r in usual for t in rare_of(r))  # of small tensors, a tail is all
    found = [
        t for t, n in rare.items()
        if n >= FEW and counts[t] >= ALL * len(usual)
        and all_wrong(t, [r for r in usual if t in matching_of(r)], MANY)
    ]  # fmt: skip
    of_all = Counter(t for r in results for t in rare_of(r))
    return max(found, key=lambda t: (of_all[t], rare[t]), default="")


def cut_in_a_dtype(results: Sequence[Result]) -> list[Result]:
    """Those of a dtype, if nearly all of them are cut instead of rounded."""
    for dtype in dict.fromkeys(r.case.output_dtypes[0] for r in results):
        own = [r for r in results if r.case.output_dtypes[0] == dtype]
        cut = [r for r in own if CUT in matching_of(r)]
        if len(cut) >= max(ALL * len(own), FEW) and any(CUT in rare_of(r) for r in cut):
            return cut
    return []


def matching_of(r: Result) -> dict[str, int]:
    return {p.text: p.matching for p in r.patterns}


def rare_of(r: Result) -> dict[str, int]:
    """The patterns of a result's wrong elements that tell something, and their elements."""
    most = max(RARE * r.size, 1)
    told = [p for p in r.patterns if not p.silent]
    return {p.text: p.matching for p in told if p.matching <= most or p.text in PRECISION}


def best_pattern(
    left: Sequence[Result], texts: dict[int, tuple[str, ...]], passed: Counter[str]
) -> tuple[str, bool] | None:
    """The pattern that explains most, and whether it is one of elements.

    First one of elements all of which are wrong, then one of cases, then the rarest of elements.
    """
    cases: dict[str, float] = {}
    calls = [own for own in texts.values() if EVERY in own]  # without mistakes
    of_calls = {text for own in calls for text in own}
    for text, n in Counter(t for r in left for t in texts[id(r)]).items():
        special = ("with layout", "with values", " = ", "permuted")
        by_chance = n < FEW and any(word in text for word in special)
        by_chance |= n == 1 < len(left) and text in of_calls
        everywhere = all(text in own for own in calls) and text != EVERY
        such = len(calls) if text == EVERY else n + passed[text]  # with those that have a cause
        if n >= SHARE * such and not by_chance and not everywhere:
            cases[text] = n - 2 * passed[text]
    elements = Counter(t for r in left for t in rare_of(r))
    if len(left) >= ALL * len(calls):  # a mistake in every case is large in some, small in others
        elements = Counter({t: n for t, n in elements.items()
                            if t not in SMALL or n >= ALL * len(left)})  # fmt: skip
    matching, wrong = Counter[str](), Counter[str]()
    for r in left:
        matching.update(rare_of(r))
        wrong.update(dict.fromkeys(rare_of(r), r.wrong))
    most = max([*cases.values(), *elements.values()], default=0)
    whole = {t: n for t, n in elements.items() if wrong[t] >= WHOLE * matching[t] and n >= most / 2}
    if whole:
        best = max(whole, key=lambda t: (whole[t], -matching[t], t == SCALARS))
        where = [t for t in whole if t != NEVER and whole[t] >= SHARE * whole[best]]
        if best == NEVER and where:  # which elements says more
            best = max(where, key=lambda t: whole[t])
        return best, True
    if usual := _of_usual(left):
        return usual, True
    if calls and len(calls) == sum(EVERY in texts[id(r)] for r in left):  # nothing sets them apart
        return EVERY, False
    apart = {t: n for t, n in cases.items() if t != EVERY and n >= 0.9 * most and n > 0}
    of_all = [t for t in cases if t != EVERY and all(t in texts[id(r)] for r in left)]
    apart = {t: cases[t] for t in of_all if cases[t] > 0} or apart
    if apart:
        return max(apart, key=lambda t: (apart[t], -passed[t])), False
    close = [t for t, n in elements.items() if n >= 0.9 * max(elements.values())]
    if close and (elements[close[0]] >= most / 2 or not cases):
        return max(close, key=lambda t: elements[t] * wrong[t] / matching[t]), True
    last = max(cases, key=lambda t: cases[t], default=None)
    return None if last is None or cases[last] <= 0 else (last, False)
