# SPDX-License-Identifier: Apache-2.0
"""Shapes and dtypes of results, for operators of torch_npu without a meta function, which tracing
needs. An operator to which torch_npu gives one keeps it. Those of METAS trace symbolic shapes too;
derived_metas.py has the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

_KNOWS_RESULTS = ("Meta", "CompositeImplicitAutograd")  # dispatch keys


def _has_kernel(name: str, key: str) -> bool:
    import torch

    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(name, key))


def _like(*places: int) -> Callable[..., Any]:
    """Results like these arguments."""

    def meta(*given: Any, **named: Any) -> Any:
        import torch

        found = tuple(torch.empty_like(given[i]) for i in places)
        return found if len(found) > 1 else found[0]

    return meta


def _sized(place: int) -> Callable[..., Any]:
    def meta(input: Any, *given: Any) -> Any:
        return input.new_empty(given[place - 1])

    return meta


def _pad(input: Any, paddings: Sequence[int]) -> Any:
    pairs = zip(paddings[::2], paddings[1::2], strict=True)
    return input.new_empty([n + a + b for n, (a, b) in zip(input.shape, pairs, strict=True)])


def _extreme(input: Any, dim: int, keepdim: bool = False) -> Any:
    import torch

    values, _ = torch.max(input, dim, keepdim)
    return torch.empty_like(values), torch.empty_like(values, dtype=torch.int32)


def _packed(weight: Any, inner_k_tiles: int = 0) -> Any:
    return weight.new_empty((*weight.shape[:-1], weight.shape[-1] // 8))


def _sample(logits: Any, *given: Any, **named: Any) -> Any:
    import torch

    chosen = logits.new_empty(logits.shape[:-1], dtype=torch.int64)
    return chosen, torch.empty_like(logits, dtype=torch.float32)


METAS: dict[str, Callable[..., Any]] = {
    "npu_mish": _like(0),
    "npu_format_cast": _like(0),
    "npu_format_cast.Tensor": _like(0),
    "npu_renorm_backward": _like(1),
    "npu_binary_cross_entropy_with_logits_backward": _like(1),
    "kl_div_target_backward": _like(2),
    "repeat_interleave_backward_tensor": _like(1),
    "npu_group_norm_swish_grad": _like(1, 3, 4),
    "npu_broadcast": _sized(1),
    "npu_slice": _sized(2),
    "npu_gather_sparse_index_backward": _sized(1),
    "npu_pad": _pad,
    "npu_max.dim": _extreme,
    "npu_min.dim": _extreme,
    "npu_convert_weight_to_int4pack": _packed,
    "npu_top_k_top_p_sample": _sample,
}

_libraries: list[Any] = []  # a registration ends with its library


def register() -> None:
    import torch

    from . import derived_metas

    own = "torch_npu.op_plugin.meta._fake_registrations"
    if find_spec(own):  # 2.8.0.post2 has none
        import_module(own)  # before ours
    library = torch.library.Library("npu", "IMPL")
    for full in torch._C._dispatch_get_all_op_names():
        space, _, name = full.partition("::")
        if space != "npu" or any(map(partial(_has_kernel, full), _KNOWS_RESULTS)):
            continue
        base, _, overload = name.partition(".")
        operator = getattr(getattr(torch.ops.npu, base), overload or "default")
        meta = METAS.get(name) or derived_metas.of(operator)
        torch.library.register_fake(full, meta, lib=library)
    _libraries.append(library)
