# SPDX-License-Identifier: Apache-2.0
"""Calls of operators on lists of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

UNARY = "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac log log10 log1p log2 neg"
UNARY += " reciprocal round sigmoid sign sin sinh sqrt tan tanh trunc"


def drawn(
    device: str, *shape: int, low: float = 0.1, high: float = 0.9, seed: int = 0
) -> torch.Tensor:
    """The same numbers on every device."""
    generator = torch.Generator().manual_seed(100 * seed + sum(shape) + len(shape))
    return (torch.rand(*shape, generator=generator) * (high - low) + low).to(device)


def lists(device: str, count: int) -> list[list[torch.Tensor]]:
    shapes = ((3,), (2, 5), (4, 1, 3))
    return [[drawn(device, *s, seed=i) for s in shapes] for i in range(count)]


def foreach() -> Iterator[tuple[str, Callable[[str], Any]]]:
    for name in UNARY.split():
        yield f"_foreach_{name}", lambda d, n=name: getattr(torch, f"_foreach_{n}")(*lists(d, 1))
        yield f"_foreach_{name}_", lambda d, n=name: inplace(f"_foreach_{n}_", *lists(d, 1))
    for name in ["add", "sub", "mul", "div", "maximum", "minimum", "pow"]:
        call = getattr(torch, f"_foreach_{name}")
        yield f"_foreach_{name}.list", lambda d, c=call: c(*lists(d, 2))
        yield f"_foreach_{name}.scalar", lambda d, c=call: c(*lists(d, 1), 0.7)
        yield f"_foreach_{name}.scalars", lambda d, c=call: c(*lists(d, 1), [0.5, 2.0, 3.0])
        for what in (lambda d: lists(d, 1)[0], lambda d: 0.7, lambda d: [0.5, 2.0, 3.0]):
            yield (
                f"_foreach_{name}_",
                lambda d, n=name, w=what: inplace(f"_foreach_{n}_", lists(d, 1)[0], w(d)),
            )
    for name in ("addcmul", "addcdiv"):
        call = getattr(torch, f"_foreach_{name}")
        yield f"_foreach_{name}", lambda d, c=call: c(*lists(d, 3), 0.7)
        yield f"_foreach_{name}.list", lambda d, c=call: c(*lists(d, 3), [0.5, 2.0, 3.0])
        yield (
            f"_foreach_{name}.tensor",
            lambda d, c=call: c(*lists(d, 3), torch.tensor([0.5, 2.0, 3.0])),
        )
    yield "_foreach_add.alpha", lambda d: torch._foreach_add(*lists(d, 2), alpha=2)
    yield "_foreach_sub.alpha", lambda d: torch._foreach_sub(*lists(d, 2), alpha=2)
    yield "_foreach_add.tensor", lambda d: torch._foreach_add(lists(d, 1)[0], drawn(d, 1)[0])
    yield "_foreach_mul.tensor", lambda d: torch._foreach_mul(lists(d, 1)[0], drawn(d, 1)[0])
    yield "_foreach_lerp", lambda d: torch._foreach_lerp(*lists(d, 2), 0.3)
    yield "_foreach_lerp.list", lambda d: torch._foreach_lerp(*lists(d, 3))
    yield "_foreach_norm", lambda d: torch._foreach_norm(lists(d, 1)[0])
    yield "_foreach_pow.base", lambda d: torch._foreach_pow(2.0, lists(d, 1)[0])
    yield "_foreach_zero_", lambda d: inplace("_foreach_zero_", lists(d, 1)[0])
    yield "_foreach_copy_", lambda d: inplace("_foreach_copy_", *lists(d, 2))


def inplace(name: str, *arguments: Any) -> Any:
    getattr(torch, name)(*arguments)
    return arguments[0]
