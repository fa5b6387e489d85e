# SPDX-License-Identifier: Apache-2.0
"""The attributes that separate failed cases from passed ones."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..reference.evaluation import REFERENCES
from .cases import Case
from .patterns import short
from .runner import Result
from .trait import CHANCE, COMPLETE, MANY, MOST, NOTHING, SEEN, Trait, also, counted

SPARED = 0.7  # of the cases with one value of an attribute have passed
OFTEN = 0.7  # of the cases with one value of a flag have failed
RARELY = 0.5  # as often with the other value


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


def unless(failed: Sequence[Result], passed: Sequence[Result]) -> tuple[Trait, list[Result]]:
    """Of failures in nearly every case: the value of an attribute with which most cases pass, as
    if it stood in the place of the attribute, and the failures without it."""
    fair = [r for r in passed if r.size]
    found: list[tuple[float, Trait, list[Result]]] = []
    for name in failed[0].case.attributes:
        good = Counter(_key(r.case.attributes[name]) for r in fair)
        bad = Counter(_key(r.case.attributes[name]) for r in failed)
        for value, passes in good.items():
            share = passes / (passes + bad[value])
            without = [r for r in failed if _key(r.case.attributes[name]) != value]
            left = len(fair) - passes
            if passes >= MANY and share >= SPARED and len(without) >= MOST * (len(without) + left):
                text = f"only where {name} is not {short(value)}"
                found.append((share, counted(text, len(without), left), without))
    _, trait, without = max(found, key=lambda e: e[0], default=(0, NOTHING, []))
    return trait, without


def by_flag(failed: Sequence[Result], passed: Sequence[Result]) -> tuple[Trait, list[Result]]:
    """The value of a flag with which most cases have failed, and fewer with the other value; and
    the failures with it."""
    fair = [r for r in passed if r.size]
    for name, value in failed[0].case.attributes.items():
        for v in (True, False) if isinstance(value, bool) else ():
            bad = [r for r in failed if r.case.attributes[name] is v]
            good = sum(r.case.attributes[name] is v for r in fair)
            rest = len(failed) - len(bad)  # none: the cause says so
            others = rest + len(fair) - good
            share = len(bad) / max(1, len(bad) + good)
            if rest and len(bad) >= MANY and share >= OFTEN and rest <= RARELY * share * others:
                return counted(f"mostly with {name} = {v}", len(bad), good), bad
    return NOTHING, []


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
    if second := of_attributes(failed, left, COMPLETE):
        return second.said(before=f"{text}, ")
    equal = [t.removeprefix("only ") for t, same in rare if t != text and same == left]
    return counted(text, len(failed), len(left)).said(after=also(equal))


def _key(value: Any) -> Any:
    return "nan" if value != value else value


def of_attributes(failed: Sequence[Result], passed: Sequence[Result], share: float) -> Trait:
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


def two_attributes(failed: Sequence[Result], passed: Sequence[Result], share: float) -> Trait:
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
        if len(left) < len(passed) and (second := of_attributes(failed, left, share)):
            return second.said(before=f"with {' and '.join(texts)}, ")
    return NOTHING


def either_attribute(failed: Sequence[Result], passed: Sequence[Result]) -> Trait:
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
    if len(others) < len(bad):
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
