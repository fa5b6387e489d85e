# SPDX-License-Identifier: Apache-2.0
"""The rows on NVIDIA GPUs: kernels in Triton.

openaclnn.torch imports this package with the first CUDA tensor; it needs the package triton.
Phase 1 has passed, and outputs are allocated.
"""

from __future__ import annotations

from typing import Any

from ..rows.schema import Op
from . import elementwise, group_norm

_FAMILIES = {"elementwise": elementwise.run, "group_norm": group_norm.run}


def compute(op: Op, named: dict[str, Any]) -> None:
    """Enqueues the row on the current stream of the current device.

    `named` has by C name a tensor of that device or a number for each parameter; None for an
    output that is not wanted.
    """
    _FAMILIES[op.family](op, named)
