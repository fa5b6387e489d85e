# SPDX-License-Identifier: Apache-2.0
"""Findings: failed results of an operator, grouped by what they have in common.

Results keep some of their elements (sample.py). evidence.py makes of them a table of truth values:
what each element has, and its case. rules.py searches it for the rules that explain the most of
what is wrong; steps.py takes one after the other; wording.py says them. A call that crashed or was
refused counts as one wrong element.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..reference.arrays import Array
from ..reference.precision import SIGN
from . import conditions
from .case_conditions import of_mistake
from .causes import CLEAR, HALF, Causes, causes
from .evidence import Evidence, evidence
from .explanations import known
from .finding import Finding, Rank, order, stage
from .rules import Search
from .runner import FAILED, LEFT_OUT, Result
from .severity import SMALL
from .steps import Step
from .wording import of_outputs, symptom_of, which, words

UNSTEADY = "unsteady"  # whichever calls happened to show it
RAISED = "refused"  # the function raised an exception
NUMBER = re.compile(r"\d[\d.e+-]*|\binf\b|\bnan\b")
OTHER = "other cases"


def findings(results: Iterable[Result]) -> list[Finding]:
    """Of one provider and operator, whatever the dtypes."""
    compared = [r for r in results if r.status != LEFT_OUT]
    failed = [r for r in compared if r.status == FAILED]
    if failed and known(failed[0].provider):
        found = _of_defects(failed)
    else:
        found = _of_mistakes([r for r in failed if r.case.mistake])
        calls = [r for r in compared if not r.case.mistake]
        found += _of_calls([r for r in calls if r.status == FAILED], calls)
    return sorted(found, key=order)


def _of_defects(failed: Sequence[Result]) -> list[Finding]:
    groups: dict[tuple[object, ...], list[Result]] = {}
    for r in failed:
        groups.setdefault((r.kind, *(c.defect.number for c in r.causes)), []).append(r)
    return [Finding(tuple(group)) for group in groups.values()]


def _of_mistakes(failed: Sequence[Result]) -> list[Finding]:
    """Calls that must be refused."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for r in failed:
        groups.setdefault((r.kind, of_mistake(r.case)), []).append(r)
    return [Finding(tuple(group), text) for (_, text), group in groups.items()]


def _of_calls(failed: Sequence[Result], calls: Sequence[Result]) -> list[Finding]:
    kinds = sorted(dict.fromkeys(r.kind for r in failed), key=stage)
    if len(kinds) > 1:  # a stride that is ignored is wrong, outside and damaged
        good = [r for r in calls if r.status != FAILED]
        if together := _of_any_kind(failed, good):
            return [together]
    found = []
    for kind in kinds:
        own = [r for r in failed if r.kind == kind]
        # A call that ended earlier does not say whether this kind would have followed.
        others = [r for r in calls if r.kind != kind
                  and (r.status != FAILED or stage(r.kind) >= stage(kind))]  # fmt: skip
        # The others have a wrong shape or dtype.
        for group in ([r for r in own if not r.samples], [r for r in own if r.samples]):
            if group and kind == UNSTEADY:
                found.append(Finding(tuple(group)))
                continue
            for part in _by_exception(group) if kind == RAISED else filter(None, [group]):
                here = {id(r) for r in part}
                more = _of_kind(part, [*others, *(r for r in own if id(r) not in here)])
                if kind == RAISED and len(more) > 1:
                    more = [Finding(tuple(part), _exception(part[0]))]
                found += more
    return found


def _exception(r: Result) -> str:
    """Its type and line, without its text."""
    return r.sentence.partition(": ")[0].removeprefix("the function raised ")


def _by_exception(failed: Sequence[Result]) -> Iterable[list[Result]]:
    """By their sentences, whatever the numbers in them."""
    groups: dict[str, list[Result]] = {}
    for r in failed:
        groups.setdefault(NUMBER.sub("#", r.sentence), []).append(r)
    return groups.values()


