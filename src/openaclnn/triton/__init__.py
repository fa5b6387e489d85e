# SPDX-License-Identifier: Apache-2.0
"""The rows on NVIDIA GPUs: kernels in Triton.

openaclnn.torch imports this package with the first CUDA tensor; it needs the package triton.
Phase 1 has passed, and outputs are allocated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..rows.schema import Op
from . import elementwise, group_norm
from .forms import FORMS

FAMILIES = {"elementwise": elementwise.launcher, "group_norm": group_norm.launcher}


def launcher(op: Op, named: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    """What enqueues the row on the current stream of the current device, for these tensors and all
    others of their kind: the same dtypes, shapes, strides and device, the same addresses that are
    multiples of 16, and the same outputs that start where an input does.

    `named` has by C name a tensor of that device or a number for each parameter; None for an
    output that is not wanted.
    """
    if op.family not in FAMILIES or (op.pointwise and op.kernel not in FORMS):
        raise NotImplementedError(
            f"{op.python}: CUDA tensors have no kernel for it; move them to the CPU"
        )
    return FAMILIES[op.family](op, named)


def prepare(op: Op, named: dict[str, Any]) -> Callable[[], None]:
    """What enqueues the row on these tensors, each time it is called."""
    return functools.partial(launcher(op, named), named)
