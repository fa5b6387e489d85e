# SPDX-License-Identifier: Apache-2.0
"""How far 16-bit results of the functions that ATen computes are from those in float64:

python -m tests.aten.aten_rounding [FUNCTION ...]    prints the matrix; inf: refused in 16 bits

The exit status is 1 if a result is outside its bound.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import torch
from tests.aten.aten_samples import Library, Refused, Sample, arguments, samples
from torch import Tensor

HALVES = (torch.float16, torch.bfloat16)
# Of a result that one rounding of a value near a tie may miss, with float's own error.
FLOAT_ERRORS = 4


def ulp(x: Tensor, dtype: torch.dtype) -> Tensor:
    """The distance of neighbours of x in the dtype; x is float64."""
    info = torch.finfo(dtype)
    _, exponent = torch.frexp(x.abs().clamp(info.tiny, info.max))
    return torch.ldexp(torch.full_like(x, info.eps), exponent - 1)


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


# Functions that ATen computes in 16 bits and rounds more than once, within this many ulp: numbers
# that are rounded to 16 bits first, and kernels that round a value between.
TWICE = 2.0
ROUNDED_TWICE = {
    "aclnnAddmm", "aclnnAddmv", "aclnnApplyAdamWV2", "aclnnBaddbmm", "aclnnEmbeddingRenorm",
    "aclnnInplaceAddmm", "aclnnInplacePowTensorScalar", "aclnnInplaceRenorm", "aclnnInplaceRsqrt",
    "aclnnLinspace", "aclnnLogSigmoidBackward", "aclnnLogSumExp", "aclnnMseLoss", "aclnnNLLLoss",
    "aclnnNLLLoss2d", "aclnnPowScalarTensor", "aclnnPowTensorScalar", "aclnnRenorm", "aclnnRsqrt",
    "aclnnSigmoidBackward", "aclnnSmoothL1Loss",
}  # fmt: skip
# One rounding; 1 % for values next to a tie.
ONCE = 0.51
# Factorisations and transforms, which neither ATen nor the device has in 16 bits.
FLOAT_ONLY = {
    "aclStft", "aclnnComplex", "aclnnInverse", "aclnnLinalgCholesky", "aclnnLinalgQr",
    "aclnnPolar", "aclnnSlogdet", "aclnnSvd",
}  # fmt: skip


def bound(name: str) -> float:
    return TWICE if name in ROUNDED_TWICE else ONCE


def cells(seed: int, wanted: Collection[str] = ()) -> Iterator[Cell]:
    """Of the wanted functions, or of all."""
    library = Library()
    for sample in samples():
        if sample.has_floats and (not wanted or sample.row.name in wanted):
            for dtype in HALVES:
                yield measure(library, sample, dtype, seed)


def failure(cell: Cell) -> str | None:
    """What is outside its bound or refused, in words."""
    name, title = cell.sample.row.name, f"{cell.dtype} {cell.sample}"
    if cell.worst is None:
        return None if name in FLOAT_ONLY else f"{title}: {cell.sentence}"
    return f"{title}: {cell.worst:.3g} ulp" if cell.worst > bound(name) else None


def too_far(seed: int) -> list[str]:
    return [text for cell in cells(seed) if (text := failure(cell)) is not None]


def main(wanted: Collection[str]) -> int:
    worst: dict[str, list[float]] = {}
    failures = []
    for cell in cells(0, wanted):
        found = worst.setdefault(cell.sample.row.name, [0.0, 0.0])
        place = HALVES.index(cell.dtype)
        found[place] = max(found[place], math.inf if cell.worst is None else cell.worst)
        if (text := failure(cell)) is not None:
            failures.append(text)
    print(f"{'ulp in':44} {'fp16':>9} {'bf16':>9}")
    for name, (half, brain) in sorted(worst.items()):
        print(f"{name:44} {half:9.3g} {brain:9.3g}")
    print(*failures, sep="\n", end="\n" * bool(failures))
    if lacking := set(wanted) - worst.keys():
        print(f"no call with floats: {', '.join(sorted(lacking))}")
    return 1 if failures or lacking else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
