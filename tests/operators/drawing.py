# SPDX-License-Identifier: Apache-2.0
"""Draws attributes and inputs from their whole range. Names no operator."""

from __future__ import annotations

import math

import numpy as np
from tests.support import RULES

from openaclnn.reference.evaluation import REFERENCES, numpy_dtype, special_values
from openaclnn.rows.dtypes import DTYPES

# Both signs of each: the ends, what is below and above the range of fp32, and where 1 - eps rounds.
ENDS = (0.0, 1.0, math.inf, math.nan, 5e-324, 1e-308, 1e308, 1e-45, 1e-38, 1e38, 0.5)
ROUNDS = (2.0**-24, 2.0**-53, 2.0**-54)


def an_end(rng, dtype):
    return rng.choice((*ENDS, *ROUNDS))


def any_exponent(rng, dtype):
    form = DTYPES[dtype]
    exponent = int(rng.integers(form.least - form.digits, form.greatest + 1))
    return math.ldexp(rng.uniform(1, 2), exponent)


def near_one(rng, dtype):
    return 1.0 if rng.random() < 0.2 else math.exp2(rng.uniform(-8, 8))


def draw_attributes(op, compute, rng, kinds=(an_end, any_exponent, near_one)):
    """One set, each number of one of the kinds and of either sign; no rule of the row is broken."""
    drawn = {}
    for p in op.attributes:
        if p.kind == "bool":
            drawn[p.python_name] = bool(rng.random() < 0.5)
            continue
        dtype = "DOUBLE" if p.kind == "double" else compute
        kind = kinds[rng.integers(len(kinds))]
        number = kind(rng, dtype)
        if p.kind == "double":
            number = min(number, 1 / number) ** 8 if kind is near_one else number  # an eps
        elif dtype == "DOUBLE" and 0 < number < math.inf:
            number = min(max(number, 2.0**-100), 2.0**100)  # what numerics.md promises
        drawn[p.python_name] = float(number) * (1 if rng.random() < 0.6 else -1)
    names = {p.name: p.python_name for p in op.attributes}
    for rule in op.rules:
        broken = {names[name]: value for name, value in RULES[rule][0].items()}
        if all(drawn[name] for name, value in broken.items() if value is True):
            drawn |= {n: abs(drawn[n]) for n, value in broken.items() if value is not True}
    return drawn


def partner(rng, n):
    """Numbers of all mantissas and both signs, not far from 1, as fp32."""
    bits = rng.integers(0, 1 << 28, n, np.uint32)  # sign, 4 of the exponent, mantissa
    exponent = (bits >> 23 & 15) + (127 - 8)
    return (bits >> 27 << 31 | exponent << 23 | bits & 0x7FFFFF).view(np.float32)


def draw_inputs(op, dtype, attributes, n, rng):
    """One array for each input: special values, any exponent, ordinary ones, and those that the row
    calls hard."""
    reference, form, kind = REFERENCES[op.kernel], DTYPES[dtype], numpy_dtype(dtype)
    inputs = []
    for domain in reference.domain:
        exponents = rng.integers(form.least - form.digits, form.greatest + 1, n)
        with np.errstate(all="ignore"):
            drawn = [
                rng.choice(special_values(op, dtype, attributes).astype(np.float64), n),
                np.ldexp(rng.uniform(1, 2, n), exponents) * rng.choice((-1, 1), n),
                domain(rng, n),
                domain(rng, n) if reference.hard is None else reference.hard(rng, attributes, n),
            ]
            inputs.append(np.choose(rng.integers(0, 4, n), drawn).astype(kind))
    return inputs
