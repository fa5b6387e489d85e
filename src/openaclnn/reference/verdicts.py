# SPDX-License-Identifier: Apache-2.0
"""What each standard says of an output: whether it passes, which elements fail, the figures."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import in_float
from .arrays import Array
from .error_figures import errors_over, mean, ratio, relative_errors
from .evaluation import bound_of
from .judge import Output, wide
from .standards import LEVELS, Standard
from .steps import steps_between

THRESHOLD = {"FLOAT16": 2.0**-10, "BFLOAT16": 2.0**-7, "FLOAT": 2.0**-13}
SMALL = {  # below the first a golden value is small; its absolute error counts from the second
    "FLOAT16": (2.0**-11, 2.0**-16),
    "BFLOAT16": (2.0**-8, 2.0**-16),
    "FLOAT": (2.0**-14, 2.0**-30),
}
CLOSE = {  # rtol, atol, as torch.testing.assert_close has them
    "FLOAT16": (1e-3, 1e-5),
    "BFLOAT16": (1.6e-2, 1e-5),
    "FLOAT": (1.3e-6, 1e-5),
    "DOUBLE": (1e-7, 1e-7),
}
BESIDE_INPUTS = " beyond what 2 ulp of the inputs make"  # of the standard float


@dataclass(frozen=True)
class Verdict:
    """Whether an output passes, and why."""

    passed: bool
    reason: str  # a clause
    wrong: Array  # the elements that fail by themselves
    figures: Mapping[str, float]  # what was measured
    limits: Mapping[str, float]  # what each figure may be


class NoThreshold(ValueError):
    """The standard does not cover this dtype."""


def judged(output: Output, standard: Standard, benchmark: Array | None) -> tuple[Output, Verdict]:
    """The verdict, and the output as reports show it: a peer's results are what it should be."""
    found = verdict(output, standard, benchmark)
    if standard.name == "peer" and benchmark is not None:
        output = output.against(benchmark)
    return output, found


def verdict(output: Output, standard: Standard, benchmark: Array | None = None) -> Verdict:
    """`benchmark`: what the other implementation got, for the standards of two."""
    if output.got.size == 0:
        return Verdict(True, "there are no elements", np.zeros(output.got.shape, bool), {}, {})
    if standard.name == "ours":
        return _ours(output, standard)
    if standard.name == "float":
        return _in_float(output)
    if standard.name == "allclose":
        return _allclose(output, standard)
    if standard.name == "peer":
        return _peer(output, standard.ulp or 0.0, _other(output, standard, benchmark))
    if output.dtype not in THRESHOLD:
        raise NoThreshold(
            f"the {standard.name} standard has numbers for {', '.join(THRESHOLD)}, but "
            f"{output.name} is {output.dtype}"
        )
    if standard.name == "single":
        return _single(output)
    if standard.name == "either" and (found := _single(output)).passed:
        return found
    return _double(output, standard.level_used, _other(output, standard, benchmark))


def _other(output: Output, standard: Standard, benchmark: Array | None) -> Array:
    if benchmark is None:
        raise ValueError(
            f"the {standard.name} standard needs benchmark: what another implementation got"
        )
    if benchmark.shape != output.got.shape:
        raise ValueError(
            f"benchmark must have the shape {list(output.got.shape)}, but has "
            f"{list(benchmark.shape)}"
        )
    return benchmark


def _counted(wrong: Array, what: str) -> str:
    return f"{np.count_nonzero(wrong):,} of {wrong.size:,} elements {what}"


def _ours(output: Output, standard: Standard) -> Verdict:
    if standard.ulp is None and output.promised is None:
        return _of_bound(output, output.of_promise)
    if standard.ulp is not None:
        return _of_ulp(output, output.ulp, standard.ulp)
    return _of_ulp(output, output.counted, output.promised or 0.0)


