# SPDX-License-Identifier: Apache-2.0
"""The error of the library over the range of a curve, by the judge of the tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..reference.arrays import Array
from ..reference.evaluation import REFERENCES, numpy_dtype
from ..reference.execute import execute
from ..reference.judge import outputs, wide
from .curves import Curves, inputs_along

BINS = 240
SAMPLES = 1 << 17  # of dtypes with 32 and 64 bits; of 16 bits there is every value of the range
GROUP = 4099  # elements of the one group that a row with named sizes gets
SEED = 3


@dataclass(frozen=True)
class Errors:
    """The greatest error in each bin of equal width; NaN where a bin has no value."""

    dtype: str
    unit: str  # ulp, ulp of FLOAT, or "of the bound"
    promised: float
    edges: Array
    greatest: Array
    worst: float
    worst_at: float
    count: int
    every: bool  # all values of the dtype that lie in the range

    @property
    def centres(self) -> Array:
        return (self.edges[1:] + self.edges[:-1]) / 2

    @property
    def kept(self) -> bool:
        return self.worst <= self.promised


def errors(drawn: Curves, dtype: str) -> Errors:
    op, (low, high) = drawn.op, drawn.range
    summed = REFERENCES[op.kernel].terms is not None
    x, every = _values(low, high, dtype, GROUP if summed else SAMPLES)
    if not x.size:
        raise ValueError(f"--range must hold a value of {dtype}, but {low:g} to {high:g} has none")
    inputs = inputs_along(op, x, drawn.attributes)
    results, _ = execute(op, inputs, drawn.attributes)
    (first, *_) = outputs(op, inputs, drawn.attributes, results)
    found = np.asarray(first.of_promise if summed else first.ulp, np.float64).ravel()
    promised = 1.0 if first.promised is None else first.promised
    edges = np.linspace(low, high, BINS + 1)
    at = np.clip(np.searchsorted(edges, wide(x), "right") - 1, 0, BINS - 1)
    greatest = np.full(BINS, -1.0)
    np.maximum.at(greatest, at, found)
    unit = "ulp" if first.unit == dtype else f"ulp of {first.unit}"
    worst = int(found.argmax())
    return Errors(
        dtype,
        "of the bound" if summed else unit,
        promised,
        edges,
        np.where(greatest < 0, np.nan, greatest),
        float(found[worst]),
        float(wide(x)[worst]),
        x.size,
        every,
    )


def _values(low: float, high: float, dtype: str, samples: int) -> tuple[Array, bool]:
    kind = numpy_dtype(dtype)
    if kind.itemsize == 2:
        with np.errstate(all="ignore"):
            all_of_them = np.arange(1 << 16, dtype=np.uint16).view(kind)
            values = wide(all_of_them)
            chosen = all_of_them[(values >= low) & (values <= high)]
        every = chosen.size <= samples
        return (chosen if every else np.sort(chosen)[:: -(-chosen.size // samples)]), every
    with np.errstate(all="ignore"):
        drawn = np.random.default_rng(SEED).uniform(low, high, samples).astype(kind)
    inside = (wide(drawn) >= low) & (wide(drawn) <= high)
    return np.sort(drawn[inside]), False
