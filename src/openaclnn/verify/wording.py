# SPDX-License-Identifier: Apache-2.0
"""A rule in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..reference.patterns import EVERY_WRONG, TAIL, sentence
from ..reference.precision import DIRECTIONS, NEAR, NEAR_SUMS, SYMPTOMS, TELLING
from .case_conditions import EVERY
from .conditions import Conditions
from .evidence import Evidence
from .rules import Rule
from .runner import Result

NEARLY = "in nearly every case"
EVERY_OTHER = "every other wrong element"
SEVERAL = 16  # elements whose errors have one sign by more than chance
BIASED = ", as from a wrong term or factor: "
MOST = 0.5
RARE = 0.7


def words(
    rule: Rule, e: Evidence, known: Conditions, failed: int, such: int, *, beside: bool = False
) -> str:
    """`such`: cases that meet the rule's conditions, of which so many have failed. `beside`: other
    rules explain other elements of most of the same results."""
    said = _of_elements(rule, e, EVERY_OTHER if beside else EVERY_WRONG)
    parts = [said] if said else []
    counts = f" ({failed:,} of {such:,} such cases)" if failed < such else ""
    if rule.cases:
        first, *second = sorted(rule.cases, key=lambda text: not text.startswith("with "))
        both = f"{first}, only {second[0]}" if second else f"only {first}"
        parts.append(f"{both}{counts}{known.also(rule.cases)}")
    elif not said:
        parts.append(f"{NEARLY} ({failed:,} of {such:,})" if failed < such else EVERY)
    return ", ".join(parts) + _unwritten(rule, e)


def _of_elements(rule: Rule, e: Evidence, every: str) -> str:
    if not rule.symptom and not rule.elements:
        return ""
    symptom = (rule.symptom or _symptom(rule, e)) + _direction(rule, e)
    text = "; ".join(filter(None, (symptom, rule.elements or _in_common(rule, e))))
    whole = not symptom and np.array_equal(rule.explained, rule.named)
    return sentence(text, whole=whole, every=every)


def _symptom(rule: Rule, e: Evidence) -> str:
    """How all of the elements are wrong, if that says something."""
    n = np.count_nonzero(rule.explained)
    found = [text for text, where in e.symptoms.items()
             if text in SYMPTOMS and where[rule.explained].all()
             and np.count_nonzero(e.telling[text] & rule.explained) >= TELLING * n]  # fmt: skip
    return found[0] if found else ""


def _in_common(rule: Rule, e: Evidence) -> str:
    """What such elements have, and most others lack; the rarest."""
    every = e.weight.sum()
    shares = {t: e.weight[w].sum() / every for t, w in e.conditions.items()
              if not t.startswith(TAIL) and w[rule.explained].all()}  # fmt: skip
    found = min(shares, key=lambda t: shares[t], default="")
    return found if found and shares[found] <= RARE else ""


def _direction(rule: Rule, e: Evidence) -> str:
    """Rounding errors have both signs."""
    if rule.symptom not in (NEAR, NEAR_SUMS) or np.count_nonzero(rule.explained) < SEVERAL:
        return ""
    ways = [w for w, up in zip(DIRECTIONS, (-1, 1), strict=True)
            if (e.direction[rule.explained] == up).all()]  # fmt: skip
    return f"{BIASED}{ways[0]}" if ways else ""


def _unwritten(rule: Rule, e: Evidence) -> str:
    if e.unwritten[rule.explained].all():
        return "; they were never written"
    every, some = (np.count_nonzero(e.count(rule.explained & x)) for x in (e.wrong, e.unwritten))
    if some < MOST * every:
        return ""
    return f"; in {'all' if some == every else f'{some:,}'} of them, elements were never written"


def of_outputs(results: Sequence[Result]) -> str:
    """Of an operator with several outputs, those that every result has wrong, or none."""
    names = [p.result_name for p in results[0].case.op.outputs]
    if len(names) == 1 or not all(r.outputs for r in results):
        return ""
    counts = {n: sum(n in r.outputs for r in results) for n in names}
    wrong = [n for n in names if counts[n] == len(results)]
    often = [n for n in names if MOST * len(results) <= counts[n] < len(results)]
    right = [n for n in names if not counts[n]]
    ways = ((wrong, "wrong"), (often, "wrong in most of them"), (right, "right in all of them"))
    said = ", ".join(f"{_are(some)} {way}" for some, way in ways if some)
    return f"; {said}" if said else ""


def _are(names: Sequence[str]) -> str:
    return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'}"
