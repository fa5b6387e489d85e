# SPDX-License-Identifier: Apache-2.0
"""What was found, and the summary for a terminal. For programs: report_data.py, junit.py."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from ..reference.comparison import described, pair
from ..reference.in_float import ADVICE, ULPS, distances, limit
from ..reference.standards import Standard
from ..report.text_table import Paint, columns
from ..rows.table import DEFAULT_PRODUCT
from ..settings import config
from .case_conditions import short
from .cases import Case
from .explanations import known, text
from .finding import Finding, Rank
from .findings import findings
from .runner import FAILED, LEFT_OUT, Result, expected_text
from .severity import is_close

LISTED = 20  # values of an attribute
LOOKED_AT = 16  # results


@dataclass(frozen=True)
class Report:
    """All results of a run, and how it was asked for."""

    results: Sequence[Result]
    providers: Sequence[str]
    standard: Standard
    options: Sequence[str]  # words that a single case needs too
    seed: int
    seconds: float
    _findings: dict[tuple[str, str], list[Finding]] = field(default_factory=dict, init=False)

    @property
    def failed(self) -> list[Result]:
        return [r for r in self.results if r.status == FAILED]

    @property
    def compared(self) -> int:
        return sum(r.status != LEFT_OUT for r in self.results)

    def groups(self) -> Iterator[tuple[str, str, str, list[Result]]]:
        """Operator, dtype, provider and its results, in the order of the run."""
        order: dict[tuple[str, str], None] = {}
        for r in self.results:
            order.setdefault((r.case.op.python, r.case.dtype))
        by_group: dict[tuple[str, str, str], list[Result]] = {}
        for r in self.results:
            by_group.setdefault((r.case.op.python, r.case.dtype, r.provider), []).append(r)
        for op, dtype in order:
            for provider in self.providers:
                yield op, dtype, provider, by_group.get((op, dtype, provider), [])

    @property
    def failing(self) -> list[tuple[str, str]]:
        """Providers and operators with failed results, in the order of the run."""
        return list(dict.fromkeys((r.provider, r.case.op.python) for r in self.failed))

    def of(self, provider: str, op: str) -> list[Result]:
        return [r for r in self.results if (r.provider, r.case.op.python) == (provider, op)]

    def findings(self, provider: str, op: str) -> list[Finding]:
        if (provider, op) not in self._findings:
            self._findings[provider, op] = findings(self.of(provider, op))
        return self._findings[provider, op]

    def command(self, result: Result) -> str:
        """The words that make a case again."""
        return f"{self.command_of(result.provider)} {shlex.quote(result.case.id)}"

    def command_of(self, provider: str) -> str:
        """All of them but the case's name, which comes last."""
        words = ["openaclnn", "verify", provider, *self.options]
        words += ["--seed", str(self.seed), "--only"]
        product = config()["product"]
        before = "" if product == DEFAULT_PRODUCT else f"OPENACLNN_PRODUCT={product} "
        return before + shlex.join(words)


def summary(report: Report, paint: Paint) -> str:
    """A row for each operator and dtype, a column for each provider; then the findings."""
    lines = [_head(report, paint), ""]
    rows, verdicts = [["operator", "dtype", *report.providers]], []
    for (op, dtype), group in groupby(report.groups(), lambda g: g[:2]):
        cells = [_cell(results, report.standard) for *_, results in group]
        rows.append([op, dtype, *(text for text, _ in cells)])
        verdicts.append(all(good for _, good in cells))
    table = columns(rows)
    lines.append(paint(table[0], "bold"))
    for line, good in zip(table[1:], verdicts, strict=True):
        lines.append(line if good else paint(line, "red"))
    for provider, op in report.failing:
        lines += _findings(report, provider, op, paint)
    for provider in report.providers:
        lines += _known(report, provider, paint)
    lines += _other_standards(report)
    tried = [r.case for r in report.results if r.status != LEFT_OUT]
    lines += [*_tried(tried, own="--cases" in report.options), ""]
    return "\n".join([*lines, _closing(report, paint)])


def _head(report: Report, paint: Paint) -> str:
    cases = len({id(r.case) for r in report.results})
    summary = f"{_cases(cases)}, seed {report.seed}, {described(report.standard)}"
    return f"{paint('openaclnn verify', 'bold')}  {summary}"


def _cell(results: Sequence[Result], standard: Standard) -> tuple[str, bool]:
    done = [r for r in results if r.status != LEFT_OUT]
    failed = [r for r in done if r.status == FAILED]
    if failed:
        kinds = ", ".join(dict.fromkeys(r.kind for r in failed))
        return f"{len(failed)} of {len(done)} FAILED: {kinds}", False
    if not done:
        return "-", True
    # An output of another dtype has another unit and another bound.
    worst = max((r for r in done if r.case.out is None), key=lambda r: r.error, default=done[0])
    # Relative errors let tiny results pass where 0 is right: an infinite distance.
    is_share = worst.unit != "ulp" and standard != Standard()  # of a bound that does not count
    is_excused = standard.name == "float" and worst.error > ULPS  # more than is compared
    has_figure = worst.unit and math.isfinite(worst.error) and not is_share and not is_excused
    measured = f", {worst.error:.4f} {worst.unit}" if has_figure else ""
    return f"{len(done)} passed{measured}", True


