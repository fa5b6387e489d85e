# SPDX-License-Identifier: Apache-2.0
"""Jagged nested tensors are a class of Python, whose own dispatch ends with the bare name of an
operator that it does not know. They are refused as strided ones are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..rows.table import OPS
from .schemas import NAMESPACE, out_schema


def _refuse(
    _: Any, overload: Any, types: Any, given: Sequence[Any], named: Mapping[str, Any] | None = None
) -> None:
    parameters = [p.name for p in overload._schema.arguments]
    values = dict(zip(parameters, given, strict=False)) | dict(named or {})
    name = next(k for k, x in values.items() if isinstance(x, torch.Tensor) and x.is_nested)
    operator = overload._schema.name.partition("::")[2]
    raise ValueError(
        f"{operator}: {name} must be a dense tensor in CPU or CUDA memory, but is a nested one"
    )


def refuse_nested() -> None:
    from torch.nested._internal.nested_tensor import NestedTensor

    for op in OPS:
        for overload in ("", ".out")[: 1 + (out_schema(op) is not None)]:
            name = f"{NAMESPACE}::{op.python}{overload}"
            torch.library.register_torch_dispatch(name, NestedTensor, _refuse)
