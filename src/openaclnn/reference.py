# SPDX-License-Identifier: Apache-2.0
"""What every kernel should compute, as data: formula, domain, special points, tolerance.

Tests, `verify` and the docs use it; nothing here runs the library. A new kernel is one entry:

    "leaky_relu": Reference(
        formula=leaky_relu,            # exact for NaN and infinity, in any float dtype of NumPy
        domain=(wide,),                # how to draw ordinary values, one per input
        special=lambda a: (0.0,),      # where the formula switches, given the attributes
        attributes=({"negative_slope": 0.01}, ...),  # the sets to test
        ulp={"FLOAT": 0.5, "DOUBLE": ROUNDED, "half": ROUNDED},
    )
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .schema import Op

Array = npt.NDArray[Any]
Attributes = Mapping[str, float | bool]  # by Python name
Draw = Callable[[np.random.Generator, int], npt.NDArray[np.float64]]

# Correctly rounded, but for a tie that an intermediate of the wider compute type makes or breaks.
ROUNDED = 0.5 + 2.0**-10


class Format(NamedTuple):
    """A binary format: digits of the significand, exponents e of the normal numbers 1.f * 2^e."""

    digits: int
    least: int
    greatest: int


FORMATS = {
    "FLOAT": Format(24, -126, 127),
    "DOUBLE": Format(53, -1022, 1023),
    "FLOAT16": Format(11, -14, 15),
    "BFLOAT16": Format(8, -126, 127),
}
CANONICAL_NAN = {
    "FLOAT": 0x7FC00000,
    "DOUBLE": 0x7FF8000000000000,
    "FLOAT16": 0x7E00,
    "BFLOAT16": 0x7FC0,
}


@dataclass(frozen=True)
class Reference:
    """One kernel, so completely that whoever tests it has to know nothing else."""

    formula: Callable[..., Array]
    domain: tuple[Draw, ...]
    special: Callable[[Attributes], tuple[float, ...]]
    attributes: tuple[Attributes, ...]
    ulp: Mapping[str, float]  # computed in FLOAT, in DOUBLE; "half": then rounded to fewer digits


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


# The product of attributes is made first: float64 holds it. exp of a number is a positive number, however small or large.
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


# Where the exponential leaves the range of a format, and where kernels may change their ways.
def _elu_special(a: Attributes) -> tuple[float, ...]:
    rate = abs(a["input_scale"]) or 1.0
    return (*(t / rate for t in (17.0, 25.0, 64.0, 87.3, 88.7, 104.0)), 60.0, a["alpha"] * a["scale"])


_ELU_ATTRIBUTES = tuple({"alpha": a, "scale": s, "input_scale": i} for a, s, i in _ELUS)

# A negative lambd counts as 0; of two numbers NumPy's maximum is NaN when one is, and NaN lets all pass.
def hardshrink(x: Array, *, lambd: float) -> Array:
    return np.where(np.abs(x) <= np.maximum(lambd, 0), 0, x)


def hardshrink_backward(g: Array, x: Array, *, lambd: float) -> Array:
    return np.where(np.abs(x) <= np.maximum(lambd, 0), 0, g)


_LAMBDAS = tuple({"lambd": lambd} for lambd in (0.5, 0.0, -1.0, 1e-3, 0.1, math.inf, math.nan))

def _eps_special(a: Attributes) -> tuple[float, ...]:
    return (a["eps"], 1 - a["eps"], 0.5, 0.25, 1 / 3, 2 / 3, 2.0**-24, 2.0**-73, 2.0**-100)


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
        ulp={"FLOAT": 1.0, "half": ROUNDED},
    ),
    "hardshrink": Reference(
        formula=hardshrink,
        domain=(ordinary,),
        special=lambda a: (a["lambd"],),
        attributes=_LAMBDAS,
        ulp={"FLOAT": 0, "half": 0.5},
    ),
    "hardshrink_backward": Reference(
        formula=hardshrink_backward,
        domain=(wide, ordinary),
        special=lambda a: (a["lambd"],),
        attributes=_LAMBDAS,
        ulp={"FLOAT": 0, "half": 0.5},
    ),
    "logit": Reference(
        formula=logit,
        domain=(probability,),
        special=_eps_special,
        attributes=_EPS_ATTRIBUTES,
        ulp={"FLOAT": 1.0, "half": ROUNDED},
    ),
    "logit_grad": Reference(
        formula=logit_grad,
        domain=(probability, wide),
        special=_eps_special,
        attributes=_EPS_ATTRIBUTES,
        ulp={"FLOAT": 0.51, "half": ROUNDED},
    ),
}


# ---- what a tool does with them ----


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The NumPy dtype of FLOAT, DOUBLE, FLOAT16 or BFLOAT16, the last of which needs ml_dtypes."""
    if dtype == "BFLOAT16":
        half: np.dtype[Any] = np.dtype(importlib.import_module("ml_dtypes").bfloat16)
        return half
    return np.dtype({"FLOAT": np.float32, "DOUBLE": np.float64, "FLOAT16": np.float16}[dtype])


