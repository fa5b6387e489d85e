# SPDX-License-Identifier: Apache-2.0
"""Cases against providers: what each computed, judged."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..reference.arrays import Array
from ..reference.compare import worst_elements
from ..reference.comparison import Element, pair
from ..reference.judge import Output, outputs
from ..reference.standards import NEEDS_BENCHMARK, Standard
from ..reference.verdicts import NoThreshold, Verdict, judged
from ..rows.dtypes import DTYPES
from .cases import Case
from .explanations import Cause, of_elements, of_unsteady
from .profile import Profile, profile
from .provider import Outcome, Provider
from .request import PATTERN
from .sample import Sample, sample

CLOSE = 16  # ulp
DEATHS = 3  # crashed, hung or outside, of an operator in a dtype; the rest of it is left out
PASSED, FAILED, LEFT_OUT = "passed", "failed", "left out"


@dataclass(frozen=True)
class Result:
    """What became of one case with one provider."""

    case: Case
    provider: str
    status: str  # passed, failed, left out
    kind: str = ""  # wrong, differs, crashed, hung, outside, status, refused, refusal, damaged, …
    sentence: str = ""  # why it failed or was left out
    error: float = 0.0  # the greatest distance, in `unit`
    unit: str = ""
    worst: tuple[Element, ...] = ()
    seconds: float = 0.0
    profiles: tuple[Profile, ...] = ()  # where they are asked for
    causes: tuple[Cause, ...] = ()  # known defects that explain it
    unexplained: int = 0  # wrong elements that none of them explains
    size: int = 0  # elements
    untaken: tuple[str, ...] = ()  # what the provider's function has no parameter for
    outputs: tuple[str, ...] = ()  # those that are wrong
    element: Element | None = None  # a wrong one
    is_worst: bool = True  # of all; or only of those that are looked at
    samples: tuple[Sample, ...] = ()  # one of each output, the wrong ones first

    @property
    def message(self) -> str:
        """The sentence with the element."""
        if self.element is None:
            return self.sentence
        got = f"expected {expected_text(self.element)}, got {pair(*self.element.got)}"
        return f"{self.sentence}; {self.place}: {got}"

    @property
    def place(self) -> str:
        """Of the element: its index, and what came in."""
        if self.element is None:
            return ""
        given = [f"{name} = {pair(*x)}" for name, x in self.element.inputs.items()]
        at = ", ".join((f"at {list(self.element.index)}", *given))
        return at if self.is_worst else f"one of this finding: {at}"

    def with_element(self, element: Element, sentence: str = "") -> Result:
        """With another wrong element than the worst, of another output if there is a sentence."""
        return replace(self, element=element, is_worst=False, sentence=sentence or self.sentence)


Judged = tuple[Result, tuple[Array | None, ...]]


class Runner:
    """Puts cases to providers, one after the other."""

    def __init__(
        self,
        providers: Sequence[Provider],
        standard: Standard,
        benchmark: Provider | None = None,
        *,
        profiles: bool = False,
    ) -> None:
        """`profiles`: results have them, and those that passed their worst element."""
        self._providers, self._standard, self._benchmark = providers, standard, benchmark
        self._profiles = profiles
        self._deaths: Counter[tuple[str, str, str]] = Counter()

    def run(self, cases: Iterable[Case], on_case: Callable[[Case, int], None]) -> list[Result]:
        """Results in the order of the cases; `on_case` is called before each, with
        the number of those done."""
        found = []
        for done, case in enumerate(cases):
            on_case(case, done)
            found += self.case(case)
        return found

    def case(self, case: Case) -> list[Result]:
        """The result of each provider."""
        inputs = case.inputs()
        other = self._golden_of_benchmark(case, inputs)
        found = []
        first: Judged | None = None
        for provider in self._providers:
            result, computed = self._one(provider, case, inputs, other, first)
            if computed is not None and provider.name.startswith("openaclnn"):
                if first is None:
                    first = result, computed
                elif result.status == PASSED and not same_bits(first[1], computed):
                    result = replace(
                        result,
                        status=FAILED,
                        kind="differs",
                        sentence=f"the bits are not those of {first[0].provider}",
                    )
            if untaken := getattr(provider, "untaken", ()):
                result = replace(result, untaken=untaken)
            found.append(result)
        return found

    def _golden_of_benchmark(self, case: Case, inputs: Sequence[Array]) -> Any:
        if self._benchmark is None or self._benchmark.missing(case):
            return None
        return self._benchmark.run(case, [x.copy() for x in inputs]).results

    def _one(
        self,
        provider: Provider,
        case: Case,
        inputs: Sequence[Array],
        benchmark: Any,
        before: Judged | None,
    ) -> tuple[Result, tuple[Array | None, ...] | None]:
        """`before`: another provider's; the same bits have the same verdict."""

        def left_out(why: str) -> tuple[Result, None]:
            return Result(case, provider.name, LEFT_OUT, sentence=why), None

        if why := provider.missing(case):
            return left_out(why)
        group = (provider.name, case.op.name, case.dtype)
        if self._deaths[group] >= DEATHS:
            return left_out(f"{DEATHS} calls before it crashed, hung or left their memory")
        if self._standard.name in NEEDS_BENCHMARK and benchmark is None and not case.mistake:
            return left_out("the benchmark has no result")
        start = time.perf_counter()
        outcome = provider.run(case, [x.copy() for x in inputs])
        seconds = time.perf_counter() - start
        if outcome.kind:
            self._deaths[group] += outcome.kind in ("crashed", "hung", "outside")
            failed = Result(case, provider.name, FAILED, outcome.kind, outcome.sentence)
            if outcome.kind == "unsteady":
                failed = replace(failed, causes=of_unsteady(provider.name, case))
            return failed, None
        if case.mistake:
            return Result(case, provider.name, PASSED, seconds=seconds), None
        if before is not None and same_bits(before[1], outcome.results or ()):
            return replace(before[0], provider=provider.name, seconds=seconds), outcome.results
        try:
            every = [
                (output, without_unwritten(output, found))
                for output, found in self._judged(case, inputs, outcome, benchmark)
            ]
        except NoThreshold as error:
            return left_out(str(error))
        except (TypeError, ValueError) as error:  # shape, dtype, missing
            return Result(case, provider.name, FAILED, "wrong", str(error)), None
        return self._result(case, provider.name, every, seconds), outcome.results

    def _judged(
        self, case: Case, inputs: Sequence[Array], outcome: Outcome, benchmark: Any
    ) -> list[tuple[Output, Verdict]]:
        results = outcome.results
        assert results is not None
        found = outputs(case.op, inputs, case.attributes, results)
        names = [p.result_name for p in case.op.outputs]
        others = dict(zip(names, benchmark or [None] * len(names), strict=True))
        return [judged(output, self._standard, others[output.name]) for output in found]

    def _result(
        self, case: Case, provider: str, every: list[tuple[Output, Verdict]], seconds: float
    ) -> Result:
        errors = [greatest(output) for output, _ in every if output.got.size]
        error, unit = max(errors, default=(0.0, ""))
        profiles: tuple[Profile, ...] = ()
        if self._profiles:
            profiles = tuple(
                profile(output, found, self._standard) for output, found in every if output.got.size
            )
        wrong = next(((o, v) for o, v in every if not v.passed), None)
        if wrong is None:
            worst = worst_of_all(every) if self._profiles else ()
            size = sum(output.got.size for output, _ in every)
            passed = Result(case, provider, PASSED, "", "", error, unit, worst, seconds, profiles)
            return replace(passed, size=size, samples=_samples(every))
        output, found = wrong
        worst = worst_elements(output, found, 3)
        sentence = f"{output.name}: {found.reason}"
        failing = [(o, v.wrong) for o, v in every if not v.passed]
        causes, unexplained = of_elements(provider, case, failing)
        return Result(
            case,
            provider,
            FAILED,
            "wrong",
            sentence,
            error,
            unit,
            worst,
            seconds,
            profiles,
            causes,
            unexplained,
            output.got.size,
            outputs=tuple(o.name for o, v in every if not v.passed),
            element=worst[0] if worst else None,
            samples=_samples(sorted(every, key=lambda pair: pair[1].passed)),
        )


