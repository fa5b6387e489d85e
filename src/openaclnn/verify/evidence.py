# SPDX-License-Identifier: Apache-2.0
"""Elements of many results, and what may set them apart, as truth values.

A result that has no elements to look at (it crashed, or has the wrong shape) counts as one element.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ..reference.arrays import Array
from ..reference.judge import wide
from ..reference.patterns import conditions, tails
from ..reference.precision import CANCELLED, HYPOTHESES, SIGN, Symptom, is_far, symptoms
from ..rows.dtypes import DTYPES
from .runner import FAILED, Result
from .sample import Sample
from .severity import CLOSE, SMALL, is_close

VAGUE = (SIGN, *SMALL)  # which many mistakes make
# Of a result's wrong elements. One may have a symptom by chance, but nearly all do not.
NEARLY_ALL, MOST, SEVERAL = 0.9, 0.5, 4
FEW, FRACTION = 3, 0.05  # results that may be the rest of others
LARGE = 1 << 16  # elements
SEARCHED = 80  # results


@dataclass(frozen=True)
class Elements:
    """One entry of each array for each element."""

    weight: Array  # how many elements of the result it stands for
    wrong: Array
    ulp: Array
    is_far: Array  # more than a few ulp
    direction: Array  # -1: too small in magnitude, 1: too large
    unwritten: Array
    place: Array  # in the sample
    share: Array  # of what is wrong with the result, to which each kind of error adds as much
    conditions: dict[str, Array]
    symptoms: dict[str, Array]  # false where not wrong
    telling: dict[str, Array]  # what would not have the symptom by chance
    against: dict[str, Array]  # right ones that contradict it
    fits: dict[str, Array]  # of hypotheses: what would be so, also where it may be chance


@dataclass(frozen=True)
class Evidence(Elements):
    """The elements of several results: first of the failed ones."""

    results: tuple[Result, ...]
    of: Array  # the position of the result of each element
    only: str  # the output, if there are several

    def count(self, where: Array, weights: Array | None = None) -> Array:
        """Of the elements of each result."""
        chosen = None if weights is None else weights[where]
        return np.bincount(self.of[where], chosen, minlength=len(self.results))


def evidence(failed: Sequence[Result], others: Sequence[Result], only: str = "") -> Evidence:
    """`others` count as right. `only`: of several outputs, the one to look at, which is wrong in
    all failed results."""
    output = only or next((r.outputs[0] for r in failed if r.outputs), "")
    parts = _of_failed(failed, only)
    seen = _seen(parts)
    good = []
    for r in others:
        sample = next((s for s in r.samples if s.output.name == output), None)
        if output and sample is not None:
            good.append((r, _of_sample(sample, np.zeros_like(sample.wrong), seen)))
        elif (r.status == FAILED and not r.samples) or (
            not output and r.size
        ):  # an empty one has nothing wrong
            good.append((r, _whole(wrong=False)))
    parts += [part for _, part in good]
    sizes = [part.wrong.size for part in parts]
    joined: dict[str, Any] = {
        f.name: _joined([getattr(part, f.name) for part in parts], sizes) for f in fields(Elements)
    }
    # What is clear in most results that it fits is no chance in the others.
    of = np.repeat(np.arange(len(parts)), sizes)
    for text, fits in joined["fits"].items():
        clear, every = (np.unique(of[w]).size for w in (joined["symptoms"][text], fits))
        if clear >= MOST * every:
            joined["symptoms"][text] = fits
    results = (*failed, *(r for r, _ in good))
    return Evidence(**joined, results=results, of=of, only=only)


def _seen(parts: Sequence[Elements]) -> set[str]:
    """Symptoms of enough results for a rule, and not of each by chance."""
    counts: Counter[str] = Counter()
    telling: set[str] = set()
    for part in parts:
        telling |= {t for t, where in part.symptoms.items() if (where & part.telling[t]).any()}
        every = part.symptoms | part.fits
        counts.update(text for text, where in every.items() if where.any())
    return {text for text in telling if counts[text] >= least_results(len(parts))}


def least_results(failed: int) -> float:
    """How many results a rule must explain, or it is the rest of others."""
    return min(max(FEW, FRACTION * failed), failed)


def _joined(own: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Arrays end to end; of dicts the arrays of each key, false where a part lacks it."""
    if not isinstance(own[0], dict):
        return np.concatenate(own)
    found: dict[Any, Array] = {}
    start = 0
    for named, size in zip(own, sizes, strict=True):
        for key, where in named.items():
            every = found.setdefault(key, np.zeros(sum(sizes), bool))
            every[start : start + size] = where
        start += size
    return found


