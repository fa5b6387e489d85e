# SPDX-License-Identifier: Apache-2.0
"""Findings: failed results of an operator, grouped by what they have in common.

Greedily, in turn: the pattern of elements or of cases that explains the most of the results that
are left, minus those that have it and passed. Results whose wrong elements two patterns found so
far explain together go to the first of these. Elements with NaN or infinite inputs are grouped
apart from the others where that names clearer causes: a kernel may lose NaN besides its mistake.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..reference.patterns import EVERY_WRONG, common, sentence
from ..reference.precision import SIGN
from ..reference.precision import TEXTS as PRECISION
from .best_pattern import (
    FEW,
    best_pattern,
    is_covered,
    matching_of,
    one_cause,
    part_with,
    remainder,
)
from .explanations import known
from .overall import NOTHING, Trait, complete, counted, ignored, likely, of_most, rare_values
from .patterns import DIVISIONS, EVERY, NEVER, ZEROS, of_case, of_values
from .remarks import direction, inputs_of, of_outputs, of_rounding, of_unwritten, same_cases
from .runner import FAILED, LEFT_OUT, PASSED, Result

# Kinds that end a call before its results are compared: what later kinds say of it is not known.
ENDING = ("crashed", "hung", "outside", "damaged", "status")
FIRST = ENDING[:-1]  # in a report, the others by size
# Values that a person would try first.
VALUES = {name: i for i, name in enumerate(("uniform", "ordinary", "small", "normal", "mixed"))}
NEARLY = "in nearly every case"
OTHER = "other cases"
EVERY_OTHER = "every other wrong element"
CLEARER = 0.9  # the vagueness of divided findings, as a share of that of all together
COUNTS = re.compile(r" \([\d,]+ of [\d,]+ such cases\)")
MOST = 0.8  # of the results, which two causes explain
SHAPES = "for tensors of"
UNSTEADY, DAMAGED = "unsteady", "damaged"  # larger tensors show them more often
HALF = 0.5  # of the results, which a pattern explains
SOME = 0.3  # the vagueness of a pattern of elements of which some are right


@dataclass(frozen=True)
class Finding:
    """Failed results of one provider, operator and kind."""

    results: tuple[Result, ...]
    trait: Trait
    clear: tuple[Result, ...] = ()  # those that have no other wrong elements, if any

    @property
    def cause(self) -> str:
        """A sentence without a subject; empty if nothing is known."""
        return self.trait.text

    @property
    def kind(self) -> str:
        """That of the example, where a cause has several."""
        return self.example.kind

    @property
    def example(self) -> Result:
        """Of those with an element that is wrong: usual attributes, an element of
        usual size, a small tensor, plain values, the first of equals."""
        return min(self.clear or self.results, key=_plain)

    @property
    def dtypes(self) -> list[str]:
        """Those of the outputs."""
        return list(dict.fromkeys(r.case.output_dtypes[0] for r in self.results))


def _plain(r: Result) -> tuple[object, ...]:
    case = r.case
    size = sum(map(_size, case.shapes))
    odd = case.values not in VALUES or any(
        x and not 1e-4 <= abs(x) <= 1e4 for e in r.worst[:1] for x, _ in e.inputs.values()
    )
    laid = (case.layout != "contiguous") + (case.layout not in ("contiguous", "offset"))
    return not r.worst, case.unusual(), odd, size, VALUES.get(case.values, len(VALUES)), laid


def _size(shape: Sequence[int]) -> int:
    n = 1
    for size in shape:
        n *= size
    return n


def _stage(kind: str) -> int:
    return ENDING.index(kind) if kind in ENDING else len(ENDING)


def _order(found: Finding) -> tuple[int, bool, int]:
    """Crashes first, then the largest; what other causes leave comes after them."""
    kind = found.kind
    first = FIRST.index(kind) if kind in FIRST else len(FIRST)
    rest = EVERY_OTHER in found.cause or OTHER in found.cause
    return first, rest, -len(found.results)


def findings(results: Iterable[Result]) -> list[Finding]:
    """Of one provider and operator, whatever the dtypes."""
    compared = [r for r in results if r.status != LEFT_OUT]
    failed = [r for r in compared if r.status == FAILED]
    found: list[Finding] = []
    if len(compared) == 1 and failed and not known(failed[0].provider):  # no others to differ from
        (r,) = failed
        return [Finding((r,), Trait(common(r.patterns, r.wrong, r.size)))]
    calls = [r for r in failed if not r.case.mistake and r.kind != "status"]
    # Of kinds that go together: a stride that is ignored is wrong, outside and damaged.
    if len({r.kind for r in calls}) > 1 and not known(calls[0].provider):
        passed = [r for r in compared if r.status == PASSED and not r.case.mistake]
        if trait := complete(calls, passed) or likely(calls, passed):
            found.append(Finding(tuple(calls), trait))
            failed = [r for r in failed if r.case.mistake or r.kind == "status"]
    kinds = list(dict.fromkeys(r.kind for r in failed))
    kinds.sort(key=_stage)
    for kind in kinds:
        of_kind = [r for r in failed if r.kind == kind]
        if known(of_kind[0].provider):
            by_defect: dict[tuple[int, ...], list[Result]] = {}
            for r in of_kind:
                by_defect.setdefault(tuple(c.defect.number for c in r.causes), []).append(r)
            found += [Finding(tuple(rs), NOTHING) for rs in by_defect.values()]
        else:
            found += _clearest(of_kind, compared)
    if len(found) == 1:
        found = [replace(found[0], trait=of_rounding(found[0].trait))]
    found.sort(key=_order)
    for i, f in enumerate(found):
        more = of_unwritten(f.cause, f.results) + of_outputs(f.results)
        found[i] = replace(f, trait=f.trait.said(after=more))
    return found


def _clearest(failed: Sequence[Result], compared: Sequence[Result]) -> list[Finding]:
    """All elements together, or divided where the causes are clearer then."""
    if failed[0].kind == UNSTEADY:  # whichever cases happened to show it
        return [Finding(tuple(failed), NOTHING)]
    together = _grouped(failed, compared)
    limit = CLEARER * _vagueness(together)
    two = sum(sorted(len(f.results) for f in together)[-2:])
    clear = two >= MOST * len(failed) or any(r.patterns or r.case.mistake for r in failed)
    by_chance = failed[0].kind == DAMAGED and any(SHAPES in f.cause for f in together)
    if (len(together) > 2 and not clear) or by_chance:
        return [Finding(tuple(failed), NOTHING)]  # no elements, and no one cause
    ways = [_divided(failed, compared, i) for i in range(len(DIVISIONS))]
    return min((w for w in ways if w and _vagueness(w) < limit), key=_vagueness, default=together)


def _vagueness(found: Sequence[Finding]) -> float:
    """The mean of the results and the number of causes."""
    n = sum(len(f.results) for f in found)
    return sum(len(f.results) * f.trait.vagueness for f in found) / n + len(found) / 10


def _divided(failed: Sequence[Result], compared: Sequence[Result], division: int) -> list[Finding]:
    """Findings of each part; none unless both have wrong elements."""
    if not all(r.parts for r in failed):
        return []
    if not all(any(r.parts[division][i].wrong for r in failed) for i in (0, 1)):
        return []
    found: list[Finding] = []
    first: dict[str, int] = {}  # causes of the first part, and their findings
    for i, name in enumerate(DIVISIONS[division]):
        of_part = {id(r): _as_part(r, division, i) for r in compared}
        here = [of_part[id(r)] for r in failed if r.parts[division][i].wrong]
        groups = _grouped(here, list(of_part.values()))
        if name == ZEROS and SIGN not in groups[0].cause:
            return []
        for group in groups:
            cause = COUNTS.sub("", group.cause)
            if i and cause in first:  # one of both parts
                other = found[first[cause]]
                known_ids = {r.case.id for r in other.results}
                more = [r for r in group.results if r.case.id not in known_ids]
                trait = replace(other.trait, text=cause)
                found[first[cause]] = Finding((*other.results, *more), trait, other.clear)
                continue
            if cause and not i:
                first[cause] = len(found)
            shown = group.clear or group.results
            clear = tuple(r for r in shown if not r.parts[division][1 - i].wrong)
            found.append(Finding(group.results, group.trait.said(f"{name}, "), clear))
    return found


def _as_part(r: Result, division: int, i: int) -> Result:
    """What would be known if the result had this part alone."""
    if not r.parts or (r.status == FAILED and r.kind != "wrong"):
        return r
    part = r.parts[division][i]
    status = FAILED if part.wrong else PASSED
    return replace(r.of_part(part), status=status)


def _having(
    best: tuple[str, bool], left: Sequence[Result], texts: dict[int, tuple[str, ...]]
) -> list[Result]:
    """The results that are left and have a pattern, of elements or of cases."""
    text, of_elements = best
    return [r for r in left if text in (matching_of(r) if of_elements else texts[id(r)])]


def _grouped(failed: Sequence[Result], compared: Sequence[Result]) -> list[Finding]:
    stage = _stage(failed[0].kind)
    here = {id(r) for r in failed}
    # A result of an earlier kind does not say whether this kind would have followed.
    others = [r for r in compared if id(r) not in here
              and (r.status != FAILED or _stage(r.kind) >= stage)]  # fmt: skip
    usual = compared[0].case
    texts = {id(r): tuple(dict.fromkeys(of_case(r.case, usual))) for r in (*failed, *others)}
    left = list(failed)
    found: list[Finding] = []
    others_left: list[Result] = []
    passed = Counter(t for r in others for t in texts[id(r)])
    total = passed + Counter(t for r in failed for t in texts[id(r)])
    good = [r for r in others if not r.case.mistake
            and (r.status == PASSED or _stage(r.kind) > stage)]  # fmt: skip
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
                trait = counted(NEARLY if passes else EVERY, n - passes, passes, "")
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
