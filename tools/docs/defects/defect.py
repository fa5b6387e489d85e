# SPDX-License-Identifier: Apache-2.0
"""A defect of another library: its result, ours and the true one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import torch

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
class Defect:
    title: str
    text: str
    lines: list[Line]
    note: str = ""


def number(x: Any) -> str:
    return f"{float(x):.6g}"


def error_text(x: Any) -> str:
    return f"{float(x):.1e}"


def bf16(x: Any) -> Any:
    return np.array(x, ml_dtypes.bfloat16)


def to_torch(x: Any) -> torch.Tensor:
    if x.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)