def _of_any_kind(failed: Sequence[Result], good: Sequence[Result]) -> Finding | None:
    e = evidence([replace(r, samples=(), outputs=()) for r in failed], good)
    known = conditions.of_results(e.results, e.wrong, blocks=True)
    # What depends on the dtype has another cause for each kind.
    cases = {c: where for c, where in known.where.items() if not c.of_dtypes}
    none = np.zeros(e.of.size, bool)
    rules = Search(e, e.wrong, none, cases, none).rules()
    rule = next((rule for rule in rules if rule.recall == 1), None)
    if rule is None or not rule.cases or rule.score < CLEAR:
        return None
    such = int(np.count_nonzero(rule.of_cases))
    return Finding(tuple(failed), words(rule, e, known, len(failed), such), such)


def _of_kind(failed: Sequence[Result], others: Sequence[Result]) -> list[Finding]:
    chosen = causes(failed, others)
    explained: set[int] = set()
    for own in chosen:
        e = own.evidence
        is_explained = (e.count(e.wrong) > 0) & (e.count(own.left, e.share) <= HALF)
        explained |= {id(r) for r, good in zip(e.results, is_explained, strict=True) if good}
    same = [r for r in chosen[0].same if id(r) not in explained]
    explained |= {id(r) for r in same}
    rest = [_left(r, chosen) for r in failed if id(r) not in explained]
    alone = (
        sum(len(own.steps) for own in chosen) == 1
        and not rest
        and all(len(r.outputs) <= 1 for r in failed)
    )
    found = [x for own in chosen for x in _of_steps(own, alone, same if own is chosen[0] else ())]
    if rest:
        rank = Rank.REST if found else Rank.CAUSE
        found.append(Finding(tuple(rest), OTHER if found else "", rank=rank))
    return found


def _left(r: Result, chosen: Sequence[Causes]) -> Result:
    """With an element that no rule explains."""
    for own in chosen:
        e, left = own.evidence, own.left
        at = next((i for i, other in enumerate(e.results) if other is r), None)
        if at is not None and np.any(left & (e.of == at)):
            return _with_example(e, left, at)
    return r


def _of_steps(own: Causes, alone: bool, same: Sequence[Result]) -> Iterator[Finding]:
    """In the order of a report, so that "all other" follows what it means. `alone`: no other
    element is wrong. `same`: results that the first has besides."""
    e = own.evidence
    done = np.zeros(e.of.size, bool)
    found = [_of_step(step, e) for step in own.steps]
    found[:1] = [replace(one, results=(*one.results, *same)) for one in found[:1]]
    for finding, step in sorted(zip(found, own.steps, strict=True), key=lambda x: order(x[0])):
        rule = step.rule
        having = len(np.unique(e.of[rule.explained]))
        such = len(np.unique(e.of[rule.meet]))
        text = words(rule, e, step.conditions, having, such, which(rule, e, done), alone)
        text += of_outputs(finding.results, e.only)
        yield replace(finding, cause=text, such=such if rule.cases else 0)
        done |= rule.explained


def _of_step(step: Step, e: Evidence) -> Finding:
    """Without its sentence. A zero of the wrong sign is the example of nothing else where there is
    another."""
    rule = step.rule
    small, of_sign = rule.symptom in SMALL, symptom_of(rule, e) == SIGN
    clear = rule.explained
    if not of_sign:
        clear = clear & ~e.symptoms.get(SIGN, np.zeros(clear.shape, bool))
    shown = clear | (rule.explained & (e.count(clear) == 0)[e.of])
    own = np.unique(e.of[rule.explained]).tolist()
    results = tuple(_with_example(e, shown, i) for i in own)
    far = set(e.of[clear & e.is_far].tolist())
    telling = () if small else tuple(r for i, r in zip(own, results, strict=True) if i in far)
    rank = Rank.SMALL if small else Rank.SIGN if of_sign else Rank.CAUSE
    return Finding(results, rank=rank, telling=telling)


def _with_example(e: Evidence, where: Array, i: int) -> Result:
    """The result with the worst of the elements that the rule explains."""
    r = e.results[i]
    at = np.flatnonzero(where & (e.of == i))
    places = e.place[at]
    sample = next((s for s in r.samples if e.only in ("", s.output.name)), None)
    if r.element is None or sample is None or not sample.wrong_in_all:
        return r  # no element fails by itself
    is_first = sample.output.name == r.outputs[0]
    if is_first and sample.position(r.element) in sample.at[places]:
        return r  # the worst of all is one of them
    element = sample.element(int(places[np.argmax(e.ulp[at])]))
    return r.with_element(element, "" if is_first else f"{sample.output.name}: {sample.reason}")
