# SPDX-License-Identifier: Apache-2.0
"""A finding: failed results that have a cause in common, its example, its place in the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .patterns import CLOSE
from .runner import Result
from .trait import Trait

# Kinds that end a call before its results are compared: what later kinds say of it is not known.
ENDING = ("crashed", "hung", "outside", "damaged", "status")
FIRST = ENDING[:-1]  # in a report, the others by size
# Values that a person would try first.
VALUES = {name: i for i, name in enumerate(("uniform", "ordinary", "small", "normal", "mixed"))}
OTHER = "other cases"
EVERY_OTHER = "every other wrong element"


@dataclass(frozen=True)
class Finding:
    """Failed results of one provider, operator and kind."""

    results: tuple[Result, ...]
    trait: Trait
    clear: tuple[Result, ...] = ()  # those that have no other wrong elements, if any
    part: str = ""  # of the elements, where they are divided: a word of DIVISIONS or SEVERITIES

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


def stage(kind: str) -> int:
    return ENDING.index(kind) if kind in ENDING else len(ENDING)


def order(found: Finding) -> tuple[int, bool, bool, int]:
    """Crashes first, then the largest; small errors, and what other causes leave, come after."""
    kind = found.kind
    first = FIRST.index(kind) if kind in FIRST else len(FIRST)
    rest = EVERY_OTHER in found.cause or OTHER in found.cause
    small = found.part == CLOSE
    return first, small, rest, -len(found.results)
