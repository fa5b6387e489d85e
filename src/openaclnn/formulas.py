# SPDX-License-Identifier: Apache-2.0
"""What every kernel should compute, as data: formula, domain, special points, tolerance.

A new kernel is one entry:

    "leaky_relu": Reference(
        formula=leaky_relu,            # exact for NaN and infinity, in any float dtype of NumPy
        domain=(wide,),                # how to draw ordinary values, one per input
        special=lambda a: (0.0,),      # where the formula switches, given the attributes
        attributes=({"negative_slope": 0.01}, ...),  # the sets to test
        ulp={"FLOAT": 0.5, "DOUBLE": ROUNDED, "half": ROUNDED},
    )
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Attributes = Mapping[str, Any]  # by Python name
Draw = Callable[[np.random.Generator, int], npt.NDArray[np.float64]]

# Correctly rounded, but for a tie that an intermediate of the wider compute type makes or breaks.
ROUNDED = 0.5 + 2.0**-10


@dataclass(frozen=True)
class Reference:
    """One kernel, so completely that whoever tests it has to know nothing else."""

    formula: Callable[..., Any]  # an array, or a tuple of them
    domain: tuple[Draw, ...]
    attributes: tuple[Attributes, ...]
    ulp: Mapping[str, float]  # computed in FLOAT, in DOUBLE; "half": then rounded to fewer digits
    special: Callable[[Attributes], tuple[float, ...]] = lambda a: ()
    # Of results that are sums: the sums of their absolute terms, by which errors are judged.
    terms: Callable[..., tuple[Array, ...]] | None = None
    # The shape of each input, where they are not all alike, from that of the first.
    shapes: Callable[[tuple[int, ...], Attributes], tuple[tuple[int, ...], ...]] | None = None
    example: tuple[int, ...] = (2, 3)  # a shape that goes with every attribute set


# ---- domains ----


def wide(rng: np.random.Generator, n: int) -> npt.NDArray[np.float64]:
    """Both signs, magnitudes spread over 2^-20 to 2^20."""
    return np.ldexp(rng.uniform(-1, 1, n), rng.integers(-20, 21, n))


def ordinary(rng: np.random.Generator, n: int) -> npt.NDArray[np.float64]:
    """What activations look like: normal, of standard deviation 3."""
    return rng.normal(0, 3, n)


def probability(rng: np.random.Generator, n: int) -> npt.NDArray[np.float64]:
    """Between 0 and 1, often close to either; a tenth outside."""
    odds = np.exp(rng.normal(0, 4, n))
    return np.where(rng.random(n) < 0.1, rng.normal(0, 3, n), odds / (1 + odds))


# ---- the kernels ----


def leaky_relu(x: Array, *, negative_slope: float) -> Array:
    return np.where(x > 0, x, x * negative_slope)


# With self_is_result x is what leaky_relu returned; for a slope >= 0 it has the sign of the input.
def leaky_relu_backward(
    g: Array, x: Array, *, negative_slope: float, self_is_result: bool
) -> Array:
    return np.where(x > 0, g, g * negative_slope)


def elu(x: Array, *, alpha: float, scale: float, input_scale: float) -> Array:
    return np.where(x > 0, scale * x, scale * alpha * np.expm1(x * input_scale))


# The product of attributes is made first: float64 holds it. exp of a number is neither 0 nor inf.
def elu_backward(
    g: Array, x: Array, *, alpha: float, scale: float, input_scale: float, is_result: bool
) -> Array:
    if is_result:
        return np.where(x > 0, g * scale, g * input_scale * (x + alpha * scale))
    exponent = x * input_scale
    power = np.where(np.isinf(exponent), np.exp(exponent), np.exp(np.clip(exponent, -700, 700)))
    return np.where(x > 0, g * scale, g * (alpha * scale * input_scale) * power)


# alpha, scale, input_scale: the first three what people use (SELU the second), then extremes.
_ELUS = (
    (1.0, 1.0, 1.0),
    (1.6732632423543772, 1.0507009873554805, 1.0),
    (0.3, 2.0, 0.7),
    (-1.5, 1.1, 0.9),
    (2.0, 1.0, -0.25),
    (1e10, 3.0, 1.0),
    (1e-30, 1e-9, 25.0),
    (1.0, 1.0, 0.0),
)


# Where the kernel changes its way, and where the exponential leaves the range of float32.
def _elu_special(a: Attributes) -> tuple[float, ...]:
    rate = abs(a["input_scale"]) or 1.0
    return 64.0 / rate, 104.0 / rate


_ELU_ATTRIBUTES = tuple({"alpha": a, "scale": s, "input_scale": i} for a, s, i in _ELUS)


# A negative lambd counts as 0, and NaN, which maximum keeps, lets everything pass.
def hardshrink(x: Array, *, lambd: float) -> Array:
    return np.where(np.abs(x) <= np.maximum(lambd, 0), 0, x)


def hardshrink_backward(g: Array, x: Array, *, lambd: float) -> Array:
    return np.where(np.abs(x) <= np.maximum(lambd, 0), 0, g)


_LAMBDAS = tuple({"lambd": lambd} for lambd in (0.5, 0.0, -1.0, 1e-3, 0.1, math.inf, math.nan))


def _eps_special(a: Attributes) -> tuple[float, ...]:
    return a["eps"], 1 - a["eps"], 0.5


# 2 z - 1 is exact in float64, and so is 1 - z for z >= 2^-29; below, ln(1 - z) is -z.
def logit(x: Array, *, eps: float) -> Array:
    z = x if eps < 0 else np.maximum(np.minimum(x, 1 - eps), eps)
    middle = np.abs(z - 0.5) < 0.25
    near = 2 * np.arctanh(np.where(middle, 2 * z - 1, 0))
    return np.where(middle, near, np.log(z) - np.log1p(-z))


# The first rule that applies wins. For eps = 1 torch answers 0 or NaN, for eps > 1 it answers 0.
def logit_grad(x: Array, dy: Array, *, eps: float) -> Array:
    if math.isnan(eps) or 1 < eps < math.inf:
        return np.full_like(x + dy, math.nan)
    if eps == math.inf:
        return np.zeros_like(x + dy)
    if eps == 1:
        return np.broadcast_to(np.copysign(math.inf, dy), (x + dy).shape)
    low, high, beyond = (eps, 1 - eps, 0.0) if eps >= 0 else (0.0, 1.0, math.nan)
    return np.where((x < low) | (x > high), beyond, dy / (x * (1 - x)))


# The first is exact in bfloat16, like 1 - eps: what peers round stays what it is.
_EPS = (2.0**-7, -1.0, 0.0, 1e-6, 1e-3, 0.1, 0.3, 0.5)
_EPS_BEYOND = (0.75, 1.0, 1.5, math.inf, math.nan)
_EPS_ATTRIBUTES = tuple({"eps": eps} for eps in (*_EPS, *_EPS_BEYOND))

_SLOPES = (0.01, 0.0, 1.0, -0.5, 2.0, 0.1, 1e-3, 1e30, math.inf, math.nan)

REFERENCES: dict[str, Reference] = {
    "leaky_relu": Reference(
        formula=leaky_relu,
        domain=(wide,),
        special=lambda a: (0.0,),
        attributes=tuple({"negative_slope": slope} for slope in _SLOPES),
        ulp={"FLOAT": 0.5, "DOUBLE": ROUNDED, "half": ROUNDED},
    ),
    "leaky_relu_backward": Reference(
        formula=leaky_relu_backward,
        domain=(wide, ordinary),
        special=lambda a: (0.0,),
        attributes=(
            *({"negative_slope": slope, "self_is_result": False} for slope in _SLOPES),
            *({"negative_slope": slope, "self_is_result": True} for slope in (0.01, 0.0, 2.0)),
        ),
        ulp={"FLOAT": 0.5, "DOUBLE": ROUNDED, "half": ROUNDED},
    ),
    "elu": Reference(
        formula=elu,
        domain=(ordinary,),
        special=_elu_special,
        attributes=_ELU_ATTRIBUTES,
        ulp={"FLOAT": 1.0, "DOUBLE": 1.0, "half": ROUNDED},
    ),
    "elu_backward": Reference(
        formula=elu_backward,
        domain=(wide, ordinary),
        special=_elu_special,
        attributes=(
            *({**a, "is_result": False} for a in _ELU_ATTRIBUTES),
            *({**a, "is_result": True} for a in _ELU_ATTRIBUTES if a["alpha"] >= 0),
        ),
        ulp={"FLOAT": 1.0, "DOUBLE": 1.0, "half": ROUNDED},
    ),
    "hardshrink": Reference(
        formula=hardshrink,
        domain=(ordinary,),
        special=lambda a: (a["lambd"],),
        attributes=_LAMBDAS,
        ulp={"FLOAT": 0, "DOUBLE": 0, "half": 0.5},
    ),
    "hardshrink_backward": Reference(
        formula=hardshrink_backward,
        domain=(wide, ordinary),
        special=lambda a: (a["lambd"],),
        attributes=_LAMBDAS,
        ulp={"FLOAT": 0, "DOUBLE": 0, "half": 0.5},
    ),
    "logit": Reference(
        formula=logit,
        domain=(probability,),
        special=_eps_special,
        attributes=_EPS_ATTRIBUTES,
        ulp={"FLOAT": 1.0, "DOUBLE": 1.0, "half": ROUNDED},
    ),
    "logit_grad": Reference(
        formula=logit_grad,
        domain=(probability, wide),
        special=_eps_special,
        attributes=_EPS_ATTRIBUTES,
        ulp={"FLOAT": 0.51, "DOUBLE": 1.0, "half": ROUNDED},
    ),
}
