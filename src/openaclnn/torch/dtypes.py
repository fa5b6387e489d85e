# SPDX-License-Identifier: Apache-2.0
"""The dtypes of the rows as PyTorch names them."""

from __future__ import annotations

import functools

import torch

from ..rows.dtypes import DTYPES

TORCH: dict[str, torch.dtype] = {n: getattr(torch, d.python) for n, d in DTYPES.items()}
NAMES = {dtype: name for name, dtype in TORCH.items()}


@functools.cache
def plain(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
