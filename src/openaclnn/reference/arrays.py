# SPDX-License-Identifier: Apache-2.0
"""Types of arrays."""

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
Outputs = tuple[Array, ...]
