# SPDX-License-Identifier: Apache-2.0
"""The two-phase object: phase 1 once, phase 2 as often as you like."""

from __future__ import annotations

from typing import Any

from ._core import Plan
from .schema import Op
from .table import OPS

_INDEX = {op.name: index for index, op in enumerate(OPS)}


def find(name: str) -> tuple[int, Op]:
    """The row of a C name; a misspelt one raises KeyError with the names there are."""
    try:
        index = _INDEX[name]
    except KeyError:
        known = ", ".join(_INDEX)
        raise KeyError(f"no operator {name!r}; there are {known}") from None
    return index, OPS[index]


def plan(name: str, *arguments: Any, **named: Any) -> Plan:
    """Phase 1 of `name`: checks every argument and plans the work.

    Arguments come in the order of the C prototype, outputs included, or by name in C or Python
    spelling:

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
    known = ", ".join(p.name for p in parameters)
    for key, value in named.items():
        if key not in position:
            raise TypeError(f"{name} has no parameter {key!r}; it has {known}")
        if position[key] < len(arguments):
            raise TypeError(f"{name} got {key!r} twice")
        values[position[key]] = value
    return Plan(index, *values)
