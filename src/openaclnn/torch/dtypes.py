# SPDX-License-Identifier: Apache-2.0
"""The dtypes of the rows as PyTorch names them."""

from __future__ import annotations

import torch

TORCH = {
    "FLOAT": torch.float32,
    "FLOAT16": torch.float16,
    "BFLOAT16": torch.bfloat16,
    "DOUBLE": torch.float64,
}
NAMES = {dtype: name for name, dtype in TORCH.items()}


def plain(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
