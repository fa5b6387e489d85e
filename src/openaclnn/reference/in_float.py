# SPDX-License-Identifier: Apache-2.0
"""What a result may be off by if a kernel computes in FLOAT: the standard `float`.

A kernel in FLOAT gives a result near that of inputs near its own. So a result may be off by a few
ulp, and besides by what a change of each input by 2 ulp of FLOAT (of sums 8, or 32 of all alike)
makes: where x + alpha cancels, or a large mean is subtracted, that is much more. It may be what an
exponential or a product makes that leaves the range of FLOAT, and lose what is below 2^-110.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import Array
from .evaluation import REFERENCES, rounded, scaled_errors
from .hypotheses import Hypothesis
from .judge import Output, wide

ULPS, OF_16_BITS, BOUNDS = 4.0, 0.6, 32.0  # FLOAT; rounded to 16 bits; bounds of sums
CHANGE, OF_SUMS = 2.0**-22, 2.0**-20  # of inputs; before they are added
OF_ALL = 2.0**-18  # of all terms alike, as where 40,000 are added one after the other
SIGNS = 4  # choices of the signs of these
ADVICE = "If the kernel is to compute in FLOAT, judge it by --standard float"
LEAST, NORMAL, LARGEST = 2.0**-110, 2.0**-126, 2.0**127


def distances(output: Output) -> Array:
    """In ulp of the unit, of sums as a share of BOUNDS bounds; 0 where the error is excused."""
    if output.terms is not None:
        terms = BOUNDS * output.terms
        every = scaled_errors(output.op, output.got, output.expected, terms)
    else:
        every = output.counted
    if np.all(every <= limit(output)):
        return every
    return np.where(_is_excused(output, every), 0, every)


def limit(output: Output) -> float:
    """Of the distances."""
    if output.terms is not None:
        return 1.0
    return OF_16_BITS if output.unit in ("FLOAT16", "BFLOAT16") else ULPS


def _is_excused(output: Output, every: Array) -> Array:
    """`every`: the distances."""
    got, due = wide(output.got), wide(output.expected)
    with np.errstate(all="ignore"):
        beyond = np.abs(got - due) * (1 - limit(output) / every)
        same_sign = np.signbit(got) == np.signbit(due)
        excused = (beyond <= LEAST) & (same_sign | (output.terms is not None))
        if output.inputs:
            excused |= (beyond <= _of_changes(output, due)) & ((due != 0) | same_sign)
        reference = REFERENCES[output.op.kernel]
        if reference.in_float is not None:
            plain = _evaluated(output, reference.in_float)
            excused |= np.isfinite(plain) & (beyond <= 2 * np.abs(plain - due))
            excused |= np.isnan(got) & np.isnan(plain)
            excused |= got == wide(rounded(plain, output.dtype))  # infinite
            if reference.rates:
                excused |= _leaves_the_range(output)
    return np.asarray(excused & ~np.isnan(due))  # only NaN is right there


def _leaves_the_range(output: Output) -> Array:
    """Where products of an input and attributes may be infinite or 0 in FLOAT."""
    sizes = [abs(a) for a in output.attributes.values() if isinstance(a, float)]
    most, least = (math.prod(cut(size, 1.0) for size in sizes) for cut in (max, min))
    found = np.zeros(output.got.shape, bool)
    for x in map(np.abs, map(wide, output.inputs)):
        found |= np.isfinite(x) & (x * most >= LARGEST) | (x > 0) & (x * least < NORMAL)
    return found


def _of_changes(output: Output, due: Array) -> Array:
    """Of both directions the lesser: a step of the formula beside an input is none. Sums have no
    steps, but changes of single terms may cancel: of several the greatest."""
    total = np.zeros(due.shape)
    rng = np.random.default_rng(due.size)
    for i, x in enumerate(output.inputs):
        if output.terms is None:
            ways: list[Any] = [CHANGE, -CHANGE]
        else:
            ways = [OF_SUMS * rng.choice([-1.0, 1.0], x.shape) for _ in range(SIGNS)]
            ways += [OF_ALL]
        found = []
        for way in ways:

            def changed(*exact: Array, way: Any = way, i: int = i, **a: Any) -> Any:
                step = way * np.fmax(np.abs(exact[i]), NORMAL)
                near = [*exact[:i], exact[i] + step, *exact[i + 1 :]]
                return REFERENCES[output.op.kernel].formula(*near, **a)

            found.append(np.abs(_evaluated(output, changed) - due))
        change = np.min(found, axis=0) if output.terms is None else np.max(found, axis=0)
        total += np.where(np.isfinite(change), change, 0)
    return total


def _evaluated(output: Output, formula: Callable[..., Any]) -> Array:
    other = Hypothesis("", output.inputs, output.attributes, formula=formula)
    return wide(other.results(output))