def _in_float(output: Output) -> Verdict:
    if output.dtype == "DOUBLE":
        raise NoThreshold(
            f"the float standard is for FLOAT and 16 bits, but {output.name} is DOUBLE"
        )
    distances = in_float.distances(output)
    if output.terms is not None:
        return _of_bound(output, distances, in_float.BOUNDS)
    return _of_ulp(output, distances, in_float.limit(output), BESIDE_INPUTS)


def _of_ulp(output: Output, distance: Array, limit: float, beside: str = "") -> Verdict:
    wrong = ~(distance <= limit)
    worst = float(distance.max())
    reason = (
        _counted(wrong, f"are off by more than {limit:.4g} ulp of {output.unit}")
        + f"; the worst is {output.off_by(distance)}"
        if wrong.any()
        else f"at most {worst:.4g} ulp of {output.unit}{beside}, {limit:.4g} allowed"
    )
    return Verdict(not wrong.any(), reason, wrong, {"ulp": worst}, {"ulp": limit})


def _of_bound(output: Output, shares: Array, times: float = 1.0) -> Verdict:
    """Results that are sums, by the sum of their absolute terms."""
    wrong = ~(shares <= 1)
    worst = float(shares.max())
    rounding = " and the rounding" if output.dtype in ("FLOAT16", "BFLOAT16") else ""
    bound = times * bound_of(output.op, output.dtype)
    allowed = f"what is allowed, {bound:g} of the sum of absolute terms{rounding}"
    reason = (
        _counted(wrong, f"are off by more than {allowed}; the worst is off by {worst:.4g} times it")
        if wrong.any()
        else f"at most {worst:.4g} of {allowed}"
    )
    return Verdict(not wrong.any(), reason, wrong, {"share": worst}, {"share": 1.0})


def _classes(output: Output) -> Verdict | None:
    wrong = output.classes_differ
    if not wrong.any():
        return None
    reason = _counted(wrong, "are NaN or infinite where the golden value is not, or the reverse")
    return Verdict(False, reason, wrong, {"differing": float(np.count_nonzero(wrong))}, {})


def _errors(output: Output) -> tuple[Array, Array, Array]:
    """Got, golden and |got - golden| where both are finite."""
    finite = np.isfinite(wide(output.got)) & np.isfinite(wide(output.nearest))
    got, golden = wide(output.got[finite]), wide(output.expected[finite])
    return finite, golden, np.abs(got - golden)


def _allclose(output: Output, standard: Standard) -> Verdict:
    rtol, atol = CLOSE[output.dtype]
    rtol = rtol if standard.rtol is None else standard.rtol
    atol = atol if standard.atol is None else standard.atol
    finite, golden, error = _errors(output)
    wrong = output.classes_differ.copy()
    wrong[finite] |= error > atol + rtol * np.abs(golden)
    share = float((error / (atol + rtol * np.abs(golden))).max(initial=0)) if rtol or atol else 0.0
    reason = _counted(wrong, f"are not within atol {atol:g} + rtol {rtol:g} |golden|")
    return Verdict(not wrong.any(), reason, wrong, {"share": share}, {"share": 1.0})


def _single(output: Output) -> Verdict:
    if (differing := _classes(output)) is not None:
        return differing
    threshold = THRESHOLD[output.dtype]
    finite, golden, error = _errors(output)
    relative = relative_errors(error, golden)
    figures = {"MERE": mean(relative), "MARE": float(relative.max(initial=0))}
    limits = {"MERE": threshold, "MARE": 10 * threshold}
    wrong = np.zeros(output.got.shape, bool)
    wrong[finite] = ~(relative < limits["MARE"])
    passed = all(figures[name] < limits[name] for name in limits)
    return Verdict(passed, _reason(figures, limits, "below", wrong), wrong, figures, limits)


