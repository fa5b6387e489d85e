# SPDX-License-Identifier: Apache-2.0
"""The values of inputs, by name, drawn from a seed.

ordinary    the domain of the operator, as formulas.py has it
mixed       the same, a quarter replaced by special values
special     every combination of special values: zeros, infinities, NaN, subnormals, the ends of the
            range, where the formula switches, and the neighbours of these
every       all 65,536 patterns of a 16-bit dtype, each input in its own order
bits        any bits: every exponent, NaN and infinity among them
hard        where an approximation is at its worst, for operators that say where that is
uniform     between -5 and 5
normal      a mean between -100 and 100, a standard deviation between 1 and 25
small       between -0.001 and 0.001
outliers    ordinary, one in a thousand times 1000

Rows that are not pointwise have no special values, because a single one would leave nothing to see.
Only their first input has the values that are named, and the others are ordinary. They have kinds
of their own instead, in which the inputs belong together (`Reference.together`):

far         x with a mean of 1,000 to 10,000 standard deviations, and its own mean and rstd
like sign   gradients above 0
tails       Swish where its exponential leaves the range of fp32
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..reference.arrays import Array
from ..reference.evaluation import REFERENCES, Attributes, numpy_dtype, special_values
from ..rows.schema import Op

POINTWISE = (
    "ordinary", "mixed", "special", "every", "bits", "hard", "uniform", "normal", "small",
    "outliers",
)  # fmt: skip
OTHERS = ("ordinary", "uniform", "normal", "small", "outliers")
PATTERNS = 1 << 16


def names(op: Op, dtype: str) -> list[str]:
    """The kinds of values that an operator has in a dtype."""
    if not op.pointwise:
        return [*OTHERS, *REFERENCES[op.kernel].together]
    left_out = {"hard"} if REFERENCES[op.kernel].hard is None else set()
    if numpy_dtype(dtype).itemsize != 2:
        left_out.add("every")
    return [name for name in POINTWISE if name not in left_out]


def shape_of(op: Op, dtype: str, values: str, attributes: Attributes) -> tuple[int, ...] | None:
    """The only shape that goes with the values, if there is one."""
    if values == "every":
        return (PATTERNS,)
    if values == "special":
        return (special_values(op, dtype, attributes).size ** len(op.input_tensors),)
    return None


def draw(
    op: Op,
    shapes: Sequence[tuple[int, ...]],
    dtypes: Sequence[str],
    values: str,
    attributes: Attributes,
    seed: int,
) -> list[Array]:
    """One array for each input."""
    rng = np.random.default_rng(seed)
    if values == "special":
        special = [special_values(op, dtype, attributes) for dtype in dtypes]
        return [x.reshape(-1).copy() for x in np.meshgrid(*special, indexing="ij")]
    if together := REFERENCES[op.kernel].together.get(values):
        drawn = together(rng, attributes, shapes)
        with np.errstate(all="ignore"):
            return [
                np.asarray(x).astype(numpy_dtype(dtype)).reshape(shape)
                for x, dtype, shape in zip(drawn, dtypes, shapes, strict=True)
            ]
    made = []
    for i, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True)):
        kind = values if op.pointwise or i == 0 else "ordinary"
        made.append(_one(op, i, math.prod(shape), dtype, kind, attributes, rng).reshape(shape))
    return made


def _one(
    op: Op, i: int, n: int, dtype: str, values: str, a: Attributes, rng: np.random.Generator
) -> Array:
    kind, reference = numpy_dtype(dtype), REFERENCES[op.kernel]
    if values in ("every", "bits"):
        unsigned = np.dtype(f"u{kind.itemsize}")
        if values == "every":
            return rng.permutation(PATTERNS).astype(unsigned).view(kind)
        return rng.integers(0, np.iinfo(unsigned).max, n, unsigned, endpoint=True).view(kind)
    drawn: Any
    if values == "hard" and reference.hard is not None:
        drawn = reference.hard(rng, a, n)
    elif values in ("uniform", "small"):
        drawn = rng.uniform(-1, 1, n) * (5 if values == "uniform" else 1e-3)
    elif values == "normal":
        drawn = rng.normal(rng.uniform(-100, 100), rng.uniform(1, 25), n)
    else:
        drawn = reference.domain[i](rng, n)
    if values == "outliers":
        drawn = np.where(rng.random(n) < 1e-3, drawn * 1000, drawn)
    with np.errstate(all="ignore"):
        array: Array = np.asarray(drawn).astype(kind)
    if values == "mixed":
        chosen = rng.random(n) < 0.25
        array[chosen] = rng.choice(special_values(op, dtype, a), np.count_nonzero(chosen))
    return array
