# SPDX-License-Identifier: Apache-2.0
"""Types of arrays, and rounding to fewer digits."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Outputs = tuple[Array, ...]


def of_digits(v: Array, digits: int) -> Array:
    """Rounded to so many binary digits, whatever the exponent."""
    fraction, exponent = np.frexp(v)
    return np.asarray(np.ldexp(np.rint(np.ldexp(fraction, digits)), exponent - digits))
