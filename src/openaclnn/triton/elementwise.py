# SPDX-License-Identifier: Apache-2.0
"""The element-wise rows: one driver, and a formula for each kernel."""

from __future__ import annotations

from typing import Any

from ..rows.schema import Op


def run(op: Op, named: dict[str, Any]) -> None:
    raise NotImplementedError(op.name)
