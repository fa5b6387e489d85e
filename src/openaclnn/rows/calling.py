# SPDX-License-Identifier: Apache-2.0
"""The rows as calls from Python that return their outputs."""

from __future__ import annotations

from .dtypes import DTYPES
from .schema import Op, Parameter

PYTHON_NAMES = {dtype.name: dtype.python for dtype in DTYPES.values()}


def given(op: Op) -> tuple[Parameter, ...]:
    """The arguments of a call, without outputs that it makes."""
    return tuple(p for p in op.parameters if p.role != "output")


def made(op: Op) -> tuple[Parameter, ...]:
    return tuple(p for p in op.parameters if p.role == "output")


def argument_name(op: Op, p: Parameter) -> str:
    """A single output is `out`, as in openaclnn's functions."""
    return "out" if p.role == "output" and len(made(op)) == 1 else p.python_name


def listed(dtypes: tuple[str, ...]) -> str:
    """ "float32, float16 or bfloat16" """
    by_code = sorted(dtypes, key=lambda name: DTYPES[name].code)  # as the core lists them
    names = [PYTHON_NAMES[d] for d in by_code]
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""
