# SPDX-License-Identifier: Apache-2.0
"""A defect of torch in the table of openaclnn.verify, demonstrated: its result, ours and the true
one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import torch

from openaclnn.bench import cases

SEED = 20240607


@dataclass
class Line:
    """One row of a table; `wrong` says whether torch is, `right` whether we are."""

    case: str
    torch: str
    ours: str
    true: str
    wrong: bool
    right: bool


@dataclass
class Demonstration:
    """`text` says what the lines show."""

    lines: list[Line]
    text: str = ""
    note: str = ""


def number(x: Any) -> str:
    return f"{float(x):.6g}"


def error_text(x: Any) -> str:
    return f"{float(x):.1e}"


def bf16(x: Any) -> Any:
    return np.array(x, ml_dtypes.bfloat16)


def to_torch(x: Any) -> Any:
    return cases.to_torch(torch, x)
