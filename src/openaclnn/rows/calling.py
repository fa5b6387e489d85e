# SPDX-License-Identifier: Apache-2.0
"""The rows as calls from Python that return their outputs."""

from __future__ import annotations

from .schema import Op, Parameter

# The dtypes of the rows, as NumPy, torch and JAX name them, in the order of aclDataType.
DTYPES = {
    "FLOAT": "float32",
    "FLOAT16": "float16",
    "DOUBLE": "float64",
    "BFLOAT16": "bfloat16",
}


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
    names = [name for d, name in DTYPES.items() if d in dtypes]
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""
