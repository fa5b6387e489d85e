# SPDX-License-Identifier: Apache-2.0
"""Wrong results whose values show the mistake: cut, of a narrower dtype, near the right ones, or
zeros of the wrong sign."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from ..rows.dtypes import DTYPES
from .arrays import Array
from .evaluation import REFERENCES, compute_dtype
from .hypotheses import Hypothesis, hypotheses, right
from .judge import NARROWER, Output, wide

CUT = "its result is the exact value cut toward 0 instead of rounded to nearest"
NARROW = "its result has only the precision of {}"
AS_IF = "it is computed as if "
FACTOR = "its result is the right one times "
HYPOTHESES = (AS_IF, FACTOR)  # how texts begin that say what the kernel computes
SIGN = "its result is a zero of the wrong sign"
CANCELLED = "its result is off by a few ulp of 1, as where almost equal numbers are subtracted"
NEAR = "its result is off by a few ulp"
NEAR_SUMS = "its result is off by a few times the bound"
ROUNDING = ", as from rounded intermediate results"  # if nothing is farther off
DIRECTIONS = ("each is too small in magnitude", "each is too large in magnitude")
TELLING = 0.4  # of the elements with a symptom: 0, 1 and infinity are numbers of every dtype
# What ULPs are few: less than another value of a usual attribute makes.
FEW = {"BFLOAT16": 2.0, "FLOAT16": 4.0, "FLOAT": 16.0, "DOUBLE": 16.0}
FEW_BOUNDS = 16.0
BOUND = 2.0**-18  # of a factor of a sum's terms
CLEARLY = 4.0  # times closer to another formula than to the right one
EXACT = 0.51  # ULP of a result that is rounded once
SEVERAL, ALL_EXACT = (
    4,
    0.95,
)  # so many wrong ones, and what share of them is, for it to be no chance
SPREAD, LEAST_FACTOR, NEAR_ONE = 0.02, 2.0**-16, 0.05  # of a factor; of its distance from 1
CUT_OFF = 0.75  # of a ulp, which half of the results that are cut are off by
LAST_BITS = 4
CANCELLING = 2.0**-3  # results whose errors are small beside 1, but not beside themselves
OF_NARROW = 4.0  # ULPs of the narrower dtype: its intermediate results are rounded, too


@dataclass(frozen=True)
class Symptom:
    """How elements are wrong."""

    text: str
    where: Array
    telling: Array  # those that would not have it by chance
    against: Array | None = None  # those that would be otherwise, if what it says were so
    wrong: tuple[str, ...] = ()  # outputs that are not right if this is so
    fits: Array | None = None  # of a hypothesis: what would be so, also where it may be chance


def symptoms(output: Output, among: Collection[str] | None = None) -> Iterator[Symptom]:
    """Of all elements; what they say of one that is right does not count. `among`: the texts of
    those that are wanted, if not all."""
    if output.dtype not in DTYPES:
        return
    got, near = wide(output.got), wide(output.nearest)
    every = np.ones(got.shape, bool)
    if_cut = _cut(output.nearest, output.expected)
    cut = (got == if_cut) & (got != near)
    otherwise = np.isfinite(if_cut) & (if_cut != near) & ~cut
    if output.dtype in NARROWER["FLOAT"]:  # FLOAT may round it to `near`
        otherwise &= np.float32(output.expected) != near
    yield Symptom(CUT, cut, output.ulp >= CUT_OFF, otherwise)
    yield Symptom(SIGN, output.other_zeros, every)
    for name, (fits, distance) in output.of_narrow.items():
        telling = ~_short(got, DTYPES[name].digits) & (distance <= OF_NARROW)
        yield Symptom(NARROW.format(name), fits, telling, ~fits & ~np.isnan(got))
    formula = None
    for h in hypotheses(output):
        if among is None or AS_IF + h.text in among:
            formula = right(output) if formula is None else formula
            yield _as_if(h, output, formula)
    if output.terms is None and output.inputs:
        yield _cancelled(output)
    factor = _factor(output)
    if factor is not None and (among is None or factor.text in among):
        yield factor
    if output.terms is not None:
        yield Symptom(NEAR_SUMS, output.of_promise <= FEW_BOUNDS, every)
    else:
        flushed = (got == 0) & (near != 0)
        yield Symptom(NEAR, ~flushed & (output.ulp <= FEW[output.dtype]), every)


def _factor(output: Output) -> Symptom | None:
    """The same between all results and the right ones."""
    got, due = wide(output.got), wide(output.expected)
    with np.errstate(all="ignore"):
        far = is_far(output)
        telling = far & np.isfinite(got) & np.isfinite(due) & (got != 0) & (due != 0)
        if not telling.any():
            return None
        ratios = got[telling] / due[telling]
        near = ratios / np.median(ratios)
        near = near[np.abs(near - 1) <= SPREAD]  # not what is wrong in another way
        factor = float(np.median(ratios) * np.mean(near)) if near.size else 0.0
        if not math.isfinite(factor) or factor == 0 or abs(abs(factor) - 1) <= LEAST_FACTOR:
            return None  # -1 is one of the hypotheses
        made = factor * due
        sizes = np.abs(due) if output.terms is None else np.fmax(wide(output.terms), np.abs(due))
        form = DTYPES[output.dtype]
        unit = 2.0**-form.digits if output.terms is None else BOUND
        least = math.ldexp(1, form.least - form.digits + 1)
        near = np.abs(got - made) <= _few(output) * unit * abs(factor) * sizes + least
        near |= np.isinf(got) & (
            np.abs(made) > math.ldexp(2 - 2.0 ** (1 - form.digits), form.greatest)
        )
        near |= got == made  # infinite
        near &= (due != 0) | (np.signbit(got) == np.signbit(made))
        return Symptom(
            FACTOR + _near_one(factor), near & far, telling, ~near & (due != 0) & ~np.isnan(due)
        )


def _near_one(factor: float) -> str:
    distance = factor - 1
    if abs(distance) > NEAR_ONE:
        return f"{factor:.3g}"
    return f"(1 {'-' if distance < 0 else '+'} {abs(distance):.1g})"


def _cancelled(output: Output) -> Symptom:
    """exp(x) - 1 near 0: errors of the size that a result near 1 would have, in FLOAT or in the
    output's dtype."""
    near, due, unit = _beside_one(output)
    where = near & is_far(output)
    telling = where & _is_cancelled(output, near, due, unit)
    with np.errstate(all="ignore"):
        visible = np.abs(due) * 2.0 ** -DTYPES[output.dtype].digits < unit / FEW["FLOAT"]
    return Symptom(CANCELLED, where, telling, visible & (due != 0) & ~where)


