# SPDX-License-Identifier: Apache-2.0
"""Attention of one sequence in float64, with every score written out."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

FAR = 1 << 31  # a band as wide as all sequences


def places(rows: int, keys: int) -> tuple[Tensor, Tensor]:
    return torch.arange(rows)[:, None], torch.arange(keys)[None, :]


def visible(mode: int, rows: int, keys: int, *, before: int = FAR, after: int = FAR,
            mask: Tensor | None = None, prefix: int = 0) -> Tensor:  # fmt: skip
    """The pairs that count in a mode of one sequence, [S, L] or [N, S, L]."""
    i, j = places(rows, keys)
    shift = keys - rows
    everything = torch.ones(rows, keys, dtype=torch.bool)
    if mode in (0, 1, 5):
        seen = everything if mask is None else ~mask.bool()
        return seen & (i - j <= before) & (j - i <= after) if mode == 0 else seen
    if mode == 2:
        return (j <= i) & everything
    if mode == 3:
        return (j <= i + shift) & everything
    if mode == 4:
        return (i + shift - j <= before) & (j - i - shift <= after)
    if mode == 6:
        return (j <= i + shift) | (j < prefix)
    raise AssertionError(mode)


def attention(q: Tensor, k: Tensor, v: Tensor, *, scale: float, seen: Tensor | None = None,
              bias: Tensor | None = None, bias_first: bool = False, kept: Tensor | None = None,
              keep: float = 1.0, sink: Tensor | None = None):  # fmt: skip
    """q [N, S, D], k and v [K, L, D]: the result, the row maxima, the sums, log-sum-exp."""
    groups = q.shape[0] // k.shape[0]
    k, v = k.repeat_interleave(groups, 0), v.repeat_interleave(groups, 0)
    x = q @ k.mT
    if bias is not None and bias_first:
        x = x + bias
    x = x * scale
    if bias is not None and not bias_first:
        x = x + bias
    if seen is not None:
        x = x.masked_fill(~seen, -torch.inf)
    with_sink = x
    if sink is not None:
        with_sink = torch.cat([x, sink[:, None, None].expand(*x.shape[:2], 1)], -1)
    empty = (with_sink == -torch.inf).all(-1, keepdim=True)
    p = torch.softmax(with_sink.masked_fill(empty, 0), -1).masked_fill(empty, 0)
    p = p[..., : x.shape[-1]]
    if kept is not None:
        p = p * kept / keep
    most = with_sink.detach().amax(-1)
    total = (with_sink.detach() - most[..., None].nan_to_num(0, 0, 0)).exp().sum(-1)
    total = total.masked_fill(empty[..., 0], 0)
    most = most.masked_fill(empty[..., 0], torch.finfo(torch.float32).min)
    return p @ v, most, total


def bits(mask: Tensor, *shape: int, first: int = 0) -> Tensor:
    """Of a dropout mask, from bit `first` on."""
    count = int(np.prod(shape))
    unpacked = np.unpackbits(mask.numpy(), bitorder="little")[first : first + count]
    return torch.from_numpy(unpacked.astype("d")).reshape(shape)
