# SPDX-License-Identifier: Apache-2.0
"""The rows in the language of PyTorch's operator schemas.

>>> schema(elu_backward_row)
'elu_backward(Tensor grad_output, Scalar alpha, …, Tensor self_or_result) -> Tensor'
"""

from __future__ import annotations

from ..rows.calling import argument_name, given, made
from ..rows.schema import Op, Parameter

NAMESPACE = "openaclnn"
_TYPES = {
    "scalar": "Scalar",
    "double": "float",
    "int64": "int",
    "bool": "bool",
    "text": "str?",
}


def _argument(p: Parameter) -> str:
    if p.kind == "tensor":
        kind = "Tensor(a!)" if p.role == "inout" else "Tensor"
        return f"{kind}{'' if p.required else '?'} {p.python_name}"
    default = f"={p.default}" if p.has_default else ""
    return f"{_TYPES[p.kind]} {p.python_name}{default}"


def _returns(types: list[str]) -> str:
    return types[0] if len(types) == 1 else f"({', '.join(types)})"


def schema(op: Op) -> str:
    arguments = ", ".join(map(_argument, given(op)))
    types = ["Tensor(a!)" if p.role == "inout" else "Tensor" for p in op.outputs]
    return f"{op.python}({arguments}) -> {_returns(types)}"


def out_schema(op: Op) -> str | None:
    """The overload that writes into tensors of the caller; an in-place row has none."""
    if op.inplace:
        return None
    marked = [f"Tensor({chr(ord('a') + i)}!)" for i in range(len(made(op)))]
    outs = [f"{t} {argument_name(op, p)}" for t, p in zip(marked, made(op), strict=True)]
    arguments = ", ".join([*map(_argument, given(op)), "*", *outs])
    return f"{op.python}.out({arguments}) -> {_returns(marked)}"
