# SPDX-License-Identifier: Apache-2.0
"""Conditions on cases, as truth values over results."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..reference.arrays import Array
from ..reference.evaluation import REFERENCES
from .case_conditions import of_blocks, of_case, short
from .condition import Condition
from .runner import Result

LISTED = 4  # values that a text lists
OFTEN = (0.3, 0.8)  # of the cases with a value that have failed, for it to be one of the bad ones


@dataclass(frozen=True)
class Conditions:
    """Each once for the same results."""

    where: dict[Condition, Array]
    same: dict[Condition, list[Condition]]  # of other attributes, on the same results
    function: str  # of the provider
    untaken: tuple[str, ...]  # what it has no parameter for

    def lacking(self, text: str) -> str:
        """Of what a sentence names."""
        names = [n for n in self.untaken if re.search(rf"\b{n}\b", text)]
        return f"; {self.function}() has no parameter {' or '.join(names)}" if names else ""

    def also(self, chosen: Sequence[Condition]) -> str:
        """What else there is to say of such cases."""
        same = [f"these are also the cases {s.text}" for c in chosen for s in self.same[c]]
        if len(chosen) == 2:
            same += [*self._instead(*chosen), *self._instead(*reversed(chosen))]
        return "".join(f"; {text}" for text in dict.fromkeys(same))

    def _instead(self, chosen: Condition, beside: Condition) -> list[str]:
        """A condition on another attribute that would name the same cases beside the other."""
        named = self.where[chosen] & self.where[beside]
        own = set(chosen.attributes)
        others = (c for c, here in self.where.items()
                  if own and c.attributes and not own & set(c.attributes)
                  and np.array_equal(here & self.where[beside], named))  # fmt: skip
        found = next(others, None)
        return [f"{beside.text}, these are also the cases {found.text}"] if found else []


def of_results(results: Sequence[Result], failed: Array, blocks: bool) -> Conditions:
    """The simplest first. `failed`: of the results, which are of one operator and provider.
    `blocks`: whether sizes that are no multiple of a block may matter."""
    where: dict[Condition, Array] = {}
    same: dict[Condition, list[Condition]] = {}
    first: dict[bytes, Condition] = {}  # by the results
    for c, here in itertools.chain(_attributes(results, failed), _cases(results, blocks)):
        if here.all() or not here.any():
            continue
        known = first.setdefault(here.tobytes(), c)
        if known is c:
            where[c], same[c] = here, []
        elif c.is_unusual and known.is_unusual and c.attributes != known.attributes:
            same[known] = list(dict.fromkeys((*same[known], c)))
    function = results[0].provider.rpartition(":")[2]
    return Conditions(where, same, function, results[0].untaken)


def _attributes(results: Sequence[Result], failed: Array) -> Iterator[tuple[Condition, Array]]:
    case = results[0].case
    usual = REFERENCES[case.op.kernel].usual if case.op.kernel else {}
    untaken = results[0].untaken  # what a function lacks comes before anything else
    names = sorted(usual, key=lambda name: name not in untaken)
    columns = {name: [_key(r.case.attributes[name]) for r in results] for name in names}
    unusual = {
        name: np.array([value != _key(usual[name]) for value in columns[name]])
        for name in names if not isinstance(usual[name], bool)
    }  # fmt: skip
    for name, where in unusual.items():
        text = f"where {name} is not {short(usual[name])}"
        yield Condition(text, (name,), is_unusual=True), where
    for name, column in columns.items():
        values = list(dict.fromkeys(column))
        for value in values:
            here = np.array([own == value for own in column])
            is_flag = isinstance(usual[name], bool)
            if is_flag or len(values) > 2:
                yield Condition(f"with {name} = {short(value)}", (name,)), here
            if value == 0 and not is_flag:
                yield Condition(f"where {name} is not 0", (name,)), ~here
        rates = {v: failed[[own == v for own in column]].mean() for v in values}
        for share in (0, *OFTEN):
            bad = [v for v in values if rates[v] > share]
            others = [v for v in values if rates[v] <= share]
            if bad and others and min(len(bad), len(others)) <= LISTED:
                yield of_values(name, bad, others), np.array([own in bad for own in column])
        yield from _bounds(name, column)
    for one, other in itertools.combinations(unusual, 2):
        texts = (f"{name} is not {short(usual[name])}" for name in (one, other))
        yield Condition(f"where {' or '.join(texts)}", (one, other)), unusual[one] | unusual[other]


def _bounds(name: str, column: Sequence[Any]) -> Iterator[tuple[Condition, Array]]:
    """Below and above each value."""
    numbers = sorted({v for v in column if isinstance(v, float)})
    for v in numbers[1:]:
        text = f"with a finite {name}" if v == math.inf else f"with {name} below {short(v)}"
        below = np.array([isinstance(own, float) and own < v for own in column])
        yield Condition(text, (name,), is_bound=True), below
    for v in numbers[:-1]:
        above = np.array([isinstance(own, float) and own > v for own in column])
        yield Condition(f"with {name} above {short(v)}", (name,), is_bound=True), above


def _cases(results: Sequence[Result], blocks: bool) -> Iterator[tuple[Condition, Array]]:
    found = [[*of_case(r.case), *(of_blocks(r.case) if blocks else ())] for r in results]
    for c in dict.fromkeys(itertools.chain.from_iterable(found)):
        yield c, np.array([c in own for own in found])


def _key(value: Any) -> Any:
    return "nan" if value != value else value


def of_values(name: str, bad: Sequence[Any], others: Sequence[Any]) -> Condition:
    """The values of an attribute: by a bound, by the others, or one by one."""
    if len(bad) == 1 and (len(others) > 1 or isinstance(bad[0], bool)):
        return Condition(f"with {name} = {short(bad[0])}", (name,))
    if len(others) == 1 and not (len(bad) > 2 and isinstance(others[0], str)):
        return Condition(f"where {name} is not {short(others[0])}", (name,))
    if within := _range(name, bad, others):
        return Condition(within, (name,))
    if len(others) < len(bad):
        return Condition(f"where {name} is not {_listed(others)}", (name,), len(others))
    return Condition(f"with {name} = {_listed(bad)}", (name,), len(bad))


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