def dtype_name(dtype: npt.DTypeLike) -> str:
    """The name that `numpy_dtype` takes."""
    names = {"float32": "FLOAT", "float64": "DOUBLE", "float16": "FLOAT16", "bfloat16": "BFLOAT16"}
    return names[np.dtype(dtype).name]


def compute_dtype(inputs: Sequence[Array]) -> str:
    """What the library computes in: DOUBLE when an input is, else FLOAT."""
    return "DOUBLE" if any(x.dtype == np.float64 for x in inputs) else "FLOAT"


def rounded_attributes(op: Op, attributes: Attributes, compute: str) -> Attributes:
    """Attributes as the kernel sees them: scalars rounded to fp32 unless it computes in DOUBLE."""
    if compute == "DOUBLE":
        return attributes
    scalars = {p.python_name for p in op.attributes if p.kind == "scalar"}
    return {k: float(np.float32(v)) if k in scalars else v for k, v in attributes.items()}


def evaluate(op: Op, inputs: Sequence[Array], attributes: Attributes) -> Array:
    """The formula on the exact inputs, in float64, or in long double for DOUBLE."""
    compute = compute_dtype(inputs)
    wider = np.longdouble if compute == "DOUBLE" else np.float64
    with np.errstate(all="ignore"):
        exact = [x.astype(np.float64).astype(wider) for x in inputs]
        named = rounded_attributes(op, attributes, compute)
        return REFERENCES[op.kernel].formula(*exact, **named)


def accuracy(op: Op, compute: str, output: str) -> tuple[str, float]:
    """How to judge an output: the coarser dtype, whose ULP counts, and how many."""
    ulp = REFERENCES[op.kernel].ulp
    if FORMATS[output].digits < FORMATS[compute].digits:
        return output, ulp["half"]
    return compute, ulp[compute]


def ulp_error(actual: Array, reference: Array, dtype: str) -> Array:
    """|actual - reference| in units of the last place that `dtype` has at the reference, exactly.

    Denormals have the unit of the least normal number. An infinite result stands for
    2^(greatest + 1), to which a correctly rounded overflow is within half a unit. The error is
    infinite where only one is NaN or an infinity, or where a zero has the wrong sign.
    """
    wider = np.result_type(reference, np.float64)
    expected = np.asarray(reference, wider)
    form = FORMATS[dtype]
    top = np.ldexp(wider.type(1), form.greatest + 1)
    with np.errstate(all="ignore"):
        got = np.asarray(actual).astype(np.float64).astype(wider)
        _, exponent = np.frexp(expected)  # of 0.f * 2^exponent; anything for 0, NaN and infinity
        unit = np.ldexp(wider.type(1), np.maximum(exponent - 1, form.least) - form.digits + 1)
        bound = np.where(np.isinf(got), np.clip(expected, -top, top), expected)
        error = np.abs(np.where(np.isinf(got), np.copysign(top, got), got) - bound) / unit
    error = np.where(np.isinf(expected), np.where(got == expected, 0, np.inf), error)
    error = np.where((got == 0) & (np.signbit(got) != np.signbit(expected)), np.inf, error)
    both = np.isnan(got) & np.isnan(expected)
    return np.where(both, 0, np.where(np.isnan(got) | np.isnan(expected), np.inf, error))


def special_values(op: Op, dtype: str, attributes: Attributes) -> Array:
    """Zeros, infinities, NaN, the ends of the range, the special points and their neighbours."""
    kind, form = numpy_dtype(dtype), FORMATS[dtype]
    tiny, least = math.ldexp(1, form.least - form.digits + 1), math.ldexp(1, form.least)
    largest = math.ldexp(2 - math.ldexp(1, 1 - form.digits), form.greatest)
    values = [0.0, 1.0, tiny, least, largest, math.inf]
    for point in REFERENCES[op.kernel].special(attributes):
        if math.isfinite(point) and point != 0:
            step = math.ldexp(1, max(math.frexp(point)[1] - 1, form.least) - form.digits + 1)
            values += [point - step, point, point + step]
    with np.errstate(all="ignore"):
        points = np.array(values).astype(kind)
    return np.concatenate([points, -points, np.array([math.nan]).astype(kind)])


def sample(
    op: Op, shape: tuple[int, ...], dtype: str, seed: int, attributes: Attributes | None = None
) -> list[Array]:
    """One array for each input: ordinary values of its domain, a quarter of them special."""
    rng = np.random.default_rng(seed)
    reference = REFERENCES[op.kernel]
    special = special_values(op, dtype, attributes or reference.attributes[0])
    inputs = []
    for draw in reference.domain:
        n = math.prod(shape)
        with np.errstate(all="ignore"):
            values = draw(rng, n).astype(special.dtype)
        chosen = rng.random(n) < 0.25
        values[chosen] = rng.choice(special, np.count_nonzero(chosen))
        inputs.append(values.reshape(shape))
    return inputs
