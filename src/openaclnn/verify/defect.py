# SPDX-License-Identifier: Apache-2.0
"""A known defect of a provider: from an output that is wrong it says which results it makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..reference.arrays import Array
from ..reference.evaluation import numpy_dtype
from ..reference.judge import Output, wide
from .cases import Case


@dataclass(frozen=True)
class Wrong:
    """An output that breaks the standard, and where."""

    case: Case
    output: Output
    where: Array

    @cached_property
    def operands(self) -> dict[str, Array]:
        """All inputs of an element-wise operator, one value for each element."""
        shape = self.output.got.shape
        return {
            p.python_name: np.broadcast_to(wide(x), shape)
            for p, x in zip(self.case.op.input_tensors, self.output.inputs, strict=True)
        }

    def is_of(self, *kernels: str) -> bool:
        return self.case.op.kernel in kernels

    def attribute(self, name: str) -> float:
        return float(self.case.attributes[name])

    def narrow(self, values: Any) -> Array:
        """Rounded to the dtype of the output, as float64."""
        return np.asarray(wide(np.asarray(values).astype(numpy_dtype(self.output.dtype))))

    def made(self, predicted: Array) -> Array:
        """Where the result is what is predicted."""
        got = wide(self.output.got)
        return np.asarray((got == predicted) | (np.isnan(got) & np.isnan(predicted)))


Explains = Callable[[Wrong], Any]  # where; False for nowhere


@dataclass(frozen=True)
class Defect:
    """`number` and `title` are those of docs/reference/numerics_peers.md."""

    number: int
    title: str
    sentence: str
    explains: Explains = lambda wrong: False
    unsteady: Callable[[Case], bool] = lambda case: False  # cases whose bits may vary