def _samples(every: Sequence[tuple[Output, Verdict]]) -> tuple[Sample, ...]:
    return tuple(sample(o, v.wrong, unwritten(o), v.reason) for o, v in every if o.got.size)


def unwritten(output: Output) -> Array:
    """The elements that hold what was there before."""
    got = output.got
    bits = np.ascontiguousarray(got).view(np.uint8).reshape(*got.shape, got.dtype.itemsize)
    return np.asarray((bits == PATTERN).all(axis=-1))


def without_unwritten(output: Output, found: Verdict) -> Verdict:
    """Elements that hold what was there before fail by every standard, unless they are close:
    results of 16 bits may be these bits."""
    if not output.got.size or output.dtype not in DTYPES:
        return found
    where = unwritten(output) & (output.ulp > CLOSE) & ~found.wrong
    if not where.any():
        return found
    text = f"{np.count_nonzero(where):,} of {where.size:,} elements were never written"
    reason = text if found.passed else f"{text}; {found.reason}"
    return replace(found, passed=False, wrong=found.wrong | where, reason=reason)


def greatest(output: Output) -> tuple[float, str]:
    """The greatest distance: in ulp, or as a share of what is allowed where results are sums."""
    if output.terms is not None:
        return float(output.of_promise.max()), "of bound"
    return float(output.ulp.max()), "ulp"


def worst_of_all(judged: Sequence[tuple[Output, Verdict]]) -> tuple[Element, ...]:
    """The worst element of the worst output."""
    sized = [(output, found) for output, found in judged if output.got.size]
    if not sized:
        return ()
    return worst_elements(*max(sized, key=lambda pair: greatest(pair[0])[0]), 1)


def expected_text(element: Element) -> str:
    """Rounded, unless that is the result, which is wrong by a finer standard."""
    if element.nearest == element.got:
        return f"{element.expected:.17g}"
    return pair(*element.nearest)


def same_bits(one: Sequence[Array | None], other: Sequence[Array | None]) -> bool:
    def same(a: Array | None, b: Array | None) -> bool:
        if a is None or b is None:
            return a is b
        return a.dtype == b.dtype and np.array_equal(_bits(a), _bits(b))

    return len(one) == len(other) and all(map(same, one, other))


def _bits(x: Array) -> Array:
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")
