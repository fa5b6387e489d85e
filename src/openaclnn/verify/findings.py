# SPDX-License-Identifier: Apache-2.0
"""Findings: failed results of an operator, grouped by what they have in common.

Elements that are far off are grouped apart from those that are off by rounding, and elements with
NaN or infinite inputs apart from the others, where that names clearer causes: a kernel may compute
in FLOAT, or lose NaN, besides its mistake.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from ..reference.patterns import NEAR_ZERO, TAIL, common
from ..reference.precision import NARROW, NEAR, NEAR_SUMS, ROUNDING, SIGN
from .attributes import by_flag
from .explanations import known
from .finding import Finding, order, stage
from .grouping import SOME, grouped
from .overall import complete, likely
from .patterns import CLOSE, DIVISIONS, FAR, SEVERITIES, ZEROS, Part
from .remarks import of_outputs, of_rounding, of_unwritten
from .runner import FAILED, LEFT_OUT, PASSED, Result
from .trait import NOTHING, Trait

CLEARER = 0.9  # the vagueness of divided findings, as a share of that of all together
COUNTS = re.compile(r" \([\d,]+ of [\d,]+ such cases\)")
MOST = 0.8  # of the results, which two causes explain
SHAPES = "for tensors of"
OF_ONE = 0.1  # what another cause adds to the vagueness of all
OFTEN = 0.25
ROUNDED = (NEAR, NEAR_SUMS, NARROW.format("FLOAT"))  # what rounding looks like
MANY = 3  # causes: too many to be clear, or for errors of rounding
UNSTEADY, DAMAGED = "unsteady", "damaged"  # larger tensors show them more often


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
    kinds.sort(key=stage)
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
    found.sort(key=order)
    for i, one in enumerate(found):
        f = one if one.part else _with_flag(one, compared)
        if len(f.results) == 1 and TAIL in f.cause:  # any element may be the last
            f = replace(f, trait=NOTHING.said(f.part))
        more = of_unwritten(f.cause, f.results) + of_outputs(f.results)
        after = more if f.cause else more.removeprefix("; ")
        found[i] = replace(f, trait=f.trait.said(after=after))
    return found


def _with_flag(found: Finding, compared: Sequence[Result], what: str = f"{FAR} ") -> Finding:
    """With the value of a flag that most results with elements far off have, in its cause and its
    example."""
    far = [r for r in found.results if not r.severities or r.severities[0].wrong]
    if not far or not found.cause:
        return found
    close = [r for r in found.results if r.severities and not r.severities[0].wrong]
    passed = [r for r in compared if r.status == PASSED and not r.case.mistake]
    flag, with_it = by_flag(far, [*passed, *close])
    if not flag or flag.text in found.cause:
        return found
    known_ids = {id(r) for r in with_it}
    clear = tuple(r for r in found.clear or found.results if id(r) in known_ids)
    return replace(found, trait=found.trait.said(after=f"; {what}{flag.text}"), clear=clear)


def _clearest(failed: Sequence[Result], compared: Sequence[Result]) -> list[Finding]:
    """All elements together, or divided where the causes are clearer then."""
    if failed[0].kind == UNSTEADY:  # whichever cases happened to show it
        return [Finding(tuple(failed), NOTHING)]
    valued = [r for r in failed if r.severities]
    if 0 < len(valued) < len(failed):  # the others have a wrong shape or dtype
        unfit = [r for r in failed if not r.severities]
        fit = [replace(r, status=PASSED) if r.severities else r for r in compared]
        known_ids = {id(r) for r in unfit}
        rest = [r for r in compared if id(r) not in known_ids]
        return _clearest(unfit, fit) + _clearest(valued, rest)
    together = _by_values(failed, compared)
    is_clear = sum(f.trait.vagueness for f in together) <= SOME
    if is_clear or not _is_rounding([r.severities[-1] for r in failed if r.severities]):
        return together
    found = _divided(failed, compared, SEVERITIES, lambda r: r.severities, _by_values)
    small = [f for f in found if f.part == CLOSE]
    if len(small) == len(found):
        return together
    large = [f for f in found if f not in small]
    return large + (small if len(small) < MANY else [_merged(small)])


def _is_rounding(parts: Sequence[Part]) -> bool:
    """Whether many results have elements that are close, most as near as rounding makes them."""
    close = [part for part in parts if part.wrong]
    rounded, near_zero = (
        sum(any(p.text.endswith(text) for p in part.patterns) for part in close)
        for text in (ROUNDED, NEAR_ZERO)
    )
    if len(close) < OFTEN * len(parts) or rounded < OFTEN * len(close):
        return False
    return rounded + near_zero >= len(close) / 2  # differences cancel near 0


def _merged(found: Sequence[Finding]) -> Finding:
    results = {r.case.id: r for f in found for r in f.results}
    clear = [r for f in found for r in f.clear]
    return Finding(tuple(results.values()), Trait(f"{CLOSE}{ROUNDING}"), tuple(clear), CLOSE)


def _by_values(failed: Sequence[Result], compared: Sequence[Result]) -> list[Finding]:
    """All together, or divided by what the values of inputs and results are."""
    together = grouped(failed, compared)
    two = sum(sorted(len(f.results) for f in together)[-2:])
    clear = two >= MOST * len(failed) or any(r.patterns or r.case.mistake for r in failed)
    by_chance = failed[0].kind == DAMAGED and any(SHAPES in f.cause for f in together)
    if (len(together) > 2 and not clear) or by_chance:
        return [Finding(tuple(failed), NOTHING)]  # no elements, and no one cause
    ways = []
    for i, names in enumerate(DIVISIONS):
        way = _divided(failed, compared, names, partial(_parts, i), grouped)
        if way and (names[0] != ZEROS or SIGN in way[0].cause):
            ways.append(way)
    limit = CLEARER * _vagueness(together)
    return min((w for w in ways if _vagueness(w) < limit), key=_vagueness, default=together)


def _parts(division: int, r: Result) -> Sequence[Part]:
    return r.parts[division] if r.parts else ()


def _vagueness(found: Sequence[Finding]) -> float:
    """The mean of the results and the number of causes."""
    n = sum(len(f.results) for f in found)
    return sum(len(f.results) * f.trait.vagueness for f in found) / n + OF_ONE * len(found)


def _divided(
    failed: Sequence[Result],
    compared: Sequence[Result],
    names: Sequence[str],
    parts: Callable[[Result], Sequence[Part]],
    grouping: Callable[[Sequence[Result], Sequence[Result]], list[Finding]],
) -> list[Finding]:
    """Findings of each part; none unless two have wrong elements."""
    by_id = {id(r): of_r for r in compared if (of_r := parts(r))}
    if not all(id(r) in by_id for r in failed):
        return []
    if sum(any(by_id[id(r)][i].wrong for r in failed) for i in range(len(names))) < 2:
        return []
    found: list[Finding] = []
    first: dict[str, int] = {}  # causes of the first part, and their findings
    for i, name in enumerate(names):
        of_part = {id(r): _as_part(r, by_id.get(id(r), ()), i) for r in compared}
        here = [of_part[id(r)] for r in failed if by_id[id(r)][i].wrong]
        if not here:
            continue
        both = {r.case.id for r in failed if by_id[id(r)][i].wrong < r.wrong}
        others = list(of_part.values())
        for group in grouping(here, others):
            if not i or names is not SEVERITIES:  # flags are those of elements far off
                group = _with_flag(group, others, "" if names is SEVERITIES else f"{FAR} ")
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
            clear = tuple(r for r in shown if r.case.id not in both)
            text = ", ".join(filter(None, (name, group.cause)))
            trait = replace(group.trait, text=text)
            found.append(Finding(group.results, trait, clear, name))
    return found


def _as_part(r: Result, parts: Sequence[Part], i: int) -> Result:
    """What would be known if the result had this part alone."""
    if not parts or (r.status == FAILED and r.kind != "wrong"):
        return r
    return replace(r.of_part(parts[i]), status=FAILED if parts[i].wrong else PASSED)
