# SPDX-License-Identifier: Apache-2.0
"""What computes the cases: one small interface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..reference.arrays import Array
from .cases import Case


@dataclass(frozen=True)
class Outcome:
    """What became of a case: results, or what went wrong instead."""

    results: tuple[Array | None, ...] | None = None
    kind: str = ""  # refused, status, refusal, crashed, hung, outside, damaged, unsteady
    sentence: str = ""


class Provider(Protocol):
    """Computes cases."""

    @property
    def name(self) -> str: ...

    def missing(self, case: Case) -> str:
        """Why it cannot be asked for this case; empty when it can."""
        ...

    def run(self, case: Case, inputs: Sequence[Array]) -> Outcome: ...

    def close(self) -> None: ...


class BadProvider(ValueError):
    """Unknown provider; one sentence."""
