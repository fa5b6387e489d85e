# SPDX-License-Identifier: Apache-2.0
"""Numbers as PyTorch's dispatcher takes them."""

from __future__ import annotations

import numbers
import operator
from typing import Any


def plain_number(value: Any) -> Any:
    """An int or a float for a number of another type, such as NumPy's; other values unchanged."""
    if isinstance(value, (int, float)) or not isinstance(value, numbers.Real):
        return value
    return operator.index(value) if isinstance(value, numbers.Integral) else float(value)
