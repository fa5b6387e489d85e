# SPDX-License-Identifier: Apache-2.0
"""The two-phase object: phase 1 once, phase 2 as often as you like."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._core import Plan
from .rows.catalogue import nearest
from .rows.schema import Op, Parameter
from .rows.suggestions import did_you_mean
from .rows.table import OPS

_INDEX = {spelling: i for i, op in enumerate(OPS) for spelling in (op.name, op.python)}


def find(name: str, caller: str = "plan") -> tuple[int, Op]:
    """The row of a C or Python name; for any other name a ValueError with those there are."""
    if not isinstance(name, str):
        got = "an array" if hasattr(name, "shape") else repr(name)
        raise TypeError(f"{caller}: name must be a string, but got {got}")
    if name not in _INDEX:
        from .aten import catalogue as aten

        row = aten.find(name)
        if row is not None and name == row.name:
            raise ValueError(f"no operator {name!r} here: ATen computes it, for C and torch_npu")
        meant = f"{row.name}, which ATen computes" if row else nearest(name)
        known = f"there are {', '.join(op.name for op in OPS)}"
        raise ValueError(f"no operator {name!r}{did_you_mean(meant, known)}")
    index = _INDEX[name]
    return index, OPS[index]


def _needed(op: Op, parameter: Parameter, values: list[Any]) -> bool:
    """Whether plan has to be given it; an output that a false flag switches off it has not."""
    if parameter.condition is not None:
        flags = [p.name for p in op.parameters]
        flag = values[flags.index(parameter.condition)]
        return not isinstance(flag, bool | np.bool_) or bool(flag)
    optional = parameter.kind in ("tensor", "scalar") and not parameter.required
    return not (parameter.has_default or optional)


def plan(name: str, *arguments: Any, **named: Any) -> Plan:
    """Phase 1 of `name`: checks every argument and plans the work.

    `name` is the C name or the Python name: "aclnnLeakyRelu" or "leaky_relu". Arguments
    come in the order of the C prototype, outputs included, or by name in C or Python spelling:

        p = openaclnn.plan("aclnnLeakyRelu", x, 0.01, y)
        p.run()                      # results are in y
        p.run(stream)                # results are in y after stream.synchronize()

    The arrays are read and written where they are, each time the plan runs.
    """
    index, op = find(name)
    parameters = op.parameters
    if len(arguments) > len(parameters):
        raise TypeError(f"{name} takes {len(parameters)} arguments, but got {len(arguments)}")
    values = [*arguments, *(p.default for p in parameters[len(arguments) :])]
    position = {
        spelling: i for i, p in enumerate(parameters) for spelling in (p.name, p.python_name)
    }
    given = set(range(len(arguments)))
    for key, value in named.items():
        if key not in position:
            known = ", ".join(p.name for p in parameters)
            raise TypeError(f"{name} has no parameter {key!r}; it has {known}")
        if position[key] in given:
            raise TypeError(f"{name} got {parameters[position[key]].name!r} twice")
        given.add(position[key])
        values[position[key]] = value
    missing = [
        p.name for i, p in enumerate(parameters) if i not in given and _needed(op, p, values)
    ]
    if missing:
        takes = ", ".join(p.name for p in parameters)
        be = "is" if len(missing) == 1 else "are"
        raise TypeError(f"{name} takes {takes}, but {' and '.join(missing)} {be} missing")
    return Plan(index, *values)
