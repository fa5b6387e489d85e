# SPDX-License-Identifier: Apache-2.0
"""What `compare` found, as data, as a report for a terminal and for JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..report.text_table import columns
from ..rows.catalogue import attributes_text
from ..rows.schema import Op
from .evaluation import dtype_name
from .judge import Output
from .standards import Standard
from .verdicts import Verdict

BAR = 40  # the longest


@dataclass(frozen=True)
class Element:
    """One element: where it is, what came in, what should have come out and what did."""

    index: tuple[int, ...]
    inputs: Mapping[str, tuple[float, str]]  # value and bits; of element-wise rows
    expected: float  # not rounded
    nearest: tuple[float, str]  # rounded to the dtype of the result
    got: tuple[float, str]
    ulp: float


@dataclass(frozen=True)
class Compared:
    """One output of the operator."""

    output: Output
    verdict: Verdict
    histogram: Mapping[str, int]  # by LABELS: how many elements
    mismatches: Mapping[str, int]
    worst: tuple[Element, ...]
    common: str  # what the wrong elements have in common: a clause, or ""


@dataclass(frozen=True)
class Comparison:
    """What `compare` found. It is true when there were elements and the standard is kept; its text
    is a report."""

    op: Op
    attributes: Mapping[str, Any]
    standard: Standard
    outputs: tuple[Compared, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to compare."""
        return not any(compared.output.got.size for compared in self.outputs)

    @property
    def passed(self) -> bool:
        return not self.is_empty and all(compared.verdict.passed for compared in self.outputs)

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        return text(self)

    def as_data(self) -> dict[str, Any]:
        """Numbers, strings, lists and dicts; NaN and infinities are strings, as JSON needs it."""
        return data(self)


def text(found: Comparison) -> str:
    """The report; the first line is the verdict."""
    verdict = "NOTHING COMPARED" if found.is_empty else _verdict(found.passed)
    lines = [f"{verdict} {found.op.name}, {described(found.standard)}"]
    if attributes := attributes_text(found.op, found.attributes):
        lines.append(f"  with {attributes}")
    for compared in found.outputs:
        lines += ["", *_output_lines(compared)]
    return "\n".join(lines)


def _verdict(passed: bool) -> str:
    return "PASSED" if passed else "FAILED"


def described(standard: Standard) -> str:
    """The standard in words."""
    if standard.name == "ours":
        own = standard.ulp is None
        return "the accuracy that openaclnn promises" if own else f"at most {standard.ulp:g} ulp"
    if standard.name == "peer":
        return f"at most {standard.ulp or 0:g} ulp from the benchmark"
    level = f", {standard.level_used}" if standard.name in ("double", "either") else ""
    return {
        "float": "the accuracy of computing in FLOAT",
        "single": "single benchmark",
        "double": "double benchmark",
        "either": "single or double benchmark",
    }.get(standard.name, standard.name) + level


def _output_lines(compared: Compared) -> list[str]:
    output, found = compared.output, compared.verdict
    shape = list(output.got.shape)
    verdict = f"{_verdict(found.passed)}: " if output.got.size else ""
    lines = [f"{output.name} {shape} {output.dtype}: {verdict}{found.reason}"]
    given = {dtype_name(x.dtype) for x in output.inputs}
    if given and output.dtype not in given and output.dtype == "DOUBLE":
        kinds = " and ".join(sorted(given))
        lines.append(
            f"  {output.name} is DOUBLE, but the inputs are {kinds}: if the kernel's output is "
            "not, round before comparing, for example mine.astype(np.float32)"
        )
    lines += [f"  {compared.common}"] if compared.common else []
    if output.got.size:
        lines += _histogram_lines(compared)
    for kind, count in compared.mismatches.items():
        lines.append(f"  {count:,} x {kind}")
    if output.other_nans:
        lines.append(f"  {output.other_nans:,} NaNs have other bits than ours, which is allowed")
    if compared.worst:
        lines += ["  worst elements", *_worst_lines(compared)]
    return lines


def _histogram_lines(compared: Compared) -> list[str]:
    """The distances that there are, with a bar as long as the share."""
    total = compared.output.got.size
    rows = [
        [
            label,
            f"{count:,}",
            f"{100 * count / total:.3g} %",
            "#" * max(1, round(BAR * count / total)),
        ]
        for label, count in compared.histogram.items()
    ]
    head = f"  distance in ulp of {compared.output.unit}"
    return [head, *(f"    {line}" for line in columns(rows, "lrrl"))]


def _worst_lines(compared: Compared) -> list[str]:
    names = list(compared.worst[0].inputs)
    rows = [["index", *names, "expected", "got", "ulp"]]
    for element in compared.worst:
        given = [pair(*element.inputs[name]) for name in names]
        index = str(list(element.index))
        expected, got = pair(*element.nearest), pair(*element.got)
        rows.append([index, *given, expected, got, f"{element.ulp:.4g}"])
    return [f"    {line}" for line in columns(rows, "l" * (len(names) + 3) + "r")]


def pair(value: float, bits: str) -> str:
    """-1.5 (0xbe00), with as many digits as distinguish neighbours."""
    digits = {4: 3, 6: 6, 10: 9, 18: 17}[len(bits)]
    return f"{value:.{digits}g} ({bits})"


# ---- data ----


def number(value: Any) -> Any:
    """A number that JSON has; NaN and infinities as strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def element_data(element: Element) -> dict[str, Any]:
    def both(found: tuple[float, str]) -> dict[str, Any]:
        return {"value": number(found[0]), "bits": found[1]}

    return {
        "index": list(element.index),
        "inputs": {name: both(found) for name, found in element.inputs.items()},
        "expected": number(element.expected),
        "nearest": both(element.nearest),
        "got": both(element.got),
        "ulp": number(element.ulp),
    }


def _output_data(compared: Compared) -> dict[str, Any]:
    output: Output = compared.output
    return {
        "name": output.name,
        "dtype": output.dtype,
        "shape": list(output.got.shape),
        "passed": compared.verdict.passed and output.got.size > 0,
        "reason": compared.verdict.reason,
        "figures": {name: number(value) for name, value in compared.verdict.figures.items()},
        "limits": {name: number(value) for name, value in compared.verdict.limits.items()},
        "wrong": int(compared.verdict.wrong.sum()),
        "common": compared.common,
        "unit": output.unit,
        "histogram": dict(compared.histogram),
        "mismatches": dict(compared.mismatches),
        "other_nans": output.other_nans,
        "worst": [element_data(element) for element in compared.worst],
    }


def data(found: Comparison) -> dict[str, Any]:
    return {
        "schema": "openaclnn-compare-1",
        "operator": found.op.name,
        "attributes": {name: number(value) for name, value in found.attributes.items()},
        "standard": found.standard.name,
        "passed": found.passed,
        "outputs": [_output_data(compared) for compared in found.outputs],
    }
