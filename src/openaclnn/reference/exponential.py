# SPDX-License-Identifier: Apache-2.0
"""Exponentials that do not vanish or overflow before the result does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import Array


def exponential(function: Callable[[Any], Array], x: Array, rate: float) -> Array:
    """exp or expm1 of the product x rate, which is exact for FLOAT and rounded for DOUBLE. Of a
    number it is neither 0 nor infinite, so that times 0 or infinity it is what it must be: near the
    end of the range of x's dtype, which is wider than that of the result, it stays what it is
    there."""
    exponent = (x.astype(np.float64) * np.float64(rate)).astype(x.dtype)
    last = 0.98 * np.log(np.finfo(exponent.dtype).max)
    within = np.clip(exponent, -last, last)
    return function(np.where(np.isinf(exponent), exponent, within))
