# SPDX-License-Identifier: Apache-2.0
"""`openaclnn verify` for functions that ATen computes: providers, and the judge."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..aten.directory import directory
from ..reference.arrays import Array
from ..reference.judge import Output
from ..reference.layouts import CASE_LAYOUTS, of_output
from ..reference.verdicts import Verdict
from ..verify.cases import MISTAKES, Case
from ..verify.library import LibraryProvider
from ..verify.provider import BadProvider, Outcome, Provider
from ..verify.runner import LEFT_OUT, Result, Runner
from .calling import CallRequest, Refusal, computed
from .cases import GoldenCase
from .judging import judged
from .values import Golden, golden


class GoldenLibrary(LibraryProvider):
    """A library with functions that ATen computes."""

    def run(self, case: Case, inputs: Sequence[Array]) -> Outcome:
        assert isinstance(case, GoldenCase)
        layout = case.layout

        def move(x: Array) -> Array:
            """Not into a stride of 0 where that would change values: of indices, say."""
            moved = CASE_LAYOUTS[layout](x)
            return moved if moved.tobytes() == x.tobytes() else x

        request = CallRequest(
            case.call(),
            move,
            of_output(layout),
            repeat=2,
            alias=case.alias,
            refuse=bool(case.mistake),
        )
        return self.answered(case, request)


def named(word: str, timeout: float, names: Sequence[str]) -> Provider:
    """The provider of a word; `names`: the functions it will be asked for."""
    kind, _, rest = word.partition(":")
    variables = dict(os.environ)
    if word == "openaclnn":
        path, variables["OPENACLNN_PRODUCT"] = directory() / "lib64" / "libopapi.so", "any"
        return GoldenLibrary(word, str(path), timeout, variables, names)
    if kind != "library" or not rest:
        hint = "; openaclnn.compare judges results of Python functions" if kind == "python" else ""
        raise BadProvider(
            f"{names[0]} is computed by ATen: a provider must be openaclnn or library:PATH, but is "
            f"{word!r}{hint}"
        )
    if not Path(rest).is_file():
        raise BadProvider(f"{word}: no such file")
    return GoldenLibrary(word, str(Path(rest).resolve()), timeout, variables, names)


class GoldenRunner(Runner):
    """Judges against the golden value and what openaclnn computes, or another benchmark."""

    _golden: Golden

    def case(self, case: Case) -> list[Result]:
        assert isinstance(case, GoldenCase)
        if case.mistake:
            return super().case(case) if _is_refused(case) else []
        try:
            self._golden = golden(case.call())
        except ValueError as error:
            if case.changed:  # the function may refuse the change
                return []
            return [Result(case, p.name, LEFT_OUT, sentence=str(error)) for p in self._providers]
        return super().case(case)

    def _golden_of_benchmark(self, case: Case, inputs: Sequence[Array]) -> Any:
        if case.mistake:
            return None
        found = super()._golden_of_benchmark(case, inputs)
        return self._golden.benchmark if found is None else _with_nulls(case, found)

    def _judged(
        self, case: Case, inputs: Sequence[Array], outcome: Outcome, benchmark: Any
    ) -> list[tuple[Output, Verdict]]:
        assert outcome.results is not None
        results = _with_nulls(case, outcome.results)
        return judged(case.op, results, self._golden, self._standard, benchmark)


def _is_refused(case: GoldenCase) -> bool:
    """Whether openaclnn refuses the mistake: some functions take any shape or dtype."""
    try:
        computed(case.call())
    except Refusal as refusal:
        return (refusal.step, refusal.status) == ("phase 1", MISTAKES[case.mistake])
    return False


def _with_nulls(case: Case, written: Sequence[Array | None]) -> list[Array | None]:
    """Results by output, None where NULL was given."""
    assert isinstance(case, GoldenCase)
    results = iter(written)
    return [None if x is None else next(results) for x in case.call().outputs.values()]
