# SPDX-License-Identifier: Apache-2.0
"""A finding: failed results that have a cause in common, its example, its place in the report."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

from .runner import Result

# Kinds that end a call before its results are compared: what later kinds say of it is not known.
ENDING = ("crashed", "hung", "outside", "damaged", "status")
FIRST = ENDING[:-1]  # in a report, the others by size
# Values that a person would try first.
VALUES = {name: i for i, name in enumerate(("uniform", "ordinary", "small", "normal", "mixed"))}


class Rank(IntEnum):
    CAUSE = 0
    SIGN = 1  # zeros of the wrong sign, which many mistakes make
    SMALL = 2  # errors such as rounding makes
    REST = 3  # what other causes leave


@dataclass(frozen=True)
class Finding:
    """Failed results of one provider, operator and kind. The element of each is one that the cause
    explains."""

    results: tuple[Result, ...]
    cause: str = ""  # a sentence without a subject; empty if nothing is known
    such: int = 0  # cases that have what these have in common, where it is one of cases
    rank: Rank = Rank.CAUSE
    telling: tuple[Result, ...] = ()  # those with more than small errors, where some have

    @property
    def kind(self) -> str:
        """That of the example, where a cause has several."""
        return self.example.kind

    @property
    def example(self) -> Result:
        """Of those with an element that is wrong: a tensor that is not empty, usual attributes, an
        element of usual size, a small tensor, plain values, the first of equals."""
        return min(self.telling or self.results, key=_plain)

    @property
    def dtypes(self) -> list[str]:
        """Those of the outputs."""
        return list(dict.fromkeys(r.case.output_dtypes[0] for r in self.results))


def _plain(r: Result) -> tuple[object, ...]:
    case = r.case
    size = sum(math.prod(shape) for shape in case.shapes)
    inputs = r.element.inputs.values() if r.element else ()
    odd = case.values not in VALUES or any(x and not 1e-4 <= abs(x) <= 1e4 for x, _ in inputs)
    laid = (case.layout != "contiguous") + (case.layout not in ("contiguous", "offset"))
    return (
        not r.worst,
        not size,
        case.unusual(),
        odd,
        size,
        VALUES.get(case.values, len(VALUES)),
        laid,
    )


def stage(kind: str) -> int:
    return ENDING.index(kind) if kind in ENDING else len(ENDING)


def order(found: Finding) -> tuple[int, int, int]:
    """Crashes first, then by rank, the largest first."""
    kind = found.kind
    first = FIRST.index(kind) if kind in FIRST else len(FIRST)
    return first, found.rank, -len(found.results)
