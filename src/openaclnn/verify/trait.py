# SPDX-License-Identifier: Apache-2.0
"""What failed results have in common, as a sentence with its counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

COMPLETE = 0.8  # of the cases with an attribute or a layout have failed
SEEN = 0.25  # of those with a layout, or with one value of an attribute
CHANCE = 1e-3  # that all failures would have this if they were spread evenly
MANY, MOST = 10, 0.85  # failed cases, and their share that must have a layout


@dataclass(frozen=True)
class Trait:
    """What failed results have in common."""

    text: str = ""  # a sentence without a subject; empty if nothing is known
    failed: int = 0  # of `such` cases that have it, where cases were counted
    such: int = 0
    vagueness: float = 0.0  # 0: it separates these results from all others

    def __bool__(self) -> bool:
        return bool(self.text)

    def said(self, before: str = "", after: str = "") -> Trait:
        return replace(self, text=f"{before}{self.text}{after}")


def counted(text: str, failed: int, passed: int, noun: str = " such cases") -> Trait:
    """The trait of `failed` cases, which `passed` others have, too."""
    such = failed + passed
    share = f" ({failed:,} of {such:,}{noun})" if passed else ""
    return Trait(f"{text}{share}", failed, such, 1 - failed / such)


NOTHING = Trait(vagueness=1)


def also(texts: Sequence[str]) -> str:
    """Other attributes that set the same cases apart."""
    return f"; these are also the cases {' and '.join(texts)}" if texts else ""