def _of_failed(failed: Sequence[Result], only: str) -> list[Elements]:
    """All symptoms are looked for in SEARCHED results, in the others those that these have. A
    mistake that 5 % of the results have is in none of these once in 60 times."""
    drawn = np.random.default_rng(0).permutation(len(failed))
    parts: dict[int, Elements] = {}
    seen: set[str] = set()
    searched = 0
    for r in sorted((failed[i] for i in drawn), key=lambda r: r.size > LARGE):
        sample = next((s for s in r.samples if s.output.name == only or not only), None)
        if sample is not None and sample.wrong_in_all:
            among = seen if searched >= SEARCHED or (seen and r.size > LARGE) else None
            searched += 1
            right = {s.output.name for s in r.samples} - set(r.outputs)
            part = _of_sample(sample, sample.wrong, among, right)
            seen |= {text for text, where in part.symptoms.items() if where.any()}
        else:
            part = _whole(wrong=True)
        parts[id(r)] = part
    return [parts[id(r)] for r in failed]


def _whole(*, wrong: bool) -> Elements:
    one, zero = np.ones(1), np.zeros(1)
    texts: list[dict[Any, Array]] = [{} for _ in range(5)]
    at = zero.astype(int)
    return Elements(one, one == wrong, one, one > 0, zero, zero > 0, at, one * wrong, *texts)


def _of_sample(
    s: Sample, wrong: Array, among: Collection[str] | None, right: Collection[str] = ()
) -> Elements:
    """`among`: the symptoms of interest, or None for all. `right`: outputs that are."""
    with np.errstate(all="ignore"):
        direction = np.sign(np.abs(wide(s.output.got)) - np.abs(wide(s.output.expected)))
        known = {text: _of_shape(w, wrong.shape) for text, w in conditions(s.output, s.at)}
        known |= dict(tails(s.at, s.size))
        if s.onset is not None:
            known[f"it is element {s.onset:,} or later"] = s.at >= s.onset
        shown = _symptoms(s, wrong, among, right)
        fits = {m.text: m.fits for m in shown if m.fits is not None}
    return Elements(
        s.weight,
        wrong,
        s.output.ulp,
        is_far(s.output),
        direction,
        s.unwritten & wrong,
        np.arange(wrong.size),
        _shares(wrong, shown),
        known,
        {m.text: m.where for m in shown},
        {m.text: m.telling for m in shown},
        {m.text: m.against for m in shown if m.against is not None},
        fits,
    )


def _of_shape(x: Array, shape: tuple[int, ...]) -> Array:
    return x if x.shape == shape else np.broadcast_to(x, shape)


def _shares(wrong: Array, shown: Sequence[Symptom]) -> Array:
    """Each kind of error adds as much, far ones, zeros and small ones: rounding makes most of the
    elements of a FLOAT kernel wrong, and a mistake beside it few. A close one beside many that are
    far off is chance."""
    zeros = _any([m for m in shown if m.text == SIGN], wrong.shape)
    small = _any([m for m in shown if m.text == CLOSE or m.text not in VAGUE], wrong.shape)
    if small.sum() < max(SEVERAL, (1 - NEARLY_ALL) * wrong.sum()):
        small = small & False
    kinds = np.select([zeros, small], [2, 1], 0)
    counts = np.bincount(kinds[wrong], minlength=3)
    return np.asarray(wrong / np.maximum(counts[kinds], 1) / max(np.count_nonzero(counts), 1))


def _symptoms(
    s: Sample, wrong: Array, among: Collection[str] | None, right: Collection[str]
) -> list[Symptom]:
    """Those that say what is wrong first; what they explain counts as nothing else."""
    found: list[Symptom] = []
    got = wide(s.output.got) if s.output.dtype in DTYPES else s.output.got
    far = is_far(s.output)
    clear = far & np.isfinite(got) & (got != 0)
    zeros = wrong & (wide(s.output.nearest) == 0) if s.output.dtype in DTYPES else wrong
    for m in (*symptoms(s.output, among), Symptom(CLOSE, is_close(s.output), wrong)):
        where = m.where & wrong
        eligible = wrong & far if m.text == CANCELLED else zeros if m.text == SIGN else wrong
        is_clear = m.text.startswith(HYPOTHESES) and (m.telling & where & clear).sum() >= SEVERAL
        share = MOST if m.text == SIGN else NEARLY_ALL  # random zeros have both signs
        by_chance = m.text not in SMALL and where.sum() < share * eligible.sum() and not is_clear
        if set(m.wrong) & set(right):
            where = where & False
        fits = where if m.text.startswith(HYPOTHESES) else None
        if by_chance:
            where = where & False
        if m.text in SMALL:
            telling = [x for x in found if x.text not in VAGUE
                       and (x.telling & x.where).sum() >= 2 * SEVERAL]  # fmt: skip
            where = where & ~_any(telling, wrong.shape)
        against = None if m.against is None else m.against & ~wrong
        telling_of = m.telling & (where if fits is None else fits)
        found.append(replace(m, where=where, telling=telling_of, against=against, fits=fits))
    return found


def _any(shown: Sequence[Symptom], shape: tuple[int, ...]) -> Array:
    return np.asarray(np.logical_or.reduce([np.zeros(shape, bool), *(m.where for m in shown)]))
