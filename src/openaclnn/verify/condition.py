# SPDX-License-Identifier: Apache-2.0
"""A condition on cases."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Condition:
    """Two of one text are equal."""

    text: str  # follows "only"
    attributes: tuple[str, ...] = field(default=(), compare=False)  # that it names
    values: int = field(default=1, compare=False)  # how many the text lists
    # Of one attribute: that it is not the value that people use.
    is_unusual: bool = field(default=False, compare=False)
    of_dtypes: bool = field(default=False, compare=False)
    is_bound: bool = field(default=False, compare=False)  # one of many: only beside a hypothesis