def _double(output: Output, level: str, benchmark: Array) -> Verdict:
    near = wide(output.nearest)
    got, other = wide(output.got), wide(benchmark)
    odd = ~(np.isfinite(got) & np.isfinite(near))
    as_either = (got == near) | (np.isnan(got) & np.isnan(near))
    as_either |= (got == other) | (np.isnan(got) & np.isnan(other))
    if (odd & ~as_either).any():
        wrong = odd & ~as_either
        which = "are NaN or infinite where golden value and benchmark are not, or the reverse"
        reason = _counted(wrong, which)
        return Verdict(False, reason, wrong, {"differing": float(np.count_nonzero(wrong))}, {})
    golden = wide(output.expected)
    below, allowed = SMALL[output.dtype]
    finite = ~odd & np.isfinite(other)
    small = finite & (np.abs(golden) < below)
    usual = finite & ~small
    figures, limits = {}, {}
    with np.errstate(all="ignore"):
        mine, theirs = (errors_over(x[usual], golden[usual]) for x in (got, other))
    for name, limit in zip(("MARE", "MERE", "RMSE"), LEVELS[level], strict=True):
        figures[f"{name} ratio"], limits[f"{name} ratio"] = ratio(mine[name], theirs[name]), limit
    with np.errstate(all="ignore"):  # small has no NaN and no infinity
        far = [small & (np.abs(x - golden) > allowed) for x in (got, other)]
    counts = [int(where.sum()) for where in far]
    figures["small-value ratio"], limits["small-value ratio"] = counts[0] / max(counts[1], 1), 2.0
    wrong = np.asarray(far[0])
    alone = ~odd & ~np.isfinite(other)  # the other implementation has no error to compare with
    if alone.any():
        error = relative_errors(np.abs(got[alone] - golden[alone]), golden[alone])
        limit = 10 * THRESHOLD[output.dtype]
        figures["MARE where the benchmark is not finite"] = float(error.max())
        limits["MARE where the benchmark is not finite"] = limit
        wrong[alone] = error > limit
    passed = all(figures[name] <= limits[name] for name in limits)
    if not passed and usual.any():
        with np.errstate(all="ignore"):
            error = np.where(usual, np.abs(got - golden), 0.0)
            wrong |= error > limits["MARE ratio"] * theirs["MARE"] * np.abs(golden)
    return Verdict(passed, _reason(figures, limits, "at most", wrong), wrong, figures, limits)


WORDS = {
    "MARE": "greatest relative error",
    "MERE": "mean relative error",
    "RMSE": "root mean square error",
    "small-value": "number of results near 0 that are off",
}


def _reason(
    figures: Mapping[str, Any], limits: Mapping[str, float], limit: str, wrong: Array
) -> str:
    """The first figure beyond its limit, all where none is; `limit`: below or at most."""
    kept = operator.lt if limit == "below" else operator.le
    beyond = [name for name, value in figures.items() if not kept(value, limits[name])]
    parts = []
    for name in beyond[:1] or figures:
        short, _, rest = name.partition(" ")
        own, allowed = f"{WORDS[short]} ", f"{limit} {limits[name]:.3g}"
        if rest == "ratio":
            own += f"is {figures[name]:.3g} times the benchmark's"
        else:
            own += f"{rest} is {figures[name]:.3g}".lstrip()
        parts.append(f"{own} (must be {allowed})")
    text = ", ".join(parts)
    return _counted(wrong, f"are too far off; {text}") if beyond and wrong.any() else text


def _peer(output: Output, limit: float, other: Array) -> Verdict:
    apart = steps_between(output.got, other.astype(output.got.dtype))
    wrong = apart > limit
    worst = float(apart.max())
    reason = (
        _counted(wrong, f"are more than {limit:g} ulp from the benchmark's")
        + f"; the farthest is {worst:.4g} ulp from it"
        if wrong.any()
        else f"at most {worst:.4g} ulp from the benchmark's, {limit:g} allowed"
    )
    return Verdict(not wrong.any(), reason, wrong, {"ulp": worst}, {"ulp": limit})
