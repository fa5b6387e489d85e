# SPDX-License-Identifier: Apache-2.0
"""What every kernel should compute, as data: formula, domain, special points, tolerance.

A new kernel is one entry:

    "leaky_relu": Reference(
        formula=leaky_relu,            # exact for NaN and infinity, in any float dtype of NumPy
        domain=(wide,),                # how to draw ordinary values, one per input
        special=lambda a: {"0": 0.0},  # where the formula switches, given the attributes
        attributes=({"negative_slope": 0.01}, ...),  # the sets to test
        ulp={"FLOAT": 0.5, "DOUBLE": ROUNDED, "half": ROUNDED},
    )
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import mistakes_elementwise as wrong
from .arrays import Array
from .domains import Domain, ordinary, probability, wide
from .exponential import exponential

Attributes = Mapping[str, Any]  # by Python name
Shapes = Sequence[tuple[int, ...]]
Together = Callable[[np.random.Generator, Attributes, Shapes], Sequence[Array]]

# Correctly rounded, but for a tie that an intermediate of the wider compute type makes or breaks.
ROUNDED = 0.5 + 2.0**-10


@dataclass(frozen=True)
class Reference:
    """One kernel, so completely that a test needs to know nothing else."""

    formula: Callable[..., Any]  # an array, or a tuple of them
    domain: tuple[Domain, ...]  # one per input
    attributes: tuple[Attributes, ...]
    ulp: Mapping[str, float]  # computed in FLOAT, in DOUBLE; "half": then rounded to fewer digits
    lost: float = 0.0  # added to the bound of a FLOAT result, however small the result is
    # By what they are called: where the formula switches, or the way of computing it.
    special: Callable[[Attributes], Mapping[str, float]] = lambda a: {}
    # Where an approximation is at its worst, given the attributes: how many values.
    hard: Callable[[np.random.Generator, Attributes, int], Array] | None = None
    # For results that are sums: the sums of their absolute terms, by which errors are judged.
    terms: Callable[..., tuple[Array, ...]] | None = None
    bound: Mapping[str, float] = field(default_factory=dict)  # … of the sum, in FLOAT and DOUBLE
    # What kernels compute that are wrong in one way, by what follows "as if".
    mistakes: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    # Inputs that belong together, by the name of the kind: one array of each of these shapes.
    together: Mapping[str, Together] = field(default_factory=dict)
    # The inputs that others determine, by Python name, from all inputs by name and the attributes.
    implied: Callable[[Mapping[str, Array], Attributes], Mapping[str, Array]] | None = None
    # What a plot over one input gives to the others, by Python name; 1 to those not named. Verify
    # tries these values for inputs that a kernel may ignore.
    neutral: Mapping[str, float] = field(default_factory=dict)
    # The attribute that multiplies an input before anything else, by Python names: a kernel may
    # clamp the product.
    rates: Mapping[str, str] = field(default_factory=dict)
    # The attributes whose product multiplies a difference that may cancel, by Python names.
    factors: tuple[str, ...] = ()
    # What a kernel in FLOAT may compute instead: 1 - eps is rounded, an exponential underflows.
    in_float: Callable[..., Any] | None = None
    example: tuple[int, ...] = (2, 3)  # a shape that goes with every attribute set
    large: tuple[int, ...] = (1 << 20,)  # one of 1 Mi elements, likewise

    @property
    def usual(self) -> Attributes:
        """The attributes that people use."""
        return self.attributes[0]


# ---- the kernels ----


def leaky_relu(x: Array, *, negative_slope: float) -> Array:
    return np.where(x > 0, x, x * negative_slope)


# With self_is_result x is what leaky_relu returned; for a slope >= 0 it has the sign of the input.
def leaky_relu_backward(
    g: Array, x: Array, *, negative_slope: float, self_is_result: bool
) -> Array:
    return np.where(x > 0, g, g * negative_slope)


def elu(x: Array, *, alpha: float, scale: float, input_scale: float) -> Array:
    return np.where(x > 0, scale * x, scale * alpha * exponential(np.expm1, x, input_scale))


# The product of attributes is made first: float64 holds it.
def elu_backward(
    g: Array, x: Array, *, alpha: float, scale: float, input_scale: float, is_result: bool
) -> Array:
    if is_result:
        shift = x.dtype.type(alpha) * scale
        lost = _lost(x.dtype.type(alpha), scale, shift) if x.dtype != np.float64 else 0.0
        total = x + shift  # x and shift may cancel, and then what shift lost is what is left
        total = np.where((lost == 0) | ~np.isfinite(lost), total, total + lost)  # -0 stays
        return np.where(x > 0, g * scale, g * input_scale * total)
    power = exponential(np.exp, x, input_scale)
    return np.where(x > 0, g * scale, g * (alpha * scale * input_scale) * power)


def _lost(x: Array, y: float, product: Array) -> Array:
    """x y less the rounded product, exactly (Dekker): long double has digits enough for a double,
    but not for the product of two, whose last digits e^700 makes visible."""
    digits = (np.finfo(product.dtype).nmant + 2) // 2

    def halves(v: Any) -> tuple[Any, Any]:
        scaled = v * (np.exp2(product.dtype.type(digits)) + 1)
        high = scaled - (scaled - v)
        return high, v - high

    (a, b), (c, d) = halves(x), halves(product.dtype.type(y))
    return np.asarray(((a * c - product) + a * d + b * c) + b * d)


# alpha, scale, input_scale: the first three what people use (SELU the second), then extremes.
_ELUS = (
    (1.0, 1.0, 1.0),
    (1.6732632423543772, 1.0507009873554805, 1.0),
    (0.3, 2.0, 0.7),
    (-1.5, 1.1, 0.9),
    (2.0, 1.0, -0.25),
    (0.7, -1.3, 1.0),
    (1e10, 3.0, 1.0),
    (1e-30, 1e-9, 25.0),
    (1.0, 1.0, 0.0),
)


# Where the kernel changes its way, and where the exponential leaves the range of float32.
def _elu_special(a: Attributes) -> Mapping[str, float]:
    rate = abs(a["input_scale"]) or 1.0
    return {"64 / |input_scale|": 64.0 / rate, "104 / |input_scale|": 104.0 / rate}


# At the ends of the reductions of exp, odd multiples of ln2 / 2, and around them; a quarter between
# 0.5 and 1.5 of ln2 / 2, where expm1 is a sum of terms that differ least.
def _elu_hard(rng: np.random.Generator, a: Attributes, n: int) -> Array:
    halves = np.where(rng.random(n) < 0.5, rng.integers(-120, 121, n), rng.integers(-5, 6, n))
    near = 1 + rng.normal(0, 1, n) * np.exp2(-rng.integers(3, 40, n).astype(np.float64))
    first = rng.random(n) < 0.25
    halves, near = np.where(first, -1, halves), np.where(first, rng.uniform(0.5, 1.5, n), near)
    rate = a["input_scale"]
    return halves * near * (math.log(2) / 2 / (rate if math.isfinite(rate) and rate else 1.0))


_ELU_ATTRIBUTES = tuple({"alpha": a, "scale": s, "input_scale": i} for a, s, i in _ELUS)


# A negative lambd counts as 0, and NaN, which maximum keeps, lets everything pass.
def hardshrink(x: Array, *, lambd: float) -> Array:
    return np.where(np.abs(x) <= np.maximum(lambd, 0), 0, x)


def hardshrink_backward(g: Array, x: Array, *, lambd: float) -> Array:
    return np.where(np.abs(x) <= np.maximum(lambd, 0), 0, g)


_LAMBDAS = tuple({"lambd": lambd} for lambd in (0.5, 0.0, -1.0, 1e-3, 0.1, math.inf, math.nan))


def _eps_special(a: Attributes) -> Mapping[str, float]:
    return {"eps": a["eps"], "1 - eps": 1 - a["eps"], "0.5": 0.5}


# 1 - eps is the number itself, which float64 need not hold: where x >= 1/2 it holds 1 - x, and
# where eps > 1/2 it holds 1 - eps.
def _above(x: Array, eps: float) -> Array:
    return np.where(x >= 0.5, 1 - x < eps, x > 1 - eps)


def logit(x: Array, *, eps: float) -> Array:
    if eps < 0:
        return np.asarray(_log_odds(x))
    clamped = _log_odds(np.maximum(np.minimum(x, 1 - eps), eps))  # NaN stays
    upper = 0 - _log_odds(np.float64(eps))  # logit(1 - eps), and +0 of 1/2
    return np.asarray(np.where(_above(x, eps) & (eps <= 0.5), upper, clamped))


# 2 z - 1 is exact in float64, and so is 1 - z for z >= 2^-29; below, ln(1 - z) is -z.
def _log_odds(z: Any) -> Any:
    middle = np.abs(z - 0.5) < 0.25
    near = 2 * np.arctanh(np.where(middle, 2 * z - 1, 0))
    return np.where(middle, near, np.log(z) - np.log1p(-z))


# The first rule that applies wins. For eps = 1 torch returns 0 or NaN, for eps > 1 it returns 0.
def logit_grad(x: Array, dy: Array, *, eps: float) -> Array:
    if math.isnan(eps) or 1 < eps < math.inf:
        return np.full_like(x + dy, math.nan)
    if eps == math.inf:
        return np.zeros_like(x + dy)
    if eps == 1:
        return np.broadcast_to(np.copysign(math.inf, dy), (x + dy).shape)
    result = dy / (x * (1 - x))
    if eps < 0:
        return np.where((x < 0) | (x > 1), math.nan, result)
    return np.where((x < eps) | _above(x, eps), 0, result)


# The first is exact in bfloat16, like 1 - eps: what peers round stays what it is.
_EPS = (2.0**-7, -1.0, 0.0, 1e-6, 1e-3, 0.1, 0.3, 0.5)
_EPS_BEYOND = (0.75, 1.0, 1.5, math.inf, math.nan)
_EPS_ATTRIBUTES = tuple({"eps": eps} for eps in (*_EPS, *_EPS_BEYOND))

_SLOPES = (0.01, 0.0, 1.0, -0.5, 2.0, 0.1, 1e-3, 1e30, math.inf, math.nan)

REFERENCES: dict[str, Reference] = {
    "leaky_relu": Reference(
        formula=leaky_relu,
        mistakes=wrong.LEAKY_RELU,
        domain=(wide,),
        special=lambda a: {"0": 0.0},
        attributes=tuple({"negative_slope": slope} for slope in _SLOPES),
        ulp={"FLOAT": 0.5, "DOUBLE": ROUNDED, "half": ROUNDED},
    ),
    "leaky_relu_backward": Reference(
        formula=leaky_relu_backward,
        mistakes=wrong.LEAKY_RELU_BACKWARD,
        domain=(wide, ordinary),
        special=lambda a: {"0": 0.0},
        attributes=(
            *({"negative_slope": slope, "self_is_result": False} for slope in _SLOPES),
            *({"negative_slope": slope, "self_is_result": True} for slope in (0.01, 0.0, 2.0)),
        ),
        ulp={"FLOAT": 0.5, "DOUBLE": ROUNDED, "half": ROUNDED},
    ),
    "elu": Reference(
        formula=elu,
        mistakes=wrong.ELU,
        domain=(ordinary,),
        rates={"x": "input_scale"},
        factors=("scale", "alpha"),
        special=_elu_special,
        hard=_elu_hard,
        attributes=_ELU_ATTRIBUTES,
        ulp={"FLOAT": 1.0, "DOUBLE": 4.0, "half": ROUNDED},
    ),
    "elu_backward": Reference(
        formula=elu_backward,
        mistakes=wrong.ELU_BACKWARD,
        domain=(wide, ordinary),
        rates={"self_or_result": "input_scale"},
        in_float=wrong.ELU_BACKWARD_IN_FLOAT,
        special=_elu_special,
        hard=_elu_hard,
        attributes=(
            *({**a, "is_result": False} for a in _ELU_ATTRIBUTES),
            *({**a, "is_result": True} for a in _ELU_ATTRIBUTES if a["alpha"] >= 0),
        ),
        ulp={"FLOAT": 1.0, "DOUBLE": 4.0, "half": ROUNDED},
        lost=2.0**-150,
    ),
    "hardshrink": Reference(
        formula=hardshrink,
        mistakes=wrong.HARDSHRINK,
        domain=(ordinary,),
        special=lambda a: {"lambd": max(a["lambd"], 0.0)},
        attributes=_LAMBDAS,
        ulp={"FLOAT": 0, "DOUBLE": 0, "half": 0.5},
    ),
    "hardshrink_backward": Reference(
        formula=hardshrink_backward,
        mistakes=wrong.HARDSHRINK_BACKWARD,
        domain=(wide, ordinary),
        special=lambda a: {"lambd": max(a["lambd"], 0.0)},
        attributes=_LAMBDAS,
        ulp={"FLOAT": 0, "DOUBLE": 0, "half": 0.5},
    ),
    "logit": Reference(
        formula=logit,
        mistakes=wrong.LOGIT,
        in_float=wrong.LOGIT_IN_FLOAT,
        domain=(probability,),
        special=_eps_special,
        attributes=_EPS_ATTRIBUTES,
        ulp={"FLOAT": 1.0, "DOUBLE": 4.0, "half": ROUNDED},
    ),
    "logit_grad": Reference(
        formula=logit_grad,
        mistakes=wrong.LOGIT_GRAD,
        in_float=wrong.LOGIT_GRAD_IN_FLOAT,
        domain=(probability, wide),
        special=_eps_special,
        attributes=_EPS_ATTRIBUTES,
        ulp={"FLOAT": 0.51, "DOUBLE": 4.0, "half": ROUNDED},
        lost=2.0**-150,
    ),
}
