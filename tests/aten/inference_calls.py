# SPDX-License-Identifier: Apache-2.0
"""Calls of FusedInferAttentionScore with NULL for what is not given, and what they answer."""

from __future__ import annotations

from typing import Any

from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import ROWS, torch
from tests.aten.attention_reference import attention
from tests.aten.golden import miss
from tests.aten.quantised_support import call

Tensor = torch.Tensor
SMALL = torch.ones(2048, 2048, dtype=torch.bool).triu(1)  # that of the modes that do not read it
B, N, KV, S, L, D = 2, 4, 2, 5, 9, 16
HALF = torch.float16
DEFAULTS: dict[str, Any] = {
    "numHeads": N, "scaleValue": 0.25, "preTokens": 2147483647, "nextTokens": 2147483647,
    "inputLayout": "BNSD", "numKeyValueHeads": KV, "sparseMode": 0, "innerPrecise": 0,
    "blockSize": 0, "antiquantMode": 0, "softmaxLseFlag": True, "keyAntiquantMode": 0,
    "valueAntiquantMode": 0, "queryQuantMode": 0, "pseType": 0,
}  # fmt: skip


def drawn(*shape: int, seed: int = 1, dtype: torch.dtype = HALF) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return (torch.rand(shape, generator=random) * 2 - 1).to(dtype)


def infer(version: int = 4, *, out: Tensor, lse: Tensor | None = None, **given: Any):
    """Calls FusedInferAttentionScore with NULL for what is not given."""
    name = f"aclnnFusedInferAttentionScore{'' if version == 1 else f'V{version}'}"
    given = {**DEFAULTS, **given, "attentionOut": out, "softmaxLse": lse}
    names = [p.name for p in ROWS[name].given]
    assert given.keys() - DEFAULTS.keys() <= set(names)
    call(name, *(given.get(n) for n in names))
    return out, lse


def empty(*shape: int, dtype: torch.dtype = HALF) -> Tensor:
    return torch.full(shape, 77, dtype=dtype)


def expected(q, k, v, *, rows=None, keys=None, scale=0.25, **options):
    """[N, S, D] of one batch, of the first rows and keys: the result and log-sum-exp."""
    rows = q.shape[1] if rows is None else rows
    keys = k.shape[1] if keys is None else keys
    out = torch.zeros(q.shape[0], q.shape[1], v.shape[2], dtype=torch.float64)
    lse = torch.full(q.shape[:2], torch.inf, dtype=torch.float64)
    if rows == 0 or keys == 0:
        return out, lse
    y, most, total = attention(
        q.double()[:, :rows], k.double()[:, :keys], v.double()[:, :keys], scale=scale, **options
    )
    out[:, :rows] = y
    lse[:, :rows] = torch.where(total > 0, most + total.log(), torch.inf)
    return out, lse


def both(results):
    return torch.stack([r[0] for r in results]), torch.stack([r[1] for r in results])[..., None]


def agree(got: tuple[Tensor, Tensor | None], wanted: tuple[Tensor, Tensor], slack=3e-6) -> None:
    assert miss(got[0], wanted[0], slack) == ""
    if got[1] is not None:
        assert miss(got[1], wanted[1], 1e-5) == ""


Q, K, V = drawn(B, N, S, D), drawn(B, KV, L, D, seed=2), drawn(B, KV, L, 8, seed=3)
