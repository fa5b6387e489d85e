# SPDX-License-Identifier: Apache-2.0
"""Conditions on cases, as truth values over results."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..reference.evaluation import REFERENCES, Array
from .case_conditions import of_blocks, of_case, short
from .runner import Result

LISTED = 4  # values that a text lists
OFTEN = (0.3, 0.8)  # of the cases with a value that have failed, for it to be one of the bad ones


@dataclass(frozen=True)
class Conditions:
    """By their texts, each once for the same results."""

    where: dict[str, Array]
    same: dict[str, list[str]]  # other attributes that set the same results apart
    function: str  # of the provider
    attributes: tuple[str, ...]
    untaken: tuple[str, ...]  # those that it has no parameter for

    def also(self, texts: Sequence[str]) -> str:
        """What else there is to say of such cases."""
        lacking = [n for n in self.untaken if any(n in text.split() for text in texts)]
        if lacking:
            return f"; {self.function}() has no parameter {' or '.join(lacking)}"
        same = [f"these are also the cases {t}" for text in texts for t in self.same[text]]
        same += [t for text in texts for t in self._instead(text, texts)]
        return "".join(f"; {text}" for text in dict.fromkeys(same))

    def _instead(self, text: str, texts: Sequence[str]) -> list[str]:
        """A condition on another attribute that would name the same cases beside the other."""
        others = [t for t in texts if t != text]
        if not others:  # `same` has it
            return []
        (other,) = others
        own, beside = self._attributes(text), self.where[other]
        named = self.where[text] & beside
        return [f"{other}, these are also the cases {t}" for t, here in self.where.items()
                if own and not own & (self._attributes(t) or own)
                and np.array_equal(here & beside, named)][:1]  # fmt: skip

    def _attributes(self, text: str) -> set[str]:
        return set(self.attributes) & set(text.split())


def of_results(results: Sequence[Result], failed: Array, blocks: bool) -> Conditions:
    """The simplest first. `failed`: of the results, which are of one operator and provider.
    `blocks`: whether sizes that are no multiple of a block may matter."""
    first = results[0]
    where: dict[str, Array] = {}
    same: dict[str, list[str]] = {}
    texts: dict[bytes, str] = {}  # by the results
    for text, here in itertools.chain(_attributes(results, failed), _cases(results, blocks)):
        if here.all() or not here.any():
            continue
        known = texts.setdefault(here.tobytes(), text)
        if known == text:
            where[text], same[text] = here, []
        elif (name := _differing(text)) and name != (_differing(known) or name):
            same[known] = list(dict.fromkeys((*same[known], text)))
    function = first.provider.rpartition(":")[2]
    return Conditions(where, same, function, tuple(first.case.attributes), first.untaken)


def _differing(text: str) -> str:
    """The attribute that is not its usual value."""
    name, found, _ = text.removeprefix("where ").partition(" is not ")
    return name if found and " or " not in text else ""


def _attributes(results: Sequence[Result], failed: Array) -> Iterator[tuple[str, Array]]:
    case = results[0].case
    usual = REFERENCES[case.op.kernel].attributes[0] if case.op.kernel else {}
    untaken = results[0].untaken  # what a function lacks comes before anything else
    names = sorted(usual, key=lambda name: name not in untaken)
    columns = {name: [_key(r.case.attributes[name]) for r in results] for name in names}
    unusual = {
        name: np.array([value != _key(usual[name]) for value in columns[name]])
        for name in names if not isinstance(usual[name], bool)
    }  # fmt: skip
    for name, where in unusual.items():
        yield f"where {name} is not {short(usual[name])}", where
    for name, column in columns.items():
        values = list(dict.fromkeys(column))
        for value in values:
            here = np.array([own == value for own in column])
            is_flag = isinstance(usual[name], bool)
            if is_flag or len(values) > 2:
                yield f"with {name} = {short(value)}", here
            if value == 0 and not is_flag:
                yield f"where {name} is not 0", ~here
        for share in OFTEN:
            rates = {v: failed[[own == v for own in column]].mean() for v in values}
            bad = [v for v in values if rates[v] >= share]
            others = [v for v in values if rates[v] < share]
            if bad and others and min(len(bad), len(others)) <= LISTED:
                yield values_text(name, bad, others), np.array([own in bad for own in column])
    for one, other in itertools.combinations(unusual, 2):
        texts = (f"{name} is not {short(usual[name])}" for name in (one, other))
        yield f"where {' or '.join(texts)}", unusual[one] | unusual[other]


def _cases(results: Sequence[Result], blocks: bool) -> Iterator[tuple[str, Array]]:
    texts = [[*of_case(r.case), *(of_blocks(r.case) if blocks else ())] for r in results]
    for text in dict.fromkeys(itertools.chain.from_iterable(texts)):
        yield text, np.array([text in own for own in texts])


def _key(value: Any) -> Any:
    return "nan" if value != value else value


def values_text(name: str, bad: Sequence[Any], others: Sequence[Any]) -> str:
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
