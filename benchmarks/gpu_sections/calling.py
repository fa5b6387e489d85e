# SPDX-License-Identifier: Apache-2.0
"""Calls of rows with arrays of NumPy, computed on the device of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import openaclnn
from openaclnn.reference import judge
from openaclnn.reference.compare import worst_elements
from openaclnn.reference.standards import Standard, verdict
from openaclnn.rows.schema import Op
from openaclnn.rows.table import OPS
from openaclnn.torch import cuda
from openaclnn.triton import group_norm

Array = NDArray[Any]
ROWS = {op.python: op for op in OPS}


def to_torch(x: Array, device: str) -> torch.Tensor:
    x = x.copy(order="C")  # a row in place writes it
    if x.dtype.name == "bfloat16":
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16).to(device)
    return torch.from_numpy(x).to(device)


def to_numpy(x: torch.Tensor) -> Array:
    x = x.detach().cpu()
    if x.dtype == torch.bfloat16:
        import ml_dtypes

        found: Array = x.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
        return found
    return x.numpy()


def tune(**changes: Any) -> None:
    """Divides calls of group norm in another way than the chosen one."""
    group_norm.tuning = group_norm.Tuning(**changes)
    cuda.forget()


def operator(op: Op, device: str) -> Any:
    """torch.ops.openaclnn's; in a dry run on the CPU, the kernel that CUDA tensors would get."""
    return getattr(torch.ops.openaclnn, op.python) if device == "cuda" else cuda.kernel(op)


def placed(x: torch.Tensor, layout: str) -> torch.Tensor:
    if layout == "channels_last" and x.dim() > 2:
        return x.movedim(1, -1).contiguous().movedim(-1, 1)
    if layout == "strided" and x.dim() > 0:
        return torch.stack([x, x], -1)[..., 0]
    if layout == "offset":
        flat = torch.empty(x.numel() + 3, dtype=x.dtype, device=x.device)
        flat[3:] = x.reshape(-1)
        return flat[3:].view(x.shape)
    return x


def call(
    op: Op, inputs: Sequence[Array], attributes: Mapping[str, Any], device: str,
    layout: str = "contiguous",
) -> tuple[Array, ...]:  # fmt: skip
    tensors = {
        p.name: placed(to_torch(x, device), layout)
        for p, x in zip(op.input_tensors, inputs, strict=True)
    }
    values = [
        attributes[p.python_name] if p.role == "attribute" else tensors[p.name]
        for p in op.parameters
        if p.role != "output"
    ]
    if device == "cuda":  # memory that results are likely to get holds NaN
        poison = [torch.full_like(t, float("nan")) for t in tensors.values()]
        del poison
    found = operator(op, device)(*values)
    outputs = found if isinstance(found, tuple | list) else (found,)
    return tuple(to_numpy(y) for y in outputs)


def on_cpu(op: Op, inputs: Sequence[Array], attributes: Mapping[str, Any]) -> tuple[Array, ...]:
    tensors = [x.copy() for x in inputs] if op.inplace else list(inputs)
    named = {p.python_name: x for p, x in zip(op.input_tensors, tensors, strict=True)}
    found = getattr(openaclnn, op.python)(**named, **attributes)
    return found if isinstance(found, tuple) else (found,)


def judged(
    op: Op, inputs: Sequence[Array], attributes: Mapping[str, Any], got: Sequence[Array]
) -> dict[str, Any]:
    """What the judge finds of each output."""
    found: dict[str, Any] = {"passed": True, "other_nans": 0}
    for output in judge.outputs(op, list(inputs), attributes, list(got)):
        verdict_ = verdict(output, Standard())
        found[output.name] = {k: float(v) for k, v in verdict_.figures.items()}
        found["other_nans"] += int(output.other_nans)
        if not verdict_.passed:
            found["passed"] = False
            found["reason"] = f"{output.name}: {verdict_.reason}"[:300]
            found["worst"] = str(worst_elements(output, verdict_, 1))[:400]
    return found


def different_bits(a: Sequence[Array], b: Sequence[Array]) -> list[int]:
    """How many elements of each output differ, NaNs apart."""
    counts = []
    for x, y in zip(a, b, strict=True):
        word = f"u{x.dtype.itemsize}"
        with np.errstate(all="ignore"):
            nans = np.isnan(x.astype(np.float64)) & np.isnan(y.astype(np.float64))
        counts.append(int(((x.view(word) != y.view(word)) & ~nans).sum()))
    return counts
