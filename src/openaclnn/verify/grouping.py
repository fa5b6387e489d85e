# SPDX-License-Identifier: Apache-2.0
"""Failed results of one kind, grouped by what they have in common.

Greedily, in turn: the pattern of elements or of cases that explains the most of the results that
are left, minus those that have it and passed. Results whose wrong elements two patterns found so
far explain together go to the first of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..reference.patterns import EVERY_WRONG, sentence
from ..reference.precision import CUT, NEAR
from ..reference.precision import TEXTS as PRECISION
from .attributes import ignored, rare_values, unless
from .best_pattern import (
    FEW,
    best_pattern,
    cut_in_a_dtype,
    is_covered,
    matching_of,
    one_cause,
    part_with,
    remainder,
)
from .finding import EVERY_OTHER, OTHER, Finding, stage
from .overall import of_most
from .patterns import EVERY, NEVER, of_case, of_values
from .remarks import direction, inputs_of, same_cases
from .runner import FAILED, PASSED, Result
from .trait import NOTHING, Trait, counted

NEARLY = "in nearly every case"
HALF = 0.5  # of the results, which a pattern explains
SOME = 0.3  # the vagueness of a pattern of elements of which some are right


def _having(
    best: tuple[str, bool], left: Sequence[Result], texts: dict[int, tuple[str, ...]]
) -> list[Result]:
    """The results that are left and have a pattern, of elements or of cases."""
    text, of_elements = best
    return [r for r in left if text in (matching_of(r) if of_elements else texts[id(r)])]


def grouped(failed: Sequence[Result], compared: Sequence[Result]) -> list[Finding]:
    own = stage(failed[0].kind)
    here = {id(r) for r in failed}
    # A result of an earlier kind does not say whether this kind would have followed.
    others = [r for r in compared if id(r) not in here
              and (r.status != FAILED or stage(r.kind) >= own)]  # fmt: skip
    usual = compared[0].case
    texts = {id(r): tuple(dict.fromkeys(of_case(r.case, usual))) for r in (*failed, *others)}
    left = list(failed)
    found: list[Finding] = []
    others_left: list[Result] = []
    passed = Counter(t for r in others for t in texts[id(r)])
    total = passed + Counter(t for r in failed for t in texts[id(r)])
    good = [r for r in others if not r.case.mistake
            and (r.status == PASSED or stage(r.kind) > own)]  # fmt: skip
    partial: set[int] = set()  # ids of results without elements that a pattern found explains
    of_elements_found: dict[str, int] = {}  # patterns, and the findings that have them
    while left:
        by_two = {id(r): r for r in left if is_covered(r, of_elements_found)}
        for r in by_two.values():
            if having := part_with(r, of_elements_found):
                i = of_elements_found[having[0]]
                found[i] = replace(found[i], results=(*found[i].results, r.of_part(having[1])))
        left = [r for r in left if id(r) not in by_two]
        if not left:
            break
        rests = [remainder(r, of_elements_found) for r in left]
        partial |= {id(rest) for rest, r in zip(rests, left, strict=True) if rest is not r}
        texts |= {id(rest): texts[id(r)] for rest, r in zip(rests, left, strict=True)}
        left = rests
        if trait := one_cause(left, good):
            found.append(Finding(tuple(left), trait))
            break
        best = best_pattern(left, texts, passed)
        few = best is None or len(_having(best, left, texts)) < HALF * len(left)
        if few and (place := of_most(left, good)):
            best = place, False
        if best is None:
            others_left += left
            break
        text, of_elements = best
        group = _having(best, left, texts)
        if text == NEAR and (cut := cut_in_a_dtype(left)):
            text, group = CUT, cut
        if of_elements:
            wrong, matching = sum(r.wrong for r in group), sum(matching_of(r)[text] for r in group)
            never = text != NEVER and all(NEVER in matching_of(r) for r in group)
            said = sentence(text, wrong, matching, never)
            if any(id(r) in partial for r in group):
                said = said.replace(EVERY_WRONG, EVERY_OTHER, 1)
            if text in PRECISION:
                said += direction(text, group) + inputs_of(group)
            trait = Trait(said, vagueness=SOME if never or wrong < matching else 0)
            where = rare_values(group, good) or ignored(group, good, usual)
            if where and not (text in PRECISION and where.vagueness):
                where = where if where.vagueness else replace(where, vagueness=trait.vagueness)
                trait = where.said(f"{trait.text}, ")
        else:
            passes, n = passed[text], total[text]
            alone = all(text in texts[id(r)] for r in failed)
            said = f"only {text}" if alone and text != EVERY else text
            if text == EVERY:
                trait, without = unless(group, good)
                group = without or group
                trait = trait or counted(NEARLY if passes else EVERY, n - passes, passes, "")
            else:
                more = same_cases(text, group, texts)
                trait = counted(said, n - passes, passes).said(after=more)
        chosen = {id(r) for r in group}
        left = [r for r in left if id(r) not in chosen]
        whole = not of_elements and total[text] == len(group)
        if found and not whole and len(group) < FEW - 1:
            others_left += group  # too few to have a cause that is more than chance
        else:
            if of_elements:
                of_elements_found[text] = len(found)
            clear = tuple(r for r in group if id(r) not in partial)
            found.append(Finding(tuple(group), trait, clear))
    for text in dict.fromkeys(of_values(r.case) for r in others_left):  # all that have these values
        group = [r for r in others_left if of_values(r.case) == text]
        if len(group) == total[text] and group[0].case.values != usual.values:
            found.append(Finding(tuple(group), counted(text, len(group), 0)))
            others_left = [r for r in others_left if r not in group]
    if others_left:
        found.append(Finding(tuple(others_left), NOTHING.said(OTHER if found else "")))
    return found
