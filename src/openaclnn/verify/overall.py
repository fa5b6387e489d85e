# SPDX-License-Identifier: Apache-2.0
"""One cause for all failures: what each failed case has, and what nearly all that passed lack."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..reference.evaluation import REFERENCES
from .cases import Case
from .patterns import of_layout, of_place, of_shapes, short
from .runner import Result

COMPLETE = 0.8  # of the cases with an attribute or a layout have failed
PARTLY = 0.5  # of those with the values of an attribute
SEEN = 0.25  # of those with a layout, or with one value of an attribute
CHANCE = 1e-3  # that all failures would have this if they were spread evenly
SMALL_CHANCE = 0.1
ENDED = ("crashed", "hung", "outside")
MANY, MOST = 10, 0.85  # failed cases, and their share that must have a layout
LISTED = 4  # values that are named one by one


@dataclass(frozen=True)
class Trait:
    """What failed results have in common."""

    text: str = ""  # a sentence without a subject; empty if nothing is known
    failed: int = 0  # of `such` cases that have it, where cases were counted
    such: int = 0
    vagueness: float = 0.0  # 0: it separates these results from all others

    def __bool__(self) -> bool:
        return bool(self.text)

    def said(self, before: str = "", after: str = "") -> Trait:
        return replace(self, text=f"{before}{self.text}{after}")


def counted(text: str, failed: int, passed: int, noun: str = " such cases") -> Trait:
    """The trait of `failed` cases, which `passed` others have, too."""
    such = failed + passed
    share = f" ({failed:,} of {such:,}{noun})" if passed else ""
    return Trait(f"{text}{share}", failed, such, 1 - failed / such)


NOTHING = Trait(vagueness=1)


def also(texts: Sequence[str]) -> str:
    """Other attributes that set the same cases apart."""
    return f"; these are also the cases {' and '.join(texts)}" if texts else ""


def complete(failed: Sequence[Result], passed: Sequence[Result]) -> Trait:
    """The attributes or the place that separate failed cases from passed ones, if any."""
    fair = [r for r in passed if r.size]  # an empty tensor has nothing wrong
    return (
        _attributes(failed, fair, COMPLETE)
        or _places(failed, fair, COMPLETE)
        or _two_attributes(failed, fair, COMPLETE)
        or _either_attribute(failed, fair)
        or _dtypes(failed, passed)
    )


def _dtypes(failed: Sequence[Result], passed: Sequence[Result]) -> Trait:
    """The dtypes beside which every case has failed."""
    good = {dtype for r in passed for dtype in r.case.dtypes}
    if not good or any(good.issuperset(r.case.dtypes) for r in failed):
        return NOTHING
    names = " or ".join(sorted(good))
    return counted(f"only where a tensor is not {names}", len(failed), 0)


def ignored(failed: Sequence[Result], passed: Sequence[Result], usual: Case) -> Trait:
    """An attribute that fails with every value but the usual one, as if it were not read."""
    fair = [r for r in passed if r.size]
    for name, value in usual.attributes.items():
        bad = {_key(r.case.attributes[name]) for r in failed}
        good = {_key(r.case.attributes[name]) for r in fair}
        left = [r for r in fair if _key(r.case.attributes[name]) in bad]
        if (
            len(bad) > 1
            and good - bad == {_key(value)}
            and len(failed) >= COMPLETE * (len(failed) + len(left))
        ):
            return counted(f"only where {name} is not {short(value)}", len(failed), len(left))
    return NOTHING


def likely(failed: Sequence[Result], passed: Sequence[Result]) -> Trait:
    """The same where part of such cases passed, too."""
    fair = [r for r in passed if r.size]
    return (
        _places(failed, fair, SEEN)
        or _attributes(failed, fair, PARTLY)
        or _two_attributes(failed, fair, PARTLY)
    )


def rare_values(failed: Sequence[Result], passed: Sequence[Result]) -> Trait:
    """The values of an attribute, or the dtype of the output, that all failed cases have, at most
    half of all cases have, and not by chance; the rarest, if any, and another attribute that
    separates what is left."""
    fair = [r for r in passed if r.size]
    every = len(failed) + len(fair)
    found: list[tuple[str, list[Result]]] = []  # the text, and the passed cases that have it
    if len(dtypes := {r.case.output_dtypes[0] for r in failed}) == 1:
        (dtype,) = dtypes
        found.append((f"only in {dtype}", [r for r in fair if r.case.output_dtypes[0] == dtype]))
    for name in failed[0].case.attributes:
        bad = list(dict.fromkeys(_key(r.case.attributes[name]) for r in failed))
        good = dict.fromkeys(_key(r.case.attributes[name]) for r in fair)
        if others := [v for v in good if v not in bad]:
            left = [r for r in fair if _key(r.case.attributes[name]) in bad]
            found.append((f"only {_named(name, bad, others)}", left))
    rare = [
        (text, left)
        for text, left in found
        if (share := (len(failed) + len(left)) / every) <= 0.5 and share ** len(failed) <= CHANCE
    ]
    if not rare:
        return NOTHING
    text, left = min(rare, key=lambda entry: len(entry[1]))
    if second := _attributes(failed, left, COMPLETE):
        return second.said(before=f"{text}, ")
    equal = [t.removeprefix("only ") for t, same in rare if t != text and same == left]
    return counted(text, len(failed), len(left)).said(after=also(equal))


def _places(failed: Sequence[Result], passed: Sequence[Result], share: float) -> Trait:
    """Layouts, aliases, shapes."""
    texts = [set(_of_case(r.case)) for r in failed]
    # In the order of the first case, so that what is general comes before what is particular.
    common = [t for t in _of_case(failed[0].case) if all(t in own for own in texts)]
    good = Counter(t for r in passed for t in _of_case(r.case))
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


def _of_case(case: Case) -> Iterator[str]:
    yield from _of_memory(case)
    yield from of_shapes(case.shapes)


# ---- attributes ----


def _key(value: Any) -> Any:
    return "nan" if value != value else value


def _attributes(failed: Sequence[Result], passed: Sequence[Result], share: float) -> Trait:
    """All attributes whose values separate equally well; those that the function lacks first."""
    found: list[tuple[str, str, int]] = []
    for name in failed[0].case.attributes:
        bad = Counter(_key(r.case.attributes[name]) for r in failed)
        good = Counter(_key(r.case.attributes[name]) for r in passed)
        others = [v for v in good if v not in bad]
        of_bad = sum(good[v] for v in bad)
        each = all(n >= SEEN * (n + good[v]) for v, n in bad.items())
        with_it, every = len(failed) + of_bad, len(failed) + len(passed)
        by_chance = share < COMPLETE and (with_it / every) ** len(failed) > CHANCE
        if others and each and not by_chance and len(failed) >= share * with_it:
            found.append((name, _named(name, list(bad), others), of_bad))
    if not found:
        return NOTHING
    untaken = failed[0].untaken
    least = min(passes for *_, passes in found)
    equal = [entry for entry in found if entry[2] == least]
    values = failed[0].case.attributes  # what a flag turns off is missed more than another number
    equal.sort(key=lambda e: (e[0] not in untaken, not isinstance(values[e[0]], bool), len(e[1])))
    name, text, passes = equal[0]
    trait = counted(f"only {text}", len(failed), passes)
    if name in untaken:
        return trait.said(after=_no_parameter(failed[0], [name]))
    return trait.said(after=also([text for _, text, _ in equal[1:]]))


def _two_attributes(failed: Sequence[Result], passed: Sequence[Result], share: float) -> Trait:
    """What all failures share, and an attribute that separates what is left. Attributes that the
    cases always set together are named together."""
    first = failed[0].case.attributes
    shared: dict[tuple[bool, ...], list[str]] = {}  # by which of the passed cases have the value
    for name, value in first.items():
        if all(_key(r.case.attributes[name]) == _key(value) for r in failed):
            same = tuple(_key(r.case.attributes[name]) == _key(value) for r in passed)
            shared.setdefault(same, []).append(f"{name} = {short(value)}")
    for same, texts in shared.items():
        left = [r for r, is_same in zip(passed, same, strict=True) if is_same]
        if len(left) < len(passed) and (second := _attributes(failed, left, share)):
            return second.said(before=f"with {' and '.join(texts)}, ")
    return NOTHING


def _either_attribute(failed: Sequence[Result], passed: Sequence[Result]) -> Trait:
    """Two attributes of which one at least differs from its usual value, as if both were wrong."""
    first = REFERENCES[failed[0].case.op.kernel].attributes[0] if failed[0].case.op.kernel else {}

    def differ(r: Result, pair: tuple[str, ...]) -> bool:
        return any(_key(r.case.attributes[name]) != _key(first[name]) for name in pair)

    pairs = [p for p in itertools.combinations(first, 2) if all(differ(r, p) for r in failed)]
    if not pairs:
        return NOTHING
    passes = {p: sum(differ(r, p) for r in passed) for p in pairs}
    best = min(pairs, key=lambda p: passes[p])
    if len(failed) < COMPLETE * (len(failed) + passes[best]) or passes[best] == len(passed):
        return NOTHING
    text = " or ".join(f"{name} is not {short(first[name])}" for name in best)
    trait = counted(f"only where {text}", len(failed), passes[best])
    if lacking := [name for name in best if name in failed[0].untaken]:
        return trait.said(after=_no_parameter(failed[0], lacking))
    return trait


def _no_parameter(r: Result, names: Sequence[str]) -> str:
    return f"; {r.provider.rpartition(':')[2]}() has no parameter {' or '.join(names)}"


def _named(name: str, bad: Sequence[Any], others: Sequence[Any]) -> str:
    """The values of an attribute: by a bound, by the others, or one by one."""
    if len(bad) == 1 and (len(others) > 1 or isinstance(bad[0], bool)):
        return f"with {name} = {short(bad[0])}"
    if len(others) == 1 and not (len(bad) > 2 and isinstance(others[0], str)):
        return f"where {name} is not {short(others[0])}"
    if within := _range(name, bad, others):
        return within
    if len(others) < len(bad) or len(bad) > LISTED:
        return f"where {name} is not {_listed(others)}"
    return f"with {name} = {_listed(bad)}"


def _range(name: str, bad: Sequence[Any], others: Sequence[Any]) -> str:
    """Where the values lie that no other case has; NaN beside them is named."""
    numbers = [v for v in bad if isinstance(v, int | float)]
    bounds = [v for v in others if isinstance(v, int | float)]
    if len(numbers) < 2 or not bounds or any(isinstance(v, str) and v != "nan" for v in bad):
        return ""
    nan = " or NaN" if "nan" in bad else ""
    least, greatest = min(bounds), max(bounds)
    if least == math.inf and not nan:
        return f"with a finite {name}"
    if max(numbers) < least:
        return f"with {name} below {short(least)}{nan}"
    if min(numbers) > greatest:
        return f"with {name} above {short(greatest)}{nan}"
    if all(not least <= v <= greatest for v in numbers) and len(bounds) > 1:
        return f"with {name} outside [{short(least)}, {short(greatest)}]{nan}"
    return ""


def _listed(values: Sequence[Any]) -> str:
    *first, last = map(short, sorted(values, key=lambda v: (isinstance(v, str), v)))
    return f"{', '.join(first)} or {last}" if first else last
