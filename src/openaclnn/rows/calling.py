# SPDX-License-Identifier: Apache-2.0
"""The rows as calls from Python that return their outputs, and their sentences in its names."""

from __future__ import annotations

import re

from .dtypes import DTYPES
from .schema import Op, Parameter

PYTHON_NAMES = {dtype.name: dtype.python for dtype in DTYPES.values()}
_OTHER_DTYPES = ["INT8", "INT16", "INT32", "INT64", "UINT8", "BOOL", "COMPLEX64", "COMPLEX128"]


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
    names = [PYTHON_NAMES[d] for d in dtypes]
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""


def sentence(op: Op, text: str) -> str:
    """A sentence of the library with the names of Python."""
    words = {p.name: argument_name(op, p) for p in op.parameters} | {op.name: op.python}
    words |= PYTHON_NAMES | {"NULL": "None"}
    words |= {name: name.lower() for name in _OTHER_DTYPES}
    return re.sub(r"\w+", lambda m: words.get(m[0], m[0]), text)
