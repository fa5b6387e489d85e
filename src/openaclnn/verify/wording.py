# SPDX-License-Identifier: Apache-2.0
"""A rule in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..reference.arrays import Array
from ..reference.patterns import ALL_SUCH, EVERY_WRONG, TAILS, in_common
from ..reference.precision import AS_IF, DIRECTIONS, HYPOTHESES, NEAR, NEAR_SUMS, ROUNDING, TELLING
from .case_conditions import EVERY
from .conditions import Conditions
from .evidence import Evidence
from .rules import Rule
from .runner import Result
from .severity import CLOSE, SMALL

NEARLY = "in nearly every case"
SEVERAL = 16  # elements whose errors have one sign by more than chance
BIASED = ", as from a wrong term or factor: "
MOST = 0.5
LITTLE = 0.05  # of what is wrong
RARE = 0.7


def words(
    rule: Rule,
    e: Evidence,
    known: Conditions,
    having: int,
    such: int,
    elements: str = EVERY_WRONG,
    alone: bool = False,
) -> str:
    """`such`: cases that meet the rule's conditions, `having`: those that it explains. `elements`:
    those that it explains, as `which` says. `alone`: no other element is wrong."""
    said = _of_elements(rule, e, elements, alone)
    parts = [said] if said else []
    subject = f"{e.only} is wrong " if e.only and not said else ""
    counts = f" ({having:,} of {such:,} such cases)" if having < such else ""
    if rule.cases:
        texts = [c.text for c in rule.cases]
        first, *second = sorted(texts, key=lambda text: not text.startswith("with "))
        both = f"{first}, only {second[0]}" if second else f"only {first}"
        parts.append(f"{subject}{both}{counts}")
    elif not said:
        parts.append(subject + (f"{NEARLY} ({having:,} of {such:,})" if having < such else EVERY))
    text = ", ".join(parts)
    return text + (known.lacking(text) or known.also(rule.cases)) + _unwritten(rule, e)


def which(rule: Rule, e: Evidence, done: Array) -> str:
    """The elements that a rule explains. `done`: those that other rules explain."""
    wrong = e.wrong & np.isin(e.of, e.of[rule.explained])
    rest, others = wrong & ~done & ~rule.explained, bool((wrong & done).any())
    of = f" of {e.only}" if e.only else ""
    results = e.count(wrong, e.weight)  # a large one counts as much as a small one
    share = e.weight / np.where(results > 0, results, 1)[e.of]
    every = np.count_nonzero(results)
    if share[rest].sum() > LITTLE * every:
        most = share[rule.explained].sum() > MOST * every
        return f"{'most' if most else 'some'} wrong elements{of}"
    if rest.any():
        return f"nearly every {'other ' if others else ''}wrong element{of}"
    return f"all other wrong elements{of}" if others else f"every wrong element{of}"


def _of_elements(rule: Rule, e: Evidence, elements: str, alone: bool) -> str:
    if not rule.symptom and not rule.elements:
        return ""
    symptom = symptom_of(rule, e)
    rounding = ROUNDING if alone and symptom in (NEAR, NEAR_SUMS) else ""
    symptom += _direction(rule, e) or rounding
    same = rule.elements or ("" if symptom.startswith(AS_IF) else _in_common(rule, e))
    same += _larger_blocks(rule, e)
    text = "; ".join(filter(None, (symptom, same)))
    whole = not symptom and e.wrong[rule.meet].all()
    return in_common(elements, text) + (f"; {ALL_SUCH}" if whole else "")


def _larger_blocks(rule: Rule, e: Evidence) -> str:
    """Of which the same elements are the tail."""
    if rule.elements not in TAILS:
        return ""
    here = np.isin(e.of, e.of[rule.explained])
    tail = e.conditions[rule.elements][here]
    known = {TAILS[t]: where[here] for t, where in e.conditions.items() if t in TAILS}
    largest = max(block for block, where in known.items() if np.array_equal(where, tail))
    return f" (or of up to {largest:,})" if largest > TAILS[rule.elements] else ""


def symptom_of(rule: Rule, e: Evidence) -> str:
    """The rule's, or how all of its elements are wrong, if that says something."""
    if rule.symptom:
        return rule.symptom
    n = np.count_nonzero(rule.explained)
    found = [text for text, where in e.symptoms.items()
             if text != CLOSE and not text.startswith(HYPOTHESES) and where[rule.explained].all()
             and np.count_nonzero(e.telling[text] & rule.explained) >= TELLING * n]  # fmt: skip
    return found[0] if found else ""


def _in_common(rule: Rule, e: Evidence) -> str:
    """What such elements have, and most others lack; the rarest."""
    every = e.weight.sum()
    shares = {t: e.weight[w].sum() / every for t, w in e.conditions.items()
              if t not in TAILS and w[rule.explained].all()}  # fmt: skip
    found = min(shares, key=lambda t: shares[t], default="")
    return found if found and shares[found] <= RARE else ""


def _direction(rule: Rule, e: Evidence) -> str:
    """Rounding errors have both signs."""
    if rule.symptom not in SMALL or np.count_nonzero(rule.explained) < SEVERAL:
        return ""
    ways = [w for w, up in zip(DIRECTIONS, (-1, 1), strict=True)
            if (e.direction[rule.explained] == up).all()]  # fmt: skip
    return f"{BIASED}{ways[0]}" if ways else ""


def _unwritten(rule: Rule, e: Evidence) -> str:
    if e.unwritten[rule.explained].all():
        return "; these elements were never written"
    every, some = (
        np.count_nonzero(e.count(x)) for x in (rule.explained, rule.explained & e.unwritten)
    )
    if some < MOST * every:
        return ""
    return f"; in {'all' if some == every else f'{some:,}'} of them, elements were never written"


def of_outputs(results: Sequence[Result], said: str) -> str:
    """Of an operator with several outputs, those that every result has wrong, or none. `said`: the
    one that the sentence is about."""
    names = [p.result_name for p in results[0].case.op.outputs]
    if len(names) == 1 or not all(r.outputs for r in results):
        return ""
    counts = {n: sum(n in r.outputs for r in results) for n in names}
    others = [n for n in names if n != said]
    wrong = [n for n in others if counts[n] == len(results)]
    often = [n for n in others if MOST * len(results) < counts[n] < len(results)]
    compared = {s.output.name for r in results for s in r.samples}
    right = [n for n in names if not counts[n] and n in compared]
    also = " as well" if said else ""
    ways = ((wrong, f"wrong{also}"), (often, f"wrong in most of them{also}"),
            (right, "right in all of them"))  # fmt: skip
    text = ", ".join(f"{_are(some)} {way}" for some, way in ways if some)
    return f"; {text}" if text else ""


def _are(names: Sequence[str]) -> str:
    *first, last = names
    return (
        f"{', '.join(first) + ' and ' if first else ''}{last} {'is' if len(names) == 1 else 'are'}"
    )