def _findings(report: Report, provider: str, op: str, paint: Paint) -> list[str]:
    """Of all dtypes: one example of each."""
    results = report.of(provider, op)
    failed = sum(r.status == FAILED for r in results)
    compared = sum(r.status != LEFT_OUT for r in results)
    if not failed:
        return []
    groups = report.findings(provider, op)
    causes = Counter(r.case.id for found in groups for r in found.results)
    several = sum(n > 1 for n in causes.values())
    more = f", {several:,} of them with two causes or more" if several else ""
    head = f"{provider}: {op}: {_cases(failed, compared)} failed{more}"
    lines = ["", paint(head, "red", "bold")]
    for found in groups:
        lines += finding_lines(report, found, paint)
    left = [r for r in results if r.status == LEFT_OUT]
    if left:
        lines.append(f"  {_cases(len(left))} left out: {_why(left)}")
    return lines


def _cases(n: int, of: int | None = None) -> str:
    """1 case, 3 cases, 1 of 3 cases."""
    count = f"{n:,}" if of is None else f"{n:,} of {of:,}"
    return f"{count} case" if (n if of is None else of) == 1 else f"{count} cases"


def _why(left: Sequence[Result]) -> str:
    return "; ".join(dict.fromkeys(r.sentence for r in left))


NO_CAUSE = "no common cause found; look at the example"


def finding_lines(report: Report, found: Finding, paint: Paint) -> list[str]:
    """The cause, if it is known, and the example."""
    r, lines = found.example, []
    if len(found.results) > 1 or found.cause:
        of = f"{_cases(len(found.results))}, {', '.join(found.dtypes)}"
        cause = found.cause or (NO_CAUSE if r.kind == "wrong" and not known(r.provider) else "")
        lines.append(paint(f"  {of}: {cause}" if cause else f"  {of}", "bold"))
    *example, command = example_lines(report, r)
    return [*lines, *(f"  {line}" for line in example), paint(f"  {command}", "dim")]


def example_lines(report: Report, r: Result) -> list[str]:
    """Why it failed, an element, the case, and the command that runs it again."""
    lines = [f"{r.kind}: {r.sentence}"]
    if r.element is not None:
        lines += [
            f"  {r.place}",
            f"    expected {expected_text(r.element)}",
            f"    got      {pair(*r.element.got)}",
        ]
    lines.append(f"  {r.case.text()}")
    if why := explanation(r):
        lines.append(f"  {why}")
    return [*lines, f"  {report.command(r)}"]


def explanation(result: Result) -> str:
    """What is known about a finding; empty where nothing is known about the provider."""
    if result.status != FAILED or not known(result.provider):
        return ""
    return text(result.causes, result.unexplained)


def _known(report: Report, provider: str, paint: Paint) -> list[str]:
    """How many findings each known defect of a provider explains, alone or beside others."""
    failed = [r for r in report.failed if r.provider == provider]
    defects = known(provider)
    if not failed or not defects:
        return []
    rows = []
    for d in defects:
        own = [r for r in failed if any(c.defect is d for c in r.causes)]
        if not own:
            continue
        alone = sum(len(r.causes) == 1 and not r.unexplained for r in own)
        rows.append([f"  {d.number}", d.title, f"{len(own):,}", f"{alone:,}"])
    full = sum(bool(r.causes) and not r.unexplained for r in failed)
    head = f"{provider}: known defects explain {full:,} of {len(failed):,} failed cases"
    if not rows:
        return ["", paint(head, "bold")]
    table = columns([["  ", "defect", "seen in", "explains alone"], *rows], "rlrr")
    return ["", paint(head, "bold"), *table]


def _other_standards(report: Report) -> list[str]:
    """For a kernel that is as exact as FLOAT: most of its small errors pass by that standard."""
    if report.standard != Standard():
        return []
    every = [f for provider, op in report.failing for f in report.findings(provider, op)]
    small = [r for f in every if f.rank == Rank.SMALL for r in f.results]
    own = [r for r in small if r.case.output_dtypes[0] == "FLOAT" and r.samples][:LOOKED_AT]
    if 2 * sum(map(_passes_in_float, own)) <= len(own):  # half of them
        return []
    return ["", ADVICE]


def _passes_in_float(r: Result) -> bool:
    """Of its sampled elements, those that are off by little."""
    outputs = [s.output for s in r.samples]
    return all(np.all(distances(o)[is_close(o)] <= limit(o)) for o in outputs)


def _tried(cases: Sequence[Case], *, own: bool) -> list[str]:
    """The largest tensor and, of one operator, the values of each attribute. `own`: whether they
    are those of a file."""
    if not cases:
        return []
    largest = max(math.prod(shape) for case in cases for shape in case.shapes)
    can = cases[0].op.kernel and not own  # not of what ATen computes
    others = "; --cases takes others" if can else ""
    lines = ["", f"Tried: tensors of up to {largest:,} elements{others}"]
    if len({case.op.name for case in cases}) == 1:
        for name in cases[0].attributes:
            values = list(dict.fromkeys(short(case.attributes[name]) for case in cases))
            more = f" and {len(values) - LISTED} more" if len(values) > LISTED else ""
            lines.append(f"  {name}: {', '.join(values[:LISTED])}{more}")
    return lines


def _closing(report: Report, paint: Paint) -> str:
    failed, took = len(report.failed), f"{report.seconds:.1f} s"
    left = sum(r.status == LEFT_OUT for r in report.results)
    rest = f", {left:,} left out" if left else ""
    if failed:
        text = f"{failed:,} of {report.compared:,} FAILED{rest} ({took})"
        return paint(text, "bold", "red")
    if not report.compared:
        why = f": {_why(report.results)}" if left else ""
        return paint(f"nothing was verified{rest} ({took}){why}", "bold", "red")
    all_ = "All " if report.compared > 1 else ""
    return paint(f"{all_}{report.compared:,} passed{rest} ({took})", "bold", "green")
