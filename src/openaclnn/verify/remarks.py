# SPDX-License-Identifier: Apache-2.0
"""What a finding says beside its cause: other attributes that fit, the direction of small errors,
the outputs that are wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..reference.patterns import TAIL
from ..reference.precision import DIRECTIONS, ROUNDING
from ..reference.precision import TEXTS as PRECISION
from .best_pattern import SMALL, matching_of, rarest_of_all
from .patterns import UNWRITTEN
from .runner import Result
from .trait import Trait, also

MOST = 0.5
NEVER_WRITTEN = "never written"
MANY = 16  # elements whose errors have one sign by more than chance
BIASED = ", as from a wrong term or factor: "


def same_cases(text: str, group: Sequence[Result], texts: Mapping[int, tuple[str, ...]]) -> str:
    """Other attributes that set the same cases apart as `text`, which names one."""
    here = {id(r) for r in group}
    if not any(f" {name} " in text for name in group[0].case.attributes):
        return ""
    others = [
        t
        for name in group[0].case.attributes
        if f" {name} " not in text
        for t in texts[id(group[0])]
        if t.startswith(f"where {name} is not")
        and {i for i, own in texts.items() if t in own} == here
    ]
    return also(others)


def inputs_of(results: Sequence[Result]) -> str:
    """What the inputs of badly rounded elements have in common, the rarest."""
    found = rarest_of_all(results, without=PRECISION)
    return f"; {found}" if found else ""


def direction(text: str, results: Sequence[Result]) -> str:
    """Rounding errors have both signs."""
    if text not in SMALL or sum(r.wrong for r in results) < MANY:
        return ""
    one = [way for way in DIRECTIONS if all(way in matching_of(r) for r in results)]
    return f"{BIASED}{one[0]}" if one else ""


def of_rounding(trait: Trait) -> Trait:
    """The only finding: nothing is farther off than rounding makes it."""
    if BIASED in trait.text:
        return trait
    for near in SMALL:
        trait = replace(trait, text=trait.text.replace(near, near + ROUNDING))
    return trait


def of_unwritten(cause: str, results: Sequence[Result]) -> str:
    """Elements that a kernel leaves out, beside another cause."""
    left_out = [r.parts[UNWRITTEN][0] for r in results if r.parts]
    left_out = [part for part in left_out if part.wrong]
    n = len(left_out)
    if NEVER_WRITTEN in cause or not n or n < MOST * len(results):
        return ""
    texts = [{p.text for p in part.patterns} for part in left_out]
    tails = (p.text for p in left_out[0].patterns if p.text.startswith(TAIL))  # the shortest first
    tail = next((t for t in tails if all(t in own for own in texts)), "")
    where = "all" if n == len(results) else f"{n:,}"
    more = f": {tail}" if tail and tail not in cause else ""
    return f"; in {where} of them, elements were {NEVER_WRITTEN}{more}"


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
