# SPDX-License-Identifier: Apache-2.0
"""Results of C functions against formulas in float64: 16-bit results are those rounded once, FLOAT
results are within a few of its rounding errors, integers are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.aten.aten_rounding import ONCE, ulp
from tests.aten.aten_samples import ROWS, Library, Sample, arguments
from torch import Tensor

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
# Of the largest result: rounding errors of a short computation in float.
SLACK = 2e-6


@cache
def library() -> Library:
    return Library()


def call(name: str, *values: Any) -> list[Tensor]:
    """Runs both phases; what the function writes."""
    return library()(ROWS[name], list(values))


def grown(run: Callable[[], Any]) -> int:
    """KiB by which resident memory grows at its peak."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    except OSError:
        pytest.skip("the peak of resident memory cannot be reset")
    before = resident("VmRSS")
    run()
    return resident("VmHWM") - before


def resident(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def widened(value: Any) -> Any:
    if isinstance(value, list):
        return [widened(one) for one in value]
    if isinstance(value, Tensor):
        return value.double() if value.is_floating_point() else value.clone()
    return value


def miss(got: Tensor, expected: Tensor, slack: float = SLACK, ulps: float = ONCE) -> str:
    """How far got is off; an empty text where it is not."""
    if list(got.shape) != list(expected.shape):
        return f"shape {list(got.shape)}, not {list(expected.shape)}"
    if not got.is_floating_point():
        return "" if torch.equal(got, expected.to(got.dtype)) else f"{got} is not {expected}"
    wanted, found = expected.double(), got.double()
    same = (wanted == found) | (wanted.isnan() & found.isnan())
    finite = wanted.masked_fill(~wanted.isfinite(), 0)
    scale = finite.abs().max().item() if finite.numel() else 0.0
    allowed = slack * scale
    if got.dtype in (torch.float16, torch.bfloat16):
        allowed = allowed + ulps * ulp(finite, got.dtype)
    off = torch.where(same, torch.zeros_like(wanted), (found - wanted).abs() - allowed)
    off = off.nan_to_num(torch.inf, torch.inf)
    if off.numel() == 0 or off.max() <= 0:
        return ""
    place = off.argmax()
    return f"{found.flatten()[place]} is not {wanted.flatten()[place]}"


def close(got: list[Tensor], expected: list[Tensor], slack: float = SLACK) -> None:
    assert [miss(a, b.detach(), slack) for a, b in zip(got, expected, strict=True)] == [""] * len(
        expected
    )


def misses(sample: Sample, reference: Callable[..., Any], dtype: torch.dtype) -> list[str]:
    """What differs between a sample call and its reference, which takes the arguments that are
    read, in their order.
    """
    row = sample.row
    values = arguments(sample, dtype, dtype)
    in_place = row.inplace or (bool(row.given[0].written) and reads_first(row.name))
    read = [
        widened(value)
        for i, (p, value) in enumerate(zip(row.given, values, strict=True))
        if not p.written or (in_place and i == 0)
    ]
    got = library()(row, values)
    expected = reference(*read)
    if isinstance(expected, Tensor):
        expected = [expected]
    assert len(got) == len(expected)
    pairs = zip(got, expected, strict=True)
    return [f"{dtype} {sample}: {text}" for a, b in pairs if (text := miss(a, b))]


def reads_first(name: str) -> bool:
    """Whether the first parameter, which is written, is read too."""
    return name.startswith(("aclnnInplace", "aclnnTf")) or name.endswith("Inplace")
