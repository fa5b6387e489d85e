# SPDX-License-Identifier: Apache-2.0
"""How far 16-bit results of the functions that ATen computes are from those in float64:

    python tests/aten_rounding.py [FUNCTION]    prints the matrix
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import torch
from aten_samples import Library, Refused, Sample, arguments, samples
from torch import Tensor

HALVES = (torch.float16, torch.bfloat16)
# Of a result that one rounding of a value near a tie may miss, with float's own error.
FLOAT_ERRORS = 4


def ulp(x: Tensor, dtype: torch.dtype) -> Tensor:
    """The distance of neighbours of x in the dtype; x is float64."""
    info = torch.finfo(dtype)
    _, exponent = torch.frexp(x.abs().clamp(info.tiny, info.max))
    return torch.ldexp(torch.tensor(info.eps, dtype=torch.float64), exponent - 1)


def error(got: Tensor, single: Tensor, double: Tensor) -> float:
    """In ulp of the result, past what the result in float is off by: sums that cancel have a
    float error too.
    """
    dtype = got.dtype
    expected = double.to(torch.float64)
    rounded = expected.to(torch.float32).to(dtype)
    same = (rounded == got) | (rounded.isnan() & got.isnan())
    slack = FLOAT_ERRORS * (single.to(torch.float64) - expected).abs().nan_to_num(0, 0, 0)
    off = ((got.to(torch.float64) - expected).abs() - slack).clamp(min=0) / ulp(expected, dtype)
    off = torch.where(same, torch.where(off.isfinite(), off, 0), off)
    return off.nan_to_num(torch.inf, torch.inf).max().item() if off.numel() else 0.0


@dataclass
class Cell:
    sample: Sample
    dtype: torch.dtype
    worst: float | None  # in ulp; None: refused
    sentence: str = ""


def measure(library: Library, sample: Sample, dtype: torch.dtype, seed: int = 0) -> Cell:
    row = sample.row
    try:
        single = library(row, arguments(sample, torch.float32, dtype, seed))
    except Refused as refusal:
        return Cell(sample, dtype, None, f"float: {refusal}")
    try:
        double = library(row, arguments(sample, torch.float64, dtype, seed))
    except Refused:
        double = single
    try:
        got = library(row, arguments(sample, dtype, dtype, seed))
    except Refused as refusal:
        return Cell(sample, dtype, None, str(refusal))
    worst = 0.0
    for one, two, three in zip(got, single, double, strict=True):
        if one.dtype == dtype:
            worst = max(worst, error(one, two, three))
        elif not one.dtype.is_floating_point and not one.dtype.is_complex:
            worst = max(worst, 0.0 if torch.equal(one, two) else torch.inf)
    return Cell(sample, dtype, worst)


def main(wanted: str | None) -> None:
    library = Library()
    cells: dict[str, dict[torch.dtype, Cell]] = {}
    for sample in samples():
        if wanted not in (None, sample.row.name) or not sample.has_floats:
            continue
        for dtype in HALVES:
            cell = measure(library, sample, dtype)
            kept = cells.setdefault(sample.row.name, {}).get(dtype)
            if kept is None or (kept.worst is not None and (cell.worst is None or cell.worst > kept.worst)):
                cells[sample.row.name][dtype] = cell
    for name, found in sorted(cells.items()):
        words = [
            "refused" if c.worst is None else f"{c.worst:.3g}" for c in (found[d] for d in HALVES)
        ]
        sentence = next((c.sentence for c in found.values() if c.sentence), "")
        if wanted is not None:
            print(cells)
        print(f"{name:44} {words[0]:>9} {words[1]:>9} {found[HALVES[0]].sample.row.computed} {sentence}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
