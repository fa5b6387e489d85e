# SPDX-License-Identifier: Apache-2.0
"""The causes of failed results of one kind. Of several outputs each is looked at alone: what is
wrong with one may hide what is wrong with another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..reference.arrays import Array
from ..reference.precision import HYPOTHESES
from .evidence import Evidence, evidence, least_results
from .rules import Rule
from .runner import Result
from .severity import SMALL
from .steps import Step, steps

HALF = 0.5
CLEAR = 0.85  # the score of a cause beside which others of another output are not tried


@dataclass(frozen=True)
class Causes:
    """Of an output, if there are several."""

    evidence: Evidence
    steps: Sequence[Step]
    same: Sequence[Result] = ()  # in which another output is wrong, by the same rules

    @property
    def score(self) -> float:
        telling = (s.rule for s in self.steps if _is_telling(s.rule))
        return max((rule.score for rule in telling), default=0.0)

    @property
    def names_formula(self) -> bool:
        """More than where something is wrong."""
        clear = (s.rule for s in self.steps if s.rule.score >= CLEAR)
        return any(rule.symptom.startswith(HYPOTHESES) for rule in clear)

    @property
    def is_place(self) -> bool:
        """Only cases: of another output more may be known."""
        best = max((s.rule for s in self.steps), key=lambda rule: rule.score)
        return not (best.symptom or best.elements)

    @property
    def left(self) -> Array:
        """Wrong elements that no rule explains."""
        left = self.evidence.wrong.copy()
        for step in self.steps:
            left &= ~step.rule.explained
        return left


def causes(failed: Sequence[Result], others: Sequence[Result]) -> list[Causes]:
    """First of the output that is wrong most often, unless another one's are clearer; then what
    these do not explain of the other outputs. `others`: calls that have no such failure."""
    blocks = failed[0].kind in ("outside", "damaged")
    every = [name for r in failed for name in r.outputs]
    names = sorted(dict.fromkeys(every), key=every.count, reverse=True)
    tried: list[Causes] = []
    for only in names if len(names) > 1 else ("",):
        e = _evidence(failed, others, only)
        found = steps(e, np.zeros(e.of.size, bool), blocks)
        said = [s for s in found if s.rule.says_something or not s.done.any()]
        tried.append(Causes(e, said))
        if tried[-1].score >= CLEAR and not tried[-1].is_place:
            break
    best = max(tried, key=lambda one: (one.names_formula, one.score))
    chosen: list[Causes] = []
    same: dict[int, Result] = {}
    for only in names if best.evidence.only and best.score > 0 else ():
        if only != best.evidence.only:
            known = (one.evidence for one in tried if one.evidence.only == only)
            e = next(known, None) or _evidence(failed, others, only)
            done = _explained(best, e)
            is_same = (e.count(done) > 0) & (e.count(e.wrong & ~done, e.share) <= HALF)
            same |= {id(r): r for r, own in zip(e.results, is_same, strict=True) if own}
            more = steps(e, done, blocks)
            clear = [s for s in more if _is_telling(s.rule) and s.rule.score >= CLEAR
                     and _is_of_many(s.rule, e, len(failed))]  # fmt: skip
            chosen += [Causes(e, clear)] if clear else []
    return [replace(best, same=tuple(same.values())), *chosen]


def _is_telling(rule: Rule) -> bool:
    return rule.says_something and rule.symptom not in SMALL


def _is_of_many(rule: Rule, e: Evidence, failed: int) -> bool:
    """Not cases in which a flag leaves out the output that was looked at first."""
    results = np.count_nonzero(e.count(rule.explained))
    return bool(rule.symptom or rule.elements or results > least_results(failed))


def _evidence(failed: Sequence[Result], others: Sequence[Result], only: str) -> Evidence:
    own = [r for r in failed if not only or only in r.outputs]
    here = {id(r) for r in own}
    return evidence(own, [*others, *(r for r in failed if id(r) not in here)], only)


def _explained(known: Causes, e: Evidence) -> Array:
    """Wrong elements of another output that the same rules explain."""
    done = np.zeros(e.of.size, bool)
    for step in known.steps:
        rule = step.rule
        where = e.wrong
        if rule.cases:
            every = zip(known.evidence.results, rule.of_cases, strict=True)
            cases = {id(r) for r, own in every if own}
            where = where & np.array([id(r) in cases for r in e.results])[e.of]
        if rule.symptom:
            where = where & e.symptoms.get(rule.symptom, False)
        elif rule.elements:
            where = where & e.conditions.get(rule.elements, False)
        done |= where
    return done
