# SPDX-License-Identifier: Apache-2.0
"""One rule after another, until nothing is left that a rule explains.

The rule of the highest score is not always one of the best set: a vague one may cover what two
precise ones explain. So several are tried as the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..reference.arrays import Array
from .conditions import Conditions, of_results
from .evidence import VAGUE, Evidence, least_results
from .necessary import necessary
from .rules import PRICE, Rule, Search
from .severity import SMALL

LEAST, LAST = 0.5, 0.3  # the score below which a rule says nothing: beside others, at all
# The score and recall below which the condition that all failed results have says more.
WEAK, MOST_OF_IT = 0.6, 0.75
BREADTH = 4  # rules that are tried as the first
CLEAR = 0.97  # the precision of a rule beside which no other is tried
GOOD = 0.9  # the precision that is as good as any


@dataclass(frozen=True)
class Step:
    """A rule, and what was done before it."""

    rule: Rule
    conditions: Conditions
    done: Array


def steps(e: Evidence, done: Array, blocks: bool) -> list[Step]:
    """`done`: elements that need no further cause. `blocks`: results may have been written past the
    end."""
    return _steps(e, e.wrong & ~done, done, done & False, blocks, BREADTH)


def _steps(
    e: Evidence, left: Array, done: Array, small: Array, blocks: bool, breadth: int
) -> list[Step]:
    """`small`: those that are done because their errors are small."""
    if not left.any():
        return []
    failed = e.count(left) > 0
    known = of_results(e.results, failed, blocks)
    search = Search(e, left, done, known.where, small)
    mostly = np.count_nonzero(failed) > np.count_nonzero(e.count(e.wrong)) / 2
    least = LAST if mostly else LEAST
    rules = [r for r in search.rules() if r.score >= least and _is_more(r, e, done)]
    is_weak = (
        not rules
        or not rules[0].says_something
        or (rules[0].score < WEAK and rules[0].recall < MOST_OF_IT)
    )
    if is_weak and not done.any() and (only := necessary(search)):
        rules = [only]
    if rules and rules[0].precision >= CLEAR:
        breadth = 1
    ways = []
    for rule in rules[:breadth]:
        now_small = small | rule.explained if rule.symptom in SMALL else small
        now_left, now_done = left & ~rule.explained, done | rule.explained
        rest = _steps(e, now_left, now_done, now_small, blocks, 1)
        ways.append([Step(rule, known, done), *rest])
    return max(ways, key=lambda way: _value(way, int(np.count_nonzero(failed)), e), default=[])


def _is_more(rule: Rule, e: Evidence, done: Array) -> bool:
    """Not the rest of a few results."""
    results, failed = (int(np.count_nonzero(e.count(x))) for x in (rule.explained, e.wrong))
    if results >= least_results(failed):
        return True
    of_cases_alone = not rule.elements and not rule.symptom and rule.precision == 1
    return of_cases_alone and not np.isin(e.of[rule.explained], e.of[done]).any()


def _value(way: Sequence[Step], failed: int, e: Evidence) -> float:
    """How much of what is wrong is explained, and how precisely, less the price of the rules."""
    total = 0.0
    for step in way:
        rule = step.rule
        explained = float(e.share[rule.explained].sum()) / failed
        conditions = len(rule.cases) + bool(rule.elements)
        precise = 1 if rule.symptom in VAGUE else min(1, rule.precision / GOOD)
        total += explained * precise - PRICE * conditions
    return total
