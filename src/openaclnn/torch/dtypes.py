# SPDX-License-Identifier: Apache-2.0
"""The dtypes of the rows as PyTorch names them."""

from __future__ import annotations

import torch

from ..rows.calling import DTYPES

TORCH: dict[str, torch.dtype] = {d: getattr(torch, name) for d, name in DTYPES.items()}
NAMES = {dtype: name for name, dtype in TORCH.items()}


def plain(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
