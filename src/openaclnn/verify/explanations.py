# SPDX-License-Identifier: Apache-2.0
"""Known defects of providers, and which wrong elements each of them explains.

A defect predicts: from the inputs, the attributes and the dtype of a case it says which results it
makes there, as values or as a bound. An element is explained when its wrong result is the one that
a defect predicts; a defect that could have made any result explains none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..reference.arrays import Array
from ..reference.judge import Output
from .cases import Case
from .defect import Defect, Wrong
from .torch_defects import TORCH


@dataclass(frozen=True)
class Cause:
    """A known defect, and how many elements of a finding it explains."""

    defect: Defect
    elements: int


def known(provider: str) -> tuple[Defect, ...]:
    return TORCH if provider.partition(":")[0] == "torch" else ()


def of_elements(
    provider: str, case: Case, wrong: Sequence[tuple[Output, Array]]
) -> tuple[tuple[Cause, ...], int]:
    """The defects that explain wrong elements, each element by the first that does, and how many
    elements none explains."""
    counts: dict[int, int] = {}
    unexplained = 0
    defects = known(provider)
    for output, where in wrong if defects else ():
        left = where.copy()
        for defect in defects:
            if not left.any():
                break
            with np.errstate(all="ignore"):
                hit = left & defect.explains(Wrong(case, output, where))
            if count := int(np.count_nonzero(hit)):
                counts[defect.number] = counts.get(defect.number, 0) + count
                left &= ~hit
        unexplained += int(np.count_nonzero(left))
    causes = tuple(Cause(d, counts[d.number]) for d in defects if d.number in counts)
    return causes, unexplained


def of_unsteady(provider: str, case: Case) -> tuple[Cause, ...]:
    return tuple(Cause(d, 0) for d in known(provider) if d.unsteady(case))


def text(causes: Sequence[Cause], unexplained: int) -> str:
    """One sentence."""
    if not causes:
        return "not explained by a known defect"
    several = len(causes) > 1 or unexplained > 0
    parts = [
        f"known defect {c.defect.number}, {c.defect.title}"
        + (f" ({c.elements:,} of the elements)" if several else "")
        + f": {c.defect.sentence}"
        for c in causes
    ]
    rest = [f"not explained: {unexplained:,} of the elements"] if unexplained else []
    return "; ".join(parts + rest)