def _beside_one(output: Output) -> tuple[Array, Array, float]:
    """Where errors are a few units of 1, or of the factor of 1; the right results; this unit."""
    due = wide(output.expected)
    factor = _factor_of_one(output)
    with np.errstate(all="ignore"):
        error = np.abs(wide(output.got) - due)
        dtypes = (compute_dtype(output.inputs), output.dtype)
        units = [factor * 2.0 ** -DTYPES[d].digits for d in dtypes]
        is_first = np.any(is_far(output) & (error <= FEW["FLOAT"] * units[0]))
        unit = units[0] if is_first else units[1]
        return error <= FEW["FLOAT"] * unit, due, unit


def _factor_of_one(output: Output) -> float:
    names = REFERENCES[output.op.kernel].factors if output.op.kernel else ()
    return abs(math.prod(float(output.attributes[name]) for name in names))


def _is_cancelled(output: Output, near: Array, due: Array, unit: float) -> bool:
    """Whether several small results have such errors, and are not flushed."""
    with np.errstate(all="ignore"):
        small = np.abs(due) <= CANCELLING * _factor_of_one(output)
        clear = near & is_far(output) & small & (output.got != 0)
        clear &= np.abs(wide(output.got) - due) >= unit / FEW["FLOAT"]
    return bool(np.count_nonzero(clear) > 1)


def all_cancelled(output: Output) -> bool:
    """Whether that is what all elements have, those of larger results included."""
    if output.terms is not None or not output.inputs or output.dtype not in DTYPES:
        return False
    near, due, unit = _beside_one(output)
    return bool(near.all()) and _is_cancelled(output, near, due, unit)


def is_far(output: Output) -> Array:
    """Off by more than a few ulp."""
    return np.asarray(_distance(output) > _few(output))


def _few(output: Output) -> float:
    """Errors of rounding: in ULP, of sums as a share of the bound."""
    return FEW.get(output.dtype, 0.0) if output.terms is None else FEW_BOUNDS


def _distance(output: Output) -> Array:
    return output.ulp if output.terms is None else output.of_promise


def _as_if(h: Hypothesis, output: Output, formula: Array) -> Symptom:
    due = h.results(output)
    tolerance, error = h.tolerance(output, _few(output)), h.error(output, due)
    ordinary = np.ones(due.shape, bool)
    for x in map(wide, output.inputs if output.terms is None else ()):
        ordinary &= np.isfinite(x) & (x != 0)  # many formulas agree on other values
    same = (due == formula) & (np.signbit(due) == np.signbit(formula))
    changed = ~(same | (np.isnan(due) & np.isnan(formula)))
    where, distance = (error <= tolerance) & changed, _distance(output)
    telling = distance > tolerance
    if output.terms is not None:
        telling |= (distance > 1) & (distance >= CLEARLY * error)
        where &= telling | (error <= 1)
        telling &= np.isfinite(wide(output.got)) & (output.got != 0)
    else:
        inexact = changed & (distance > EXACT)
        if inexact.sum() >= SEVERAL and np.mean(error[inexact] <= EXACT) >= ALL_EXACT:
            telling |= inexact
        made = due[ordinary & (error <= tolerance)]  # right results, too
        telling &= ordinary & (np.unique(made).size > 1)  # or much else makes the same
        if not np.any(telling & where):
            where &= error <= EXACT
    return Symptom(AS_IF + h.text, where, telling, ordinary & (error > tolerance), h.wrong)


def _short(x: Array, digits: int) -> Array:
    """Where the last bits of a significand of so many are 0, as in few results of a formula."""
    high = np.ldexp(np.frexp(x)[0], digits - LAST_BITS)
    return np.asarray(~np.isfinite(x) | (high == np.rint(high)))


def _cut(nearest: Array, exact: Array) -> Array:
    away = np.abs(wide(nearest)) > np.abs(exact)
    bits = np.ascontiguousarray(nearest).view(f"i{nearest.dtype.itemsize}")
    lower = (bits - away).view(nearest.dtype)  # its neighbour toward 0
    return np.where(np.isfinite(exact), wide(lower), np.nan)
