# SPDX-License-Identifier: Apache-2.0
"""What the wrong elements of a result have in common."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import chain, combinations

import numpy as np

from ..rows.dtypes import DTYPES
from .arrays import Array
from .evaluation import REFERENCES, compute_dtype, rounded_attributes
from .judge import Output, wide
from .precision import AS_IF, CANCELLED, HYPOTHESES, TELLING, all_cancelled, symptoms

EVERY_WRONG = "every wrong element"
ALL_SUCH = "all such elements are wrong"
SOME = 1024  # elements that are looked at before all are
FEW_INPUTS = 1 << 18  # elements of inputs of a sum
SEVERAL = 4  # wrong elements for which other arguments may be the cause
NEAR = 0.125
NEAR_ZERO = f"is between -{NEAR} and {NEAR}"
BLOCKS = (4, 8, 16, 32, 64, 128, 256, 512, 1024)  # what kernels are unrolled by
TAILS = {f"it lies past the last full block of {block} elements": block for block in BLOCKS}
# Where kernels clamp, or take another formula.
BOUNDS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 16, 20, 25, 30, 32, 40, 50, 64, 80, 88, 100, 104)
# Of exponentials in FLOAT: normal and finite ones.
LEAST_EXPONENT, GREATEST_EXPONENT = -126 * math.log(2), 128 * math.log(2)
CHANCE = 1e-2  # that all wrong elements would have a pattern if they were spread evenly


def common(output: Output, wrong: Array, failing: Collection[str] = ()) -> str:
    """What all wrong elements of one result have in common, by more than chance; or "". The
    conditions are computed one at a time: outputs may be large. `failing`: outputs that are
    wrong."""
    at = np.flatnonzero(wrong)
    if not at.size:
        return ""
    found: list[tuple[int, str, str]] = []  # how many elements have it, what, what more
    with np.errstate(all="ignore"):
        positions = np.arange(wrong.size).reshape(wrong.shape)
        every = chain(conditions(output, positions), tails(positions, wrong.size))
        for text, where in every:
            flat = where.reshape(-1)
            if flat[at[0]] and flat[at].all():  # most fail at the first
                matching = int(np.count_nonzero(flat))
                rare = (matching / wrong.size) ** at.size <= CHANCE
                if matching < wrong.size and (matching == at.size or rare):
                    more = f"; {ALL_SUCH}" if matching == at.size else ""
                    found.append((matching, text, more))
        if not any(matching == at.size for matching, _, _ in found):
            if output.terms is not None and sum(x.size for x in output.inputs) > FEW_INPUTS:
                output = replace(output, inputs=())  # hypotheses would take minutes
            found += [(at.size, text, "") for text in _symptoms(output, at, wrong, failing)]
    if not found:
        return ""
    _, text, more = min(found, key=lambda entry: entry[0])
    return f"{in_common(EVERY_WRONG, text)}{more}"


def in_common(subject: str, text: str) -> str:
    """In a sentence; the subject is plural unless it begins with "every" or "nearly every"."""
    is_one = "every" in subject.split()[:2]
    if text.startswith(AS_IF):
        return f"{subject} {'is' if is_one else 'are'} {text.removeprefix('it is ')}"
    return f"{subject} {'has' if is_one else 'have'} this in common: {text}"


def _symptoms(output: Output, at: Array, wrong: Array, failing: Collection[str]) -> list[str]:
    """Those that all wrong elements have, and that no right one contradicts, of some."""
    found = _of_all(output.take(_some(at)), failing)
    if found:
        right = output.take(_some(np.flatnonzero(~wrong)))
        denied = {
            s.text for s in symptoms(right, found) if s.against is not None and s.against.any()
        }
        found = [text for text in found if text not in denied]
    if found and at.size > SOME:
        every = _of_all(output.take(at), failing, found)
        found = [text for text in found if text in every]
    return found or ([CANCELLED] if all_cancelled(output.take(at)) else [])


def _some(at: Array) -> Array:
    """Evenly spread: inputs are often in order."""
    return at[:: max(1, -(-at.size // SOME))]


def _of_all(
    output: Output, failing: Collection[str], among: Collection[str] | None = None
) -> list[str]:
    size = output.got.size
    return [s.text for s in symptoms(output, among)
            if s.where.all() and np.count_nonzero(s.telling) >= TELLING * size
            and (size >= SEVERAL or not s.text.startswith(HYPOTHESES))
            and set(s.wrong) <= set(failing)]  # fmt: skip


def conditions(output: Output, at: Array) -> Iterator[tuple[str, Array]]:
    """What may set elements apart: inputs, right results, positions. `at`: their positions in the
    whole, of which these may be a part."""
    got, op, attributes = output.got, output.op, output.attributes
    shape = got.shape
    if output.terms is None and output.inputs:  # a golden value has none
        reference = REFERENCES[op.kernel]
        thresholds = _thresholds(output)
        points = {t: v for t, v in thresholds.items() if t != "0"}
        sizes = [abs(v) for v in thresholds.values() if not math.isnan(v)]
        known: list[tuple[str, Array]] = []
        for p, x in zip(op.input_tensors, output.inputs, strict=True):
            values = np.broadcast_to(wide(x), shape)
            for text, point in points.items():
                yield f"{p.python_name} is above {text}", values > point
                if "/" not in text:  # the range of an exponential, below which nearly all lie
                    yield f"{p.python_name} is below {text}", values < point
            if len(points) > 1:
                (low, least), (high, most) = _ends(points)
                within = (values > least) & (values < most)
                yield f"{p.python_name} is between {low} and {high}", within
            known.append((p.python_name, values))
            yield from _of_values(p.python_name, values, output.dtype)
            yield from _beyond(p.python_name, values)
            if rate := reference.rates.get(p.python_name):
                power = attributes[rate] * values
                name = f"exp({rate} * {p.python_name})"
                below = f"{name} is below the normal numbers of FLOAT"
                yield below, power < LEAST_EXPONENT
                yield f"{name} is infinite in FLOAT", power > GREATEST_EXPONENT
                yield from _beyond(f"{rate} * {p.python_name}", power)
                for other, size in known[:-1]:  # infinity times 0
                    yield (
                        f"{other} is infinite and {below}",
                        np.isinf(size) & (power < LEAST_EXPONENT),
                    )
            for text, point in points.items():
                yield f"{p.python_name} is exactly {text}", values == point
            threshold = np.isin(np.abs(values), sizes)
            yield f"{p.python_name} is exactly at a threshold of the formula", threshold
            nan = np.isnan(values)  # two comparisons the wrong way round: both in one tensor
            yield (
                f"{p.python_name} is NaN or exactly at a threshold of the formula",
                nan | threshold,
            )
        if len(known) > 1:
            finite = np.logical_and.reduce([np.isfinite(values) for _, values in known])
            yield "an input is NaN or infinite", ~finite
        for (first, a), (second, b) in combinations(known, 2):  # a kernel that compares another
            yield f"only one of {first} and {second} is positive", (a > 0) != (b > 0)
            for text, point in points.items():
                both = f"only one of |{first}| and |{second}| is at most {text}"
                yield both, (np.abs(a) <= point) != (np.abs(b) <= point)
    if output.dtype in DTYPES:
        result = np.asarray(wide(output.nearest))
        yield from _of_values("the right result", result, output.dtype)
        yield from _out_of_range(result, output.dtype)
        if not output.inputs:
            yield from _beyond("the right result", result)
    yield "it is the first element", at == 0


def tails(at: Array, size: int) -> Iterator[tuple[str, Array]]:
    """Positions past the last full block; of a tensor smaller than a block, all."""
    for text, block in TAILS.items():
        yield text, at >= size - size % block


def _ends(points: Mapping[str, float]) -> tuple[tuple[str, float], tuple[str, float]]:
    ordered = sorted(points.items(), key=lambda item: item[1])
    return ordered[0], ordered[-1]


def _thresholds(output: Output) -> Mapping[str, float]:
    """Where the formula switches, with the scalars that it computes with."""
    given = rounded_attributes(output.op, output.attributes, compute_dtype(output.inputs))
    return REFERENCES[output.op.kernel].special(given)


def _of_values(name: str, x: Array, dtype: str) -> Iterator[tuple[str, Array]]:
    least = math.ldexp(1, DTYPES[dtype].least)
    zero, minus = x == 0, np.signbit(x)
    yield f"{name} is -0", zero & minus  # of those that say as much, the first is said
    yield f"{name} is +0", zero & ~minus
    yield f"{name} is ±0", zero
    yield f"{name} is NaN", np.isnan(x)
    yield f"{name} is infinite", np.isinf(x)
    yield f"{name} is NaN or infinite", ~np.isfinite(x)
    yield f"{name} is subnormal", (np.abs(x) < least) & (x != 0)
    yield f"{name} {NEAR_ZERO}", np.abs(x) <= NEAR
    yield f"{name} is negative", np.signbit(x) & ~np.isnan(x)
    yield f"{name} is positive", x > 0
    yield f"{name} is positive or +0", ~np.signbit(x) & ~np.isnan(x)


def _out_of_range(result: Array, dtype: str) -> Iterator[tuple[str, Array]]:
    """Infinite or 0, if intermediate results are of a narrower dtype."""
    for narrow in ("FLOAT16", "FLOAT"):
        form = DTYPES[narrow]
        if form.greatest < DTYPES[dtype].greatest:
            size = np.abs(result)
            outside = (size >= 2.0 ** (form.greatest + 1)) | (size < 2.0**form.least)
            outside &= np.isfinite(result) & (result != 0)
            yield f"the right result is outside the range of {narrow}", outside


def _beyond(name: str, x: Array) -> Iterator[tuple[str, Array]]:
    for bound in BOUNDS:
        yield f"{name} is below -{bound}", x < -bound
        yield f"{name} is above {bound}", x > bound
        # Beyond twice the bound a clamp may round to the right result.
        yield f"{name} is between -{2 * bound} and -{bound}", (x < -bound) & (x > -2 * bound)
        yield f"{name} is between {bound} and {2 * bound}", (x > bound) & (x < 2 * bound)
