# SPDX-License-Identifier: Apache-2.0
"""Findings: failed results of an operator, grouped by what they have in common.

Greedily, in turn: the pattern of elements or of cases that explains the most of the results that
are left, minus those that have it and passed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .explanations import known
from .patterns import EVERY, NEVER, of_case
from .runner import FAILED, LEFT_OUT, Result

# Crashes come first; other kinds follow in the order of the run.
FIRST = ("crashed", "hung", "outside", "damaged")
SHARE = 0.75  # of the cases with a pattern that must have failed
FEW = 4  # results fewer than this may share a layout, values or an attribute by chance
RARE = 0.7  # a pattern of elements that more of all elements have says nothing


@dataclass(frozen=True)
class Finding:
    """Failed results of one provider, operator and kind."""

    results: tuple[Result, ...]
    cause: str  # what they have in common: a sentence without a subject; empty if nothing is known

    @property
    def kind(self) -> str:
        return self.results[0].kind

    @property
    def example(self) -> Result:
        """The one of the smallest tensor that is not empty, of the first of equals."""
        return min(self.results, key=lambda r: (not r.worst, sum(map(_size, r.case.shapes))))

    @property
    def dtypes(self) -> list[str]:
        return list(dict.fromkeys(r.case.dtype for r in self.results))


def _size(shape: Sequence[int]) -> int:
    n = 1
    for size in shape:
        n *= size
    return n


def _order(kind: str) -> int:
    return FIRST.index(kind) if kind in FIRST else len(FIRST)


def findings(results: Iterable[Result]) -> list[Finding]:
    """Of one provider and operator, whatever the dtypes."""
    compared = [r for r in results if r.status != LEFT_OUT]
    failed = [r for r in compared if r.status == FAILED]
    kinds = list(dict.fromkeys(r.kind for r in failed))
    kinds.sort(key=_order)
    found = []
    for kind in kinds:
        of_kind = [r for r in failed if r.kind == kind]
        if known(of_kind[0].provider):
            by_defect: dict[tuple[int, ...], list[Result]] = {}
            for r in of_kind:
                by_defect.setdefault(tuple(c.defect.number for c in r.causes), []).append(r)
            found += [Finding(tuple(rs), "") for rs in by_defect.values()]
        else:
            found += _grouped(of_kind, compared)
    return found


def _grouped(failed: Sequence[Result], compared: Sequence[Result]) -> list[Finding]:
    usual = compared[0].case
    texts = {id(r): tuple(of_case(r.case, usual)) for r in compared}
    left, found = list(failed), []
    first = _order(failed[0].kind)
    here = {id(r) for r in failed}
    # A result of an earlier kind does not say whether this kind would have followed.
    others = [r for r in compared if id(r) not in here
              and (r.status != FAILED or _order(r.kind) >= first)]  # fmt: skip
    passed = Counter(t for r in others for t in texts[id(r)])
    total = passed + Counter(t for r in failed for t in texts[id(r)])
    while left:
        best = _best(left, texts, passed)
        if best is None:
            found.append(Finding(tuple(left), ""))
            break
        text, of_elements = best
        if of_elements:
            group = [r for r in left if text in _matching(r)]
            wrong, matching = sum(r.wrong for r in group), sum(_matching(r)[text] for r in group)
            every = "" if wrong < matching else "; all such elements are wrong"
            if text != NEVER and all(NEVER in _matching(r) for r in group):
                every = "; they were never written"
            cause = f"every wrong element has this in common: {text}{every}"
        else:
            group = [r for r in left if text in texts[id(r)]]
            good, n = passed[text], total[text]
            alone = all(text in texts[id(r)] for r in failed)
            cause = f"only {text}" if alone and "every" not in text else text
            cause += f" ({n - good:,} of {n:,} such cases)" if good else ""
        found.append(Finding(tuple(group), cause))
        chosen = {id(r) for r in group}
        left = [r for r in left if id(r) not in chosen]
    return found


def _matching(r: Result) -> dict[str, int]:
    return {p.text: p.matching for p in r.patterns}


def _rare(r: Result) -> dict[str, int]:
    """The patterns of a result's wrong elements that tell something, and their elements."""
    return {p.text: p.matching for p in r.patterns if p.matching <= max(RARE * r.size, 1)}


def _best(
    left: Sequence[Result], texts: dict[int, tuple[str, ...]], passed: Counter[str]
) -> tuple[str, bool] | None:
    """The pattern that explains most, and whether it is one of elements.

    First one of elements all of which are wrong, then one of cases, then the rarest of elements.
    """
    cases: dict[str, float] = {}
    for text, n in Counter(t for r in left for t in texts[id(r)]).items():
        by_chance = n < FEW and ("with layout" in text or "with values" in text or " = " in text)
        everywhere = all(text in own for own in texts.values()) and text != EVERY
        if n >= SHARE * (n + passed[text]) and not by_chance and not everywhere:
            cases[text] = n - 2 * passed[text]
    elements = Counter(t for r in left for t in _rare(r))
    matching, wrong = Counter[str](), Counter[str]()
    for r in left:
        matching.update(_rare(r))
        wrong.update(dict.fromkeys(_rare(r), r.wrong))
    most = max([*cases.values(), *elements.values()], default=0)
    whole = {t: n for t, n in elements.items() if wrong[t] >= 0.98 * matching[t] and n >= most / 2}
    if whole:
        best = max(whole, key=lambda t: (whole[t], -matching[t]))
        where = [t for t in whole if t != NEVER and whole[t] >= SHARE * whole[best]]
        if best == NEVER and where:  # which elements says more
            best = max(where, key=lambda t: whole[t])
        return best, True
    apart = {t: n for t, n in cases.items() if t != EVERY and n >= 0.9 * most and n > 0}
    if apart:
        return max(apart, key=lambda t: apart[t]), False
    close = [t for t, n in elements.items() if n >= 0.9 * max(elements.values())]
    if close and (elements[close[0]] >= most / 2 or not cases):
        return min(close, key=lambda t: matching[t]), True
    last = max(cases, key=lambda t: cases[t], default=None)
    return None if last is None or cases[last] <= 0 else (last, False)
