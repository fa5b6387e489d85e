# SPDX-License-Identifier: Apache-2.0
"""Every function that ATen computes has the same results whatever the strides of its inputs: on
broadcast, transposed and gapped views against contiguous ones, and where in-place rows read what
they write.
"""

from __future__ import annotations

from collections.abc import Callable

import aten_support  # noqa: F401  (skips without torch and a compiler)
import pytest
import torch
from aten_samples import Library, Refused, Sample, arguments, samples
from torch import Tensor


def transposed(x: Tensor) -> Tensor:
    return x.movedim(0, -1).contiguous().movedim(-1, 0) if x.dim() > 1 else x


def gapped(x: Tensor) -> Tensor:
    """Every second element of memory that begins before it."""
    room = torch.zeros([3, *x.shape, 2], dtype=x.dtype)[1, ..., 0]
    return room.copy_(x)


def broadcast(dim: int) -> Callable[[Tensor], Tensor]:
    def made(x: Tensor) -> Tensor:
        if x.dim() == 0 or x.numel() == 0 or x.dtype == torch.bool:
            return x
        return x.narrow(dim, 0, 1).expand_as(x)

    return made


VIEWS = {
    "transposed": (transposed, transposed), "gapped": (gapped, gapped),
    "broadcast first": (broadcast(0), lambda x: x), "broadcast last": (broadcast(-1), lambda x: x),
}  # fmt: skip


def near(a: Tensor, b: Tensor) -> bool:
    """Layouts may change the order of sums."""
    if not a.dtype.is_floating_point and not a.dtype.is_complex:
        return torch.equal(a, b)
    scale = b.abs()[b.isfinite()].max().item() if b.isfinite().any() else 1.0
    return torch.allclose(a, b, rtol=1e-4, atol=1e-5 * max(scale, 1e-30), equal_nan=True)


def viewed(sample: Sample, inputs, outputs, dtype=torch.float32, contiguous: bool = False) -> list:
    written = {
        i for i, p in enumerate(sample.row.given) if p.written or (sample.row.inplace and i == 0)
    }
    values = arguments(sample, dtype, dtype)

    def made(i: int, value):
        if isinstance(value, list) and value and isinstance(value[0], Tensor):
            return [made(i, one) for one in value]
        if not isinstance(value, Tensor):
            return value
        if i in written:
            return value if contiguous else outputs(value)
        return inputs(value).contiguous() if contiguous else inputs(value)

    return [made(i, value) for i, value in enumerate(values)]
