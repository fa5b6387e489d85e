# SPDX-License-Identifier: Apache-2.0
"""Meta functions by rule: a result that the schema calls an argument is that argument; the shapes
and dtypes of others are those of a run on zeros. Sizes become constants of the compiled graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def _written(operator: Any) -> list[int | str | None]:
    """For each result, the place or name of the argument that it is; None: a new tensor."""
    owners: dict[str, int | str] = {}
    for place, argument in enumerate(operator._schema.arguments):
        if argument.alias_info is not None:
            for alias in argument.alias_info.before_set:
                owners[alias] = argument.name if argument.kwarg_only else place
    return [
        next((owners.get(alias) for alias in result.alias_info.before_set), None)
        if result.alias_info is not None
        else None
        for result in operator._schema.returns
    ]


def _on_zeros(operator: Any, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """The results of a run on zeros, as tensors of the device."""
    import torch
    from torch.utils import _pytree as tree

    def real(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            size, stride = map(int, value.shape), map(int, value.stride())
            made = torch.empty_strided(tuple(size), tuple(stride), dtype=value.dtype, device="npu")
            return made.zero_()
        kinds = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
        return kinds[type(value)](value) if type(value) in kinds else value

    if torch.npu.is_current_stream_capturing():
        raise NotImplementedError(
            f"{operator} cannot be traced while a graph is captured: it has no meta function and "
            "would run; call the compiled function once before the capture"
        )

    def run() -> Any:
        torch.npu.set_device(device)
        # Here, not in the caller's thread: torch_npu 2.9 clones the state, which tracing refuses.
        with torch.random.fork_rng(device_type="npu"), torch.no_grad():
            arguments, options = tree.tree_map(real, (list(given), dict(named)))
            found = operator(*arguments, **options)
            torch.npu.synchronize()  # the queue of torch_npu reports a refusal here
            return found

    device = torch.npu.current_device()
    try:
        # Another thread: where the caller holds Python's lock, torch_npu loses it with a refusal.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(run).result()
    except RuntimeError as error:
        raise NotImplementedError(
            f"{operator} cannot be traced: it has no meta function, and with zeros of these "
            f"shapes it fails: {error}; call it outside of the compiled function "
            "(torch.compiler.disable)"
        ) from error


def of(operator: Any) -> Callable[..., Any]:
    written = _written(operator)

    def meta(*given: Any, **named: Any) -> Any:
        import torch
        from torch.utils import _pytree as tree

        results: Any = [None] * len(written)
        if None in written:
            results = _on_zeros(operator, given, named)
            results = [results] if len(written) == 1 else list(results)
        first = next((x for x in tree.tree_leaves((given, named)) if hasattr(x, "device")), None)
        device = "npu" if first is None else first.device

        def like(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            return torch.empty_strided(
                value.shape, value.stride(), dtype=value.dtype, device=device
            )

        found = [
            tree.tree_map(like, result)
            if owner is None
            else (named[owner] if isinstance(owner, str) else given[owner])
            for result, owner in zip(results, written, strict=True)
        ]
        return None if not found else found[0] if len(found) == 1 else tuple(found)

    return meta
