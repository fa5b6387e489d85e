# SPDX-License-Identifier: Apache-2.0
"""Sequences that attend, with the results and gradients that are expected of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import torch
from tests.aten.attention_reference import FAR, attention, bits, places, visible

Tensor = torch.Tensor
SMALL = torch.ones(2048, 2048, dtype=torch.bool).triu(1)  # that of the modes that do not read it


@dataclass
class Problem:
    """Sequences of rows and keys; one pair is dense."""

    rows: tuple[int, ...]
    keys: tuple[int, ...]
    heads: int = 4
    kv_heads: int = 2
    size: int = 16
    value_size: int = 8
    rope_size: int = 0
    dtype: torch.dtype = torch.float32
    scale: float = 0.3
    mode: int = 0
    before: int = FAR
    after: int = FAR
    mask: Tensor | None = None
    prefix: list[int] | None = None
    pse: Tensor | None = None
    pse_type: int = 1
    starts: tuple[int, int] = (0, 0)
    drop: Tensor | None = None
    keep: float = 1.0
    sink: Tensor | None = None
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        random = torch.Generator().manual_seed(5)
        shapes = {
            "q": (sum(self.rows), self.heads, self.size),
            "k": (sum(self.keys), self.kv_heads, self.size),
            "v": (sum(self.keys), self.kv_heads, self.value_size),
            "dy": (sum(self.rows), self.heads, self.value_size),
            "q_rope": (sum(self.rows), self.heads, self.rope_size),
            "k_rope": (sum(self.keys), self.kv_heads, self.rope_size),
        }
        for name, shape in shapes.items():
            drawn = torch.rand(shape, generator=random) * 2 - 1
            self.tensors.setdefault(name, drawn.to(self.dtype))

    @property
    def ends(self) -> tuple[list[int], list[int]]:
        return [torch.tensor(x).cumsum(0).tolist() for x in (self.rows, self.keys)]

    def bias(self, b: int, rows: int, keys: int) -> Tensor | None:
        if self.pse is None:
            return None
        pse = self.pse.double()
        i, j = places(rows, keys)
        if self.pse_type >= 2:
            d = ((i + self.starts[0]) - (j + self.starts[1])).abs().double()
            slopes = pse if pse.dim() == 1 else pse[b]
            return -slopes[:, None, None] * (d if self.pse_type == 2 else d.sqrt())
        own = pse[b if pse.shape[0] > 1 else 0]
        if own.shape[1] == 1024 and own.shape[2] != rows:
            width = own.shape[2]
            return own[:, -1][:, (j - i + width - 1).clamp(0, width - 1)]
        return own

    def seen(self, b: int, rows: int, keys: int) -> Tensor | None:
        if self.mask is None:
            return None
        mode, last = self.mode, len(self.rows) - 1
        if mode == 7:
            mode = 4 if b == last else 3
        elif mode == 8:
            mode = 4 if b == 0 else 2
        mask = self.mask
        if mask.dim() == 4:
            mask = mask[b if mask.shape[0] > 1 else 0]
        elif mode in (0, 1, 5):
            mask = mask[:rows, :keys]
        return visible(mode, rows, keys, before=self.before, after=self.after, mask=mask,
                       prefix=self.prefix[b] if self.prefix else 0)  # fmt: skip

    def expected(self) -> dict[str, Any]:
        """Results of each sequence, and gradients by autograd."""
        t = {n: x.double().requires_grad_() for n, x in self.tensors.items()}
        sink = None if self.sink is None else self.sink.double().requires_grad_()
        outs, most, total = [], [], []
        row = key = bit = 0
        for b, (rows, keys) in enumerate(zip(self.rows, self.keys, strict=True)):

            def part(name: str, first: int, count: int) -> Tensor:
                x = t[name]
                if name in "qk" and self.rope_size:
                    x = torch.cat([x, t[f"{name}_rope"]], -1)
                return x[first : first + count].transpose(0, 1)

            kept = None
            if self.drop is not None:
                kept = bits(self.drop, self.heads, rows, keys, first=bit)
            y, m, z = attention(
                part("q", row, rows), part("k", key, keys), part("v", key, keys),
                scale=self.scale, seen=self.seen(b, rows, keys), bias=self.bias(b, rows, keys),
                bias_first=self.pse_type == 1, kept=kept, keep=self.keep, sink=sink,
            )  # fmt: skip
            outs.append(y.transpose(0, 1))
            most.append(m)
            total.append(z)
            row, key, bit = row + rows, key + keys, bit + self.heads * rows * keys
        out = torch.cat(outs)
        out.backward(t["dy"].detach())
        grads = {f"d{n}": x.grad for n, x in t.items() if n != "dy"}
        return {"out": out.detach(), "most": most, "total": total, **grads,
                "dsink": None if sink is None else sink.grad}  # fmt: skip

    def attributes(self, layout: str) -> list[Any]:
        return [self.scale, self.keep, self.before, self.after, self.heads, layout, 0, self.mode]
