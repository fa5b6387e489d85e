# SPDX-License-Identifier: Apache-2.0
"""What the end of a message about a misspelt word suggests."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def near(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that was probably meant."""
    found = difflib.get_close_matches(word, list(known), 1, cutoff)
    return found[0] if found else None


def did_you_mean(meant: str | None, otherwise: str = "") -> str:
    """`otherwise`: what to do if nothing similar is known."""
    if meant:
        return f"; did you mean {meant}?"
    return f"; {otherwise}" if otherwise else ""
