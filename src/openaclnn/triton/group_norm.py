# SPDX-License-Identifier: Apache-2.0
"""GroupNormSwish and its gradient."""

from __future__ import annotations

from typing import Any

from ..rows.schema import Op


def run(op: Op, named: dict[str, Any]) -> None:
    raise NotImplementedError(op.name)
