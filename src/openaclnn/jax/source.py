# SPDX-License-Identifier: Apache-2.0
"""The rows as C++ data, which core/jax/library.cpp includes as rows.inc and names.inc."""

from __future__ import annotations

from ..rows.schema import CPP_KINDS, Op
from ..rows.table import OPS


def _row(op: Op) -> str:
    names = [p.name for p in op.parameters]
    lines = ""
    for p in op.parameters:
        condition = names.index(p.condition) if p.condition else -1
        kind = CPP_KINDS[p.kind]
        lines += f'    {{"{p.python_name}", Kind::{kind}, Role::{p.role}, {condition}}},\n'
    pointwise = str(op.pointwise).lower()
    return (
        f"constexpr Parameter {op.python}_parameters[] = {{\n{lines}}};\n"
        f'constexpr Row {op.python}_row = {{"{op.name}", {op.python}_parameters, '
        f"{len(op.parameters)}, {pointwise}}};\n"
    )


def generated() -> dict[str, str]:
    """The files by name."""
    head = (
        "// SPDX-License-Identifier: Apache-2.0\n"
        "// Written by openaclnn/jax/source.py from table.py.\n\n"
    )
    return {
        "rows.inc": head + "".join(map(_row, OPS)),
        "names.inc": head + "".join(f"ROW({op.python});\n" for op in OPS),
        "calls.cpp": '#include "library.cpp"\n',
    }
