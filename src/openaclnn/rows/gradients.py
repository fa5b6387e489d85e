# SPDX-License-Identifier: Apache-2.0
"""The gradients of the rows, looked up: where each parameter of a gradient row takes its value.

>>> [(s.parameter.name, s.kind, s.name) for s in sources(elu)]
[("gradOutput", "incoming", "out"), ("alpha", "value", "alpha"), …,
 ("isResult", "constant", ""), ("selfOrResult", "value", "self"), ("gradInput", "made", "self")]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .calling import PYTHON_NAMES, listed
from .schema import Op, Parameter
from .table import OPS

BY_NAME: dict[str, Op] = {op.name: op for op in OPS}


@dataclass(frozen=True)
class Source:
    """Where one parameter of a gradient row takes its value.

    incoming   the gradient of the output `name`
    value      the parameter `name` of the row; of an inout the value that it has afterwards
    constant   `constant`
    wanted     whether somebody wants the gradient of the input `name`
    made       nowhere: it is the gradient of the input `name`
    """

    parameter: Parameter
    kind: Literal["incoming", "value", "constant", "wanted", "made"]
    name: str = ""
    constant: bool = False


def gradient_row(op: Op) -> Op | None:
    """The row that computes the gradient of `op`."""
    return None if op.gradient is None else BY_NAME[op.gradient.row]


def sources(op: Op) -> tuple[Source, ...]:
    """One for each parameter of the gradient row, in its order; none without such a row."""
    row = gradient_row(op)
    if op.gradient is None or row is None:
        return ()
    given = op.gradient.given
    conditions = {p.condition: p for p in row.outputs if p.condition is not None}
    found = []
    for p in row.parameters:
        value = given.get(p.name, p.name)
        if isinstance(value, bool):
            found.append(Source(p, "constant", constant=value))
        elif p.role == "output":
            found.append(Source(p, "made", value.removeprefix("d ")))
        elif value.startswith("d "):
            found.append(Source(p, "incoming", value.removeprefix("d ")))
        elif p.name in conditions:
            wanted = given[conditions[p.name].name]
            assert isinstance(wanted, str)
            found.append(Source(p, "wanted", wanted.removeprefix("d ")))
        else:
            found.append(Source(p, "value", value))
    return tuple(found)


def differentiable(op: Op) -> tuple[Parameter, ...]:
    """The inputs whose gradient the gradient row computes, in the order of the row."""
    made = {s.name for s in sources(op) if s.kind == "made"}
    return tuple(p for p in op.input_tensors if p.name in made)


def gradient_dtypes(op: Op) -> tuple[str, ...]:
    """The dtypes of the row that its gradient has too."""
    row = gradient_row(op)
    return () if row is None else tuple(d for d in op.dtypes if d in row.dtypes)


def extra_gradient_dtypes(op: Op) -> tuple[str, ...]:
    """The dtypes that only product `any` has, of the row or of its gradient."""
    row, having = gradient_row(op), gradient_dtypes(op)
    both = () if row is None else tuple(d for d in op.computed if d in row.computed)
    return tuple(d for d in both if d not in having)


WHERE = "where a gradient is recorded"


def refusal(
    op: Op, dtypes: Mapping[str, str | None], attributes: Mapping[str, Any], everything: bool
) -> str | None:
    """The sentence that says why a row with a gradient has none for these inputs and attributes,
    both by C name; None when it has. `everything`: no product restricts the dtypes."""
    having, extra = gradient_dtypes(op), extra_gradient_dtypes(op)
    for p in op.input_tensors:
        dtype = dtypes[p.name]
        if dtype in having or (dtype in extra and everything):
            continue
        text = f"{op.python}: {p.python_name} must have dtype {listed(having)} {WHERE}"
        found = PYTHON_NAMES.get(dtype or "", dtype)
        hint = (
            "; OPENACLNN_PRODUCT=any or openaclnn.set_product(None) accepts it"
            if dtype in extra
            else ""
        )
        return f"{text}, but got {found}{hint}"
    for p in op.attributes:
        if op.gradient and p.name == op.gradient.only_if and not attributes[p.name]:
            return f"{op.python}: {p.python_name} must be True {WHERE}"
    return None
