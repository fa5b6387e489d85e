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


def listed(dtypes: tuple[str, ...]) -> str:
    """ "float32, float16 or bfloat16" """
    names = [plain(TORCH[d]) for d in dtypes]
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""
