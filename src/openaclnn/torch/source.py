# SPDX-License-Identifier: Apache-2.0
"""The rows as C++ data, which core/torch/library.cpp includes as rows.inc."""

from __future__ import annotations

import torch

from ..rows.calling import argument_name, given, listed, made
from ..rows.gradients import (
    Source,
    gradient_dtypes,
    gradient_dtypes_beyond,
    gradient_row,
    sources,
)
from ..rows.schema import CPP_KINDS, Op
from ..rows.table import OPS
from .dtypes import TORCH
from .schemas import out_schema, schema


def _quoted(text: str | None) -> str:
    return "nullptr" if text is None else '"' + text.replace('"', '\\"') + '"'


def _parameters(op: Op) -> str:
    names = [p.name for p in op.parameters]
    order = {p.name: i for group in (given(op), made(op)) for i, p in enumerate(group)}
    lines = ""
    for p in op.parameters:
        condition = names.index(p.condition) if p.condition else -1
        kind = CPP_KINDS[p.kind]
        lines += f'    {{"{p.name}", "{argument_name(op, p)}", Kind::{kind}, Role::{p.role}, '
        lines += f"{order[p.name]}, {condition}}},\n"
    return f"constexpr Parameter {op.name}_parameters[] = {{\n{lines}}};\n"


def _source(op: Op, s: Source) -> str:
    index = next((i for i, p in enumerate(op.parameters) if p.name == s.name), -1)
    return f"{{From::{s.kind}, {index}, {str(s.constant).lower()}}}"


def _mask(op: Op, names: tuple[str, ...]) -> int:
    return sum(1 << i for i, p in enumerate(op.parameters) if p.name in names)


def _row(op: Op) -> str:
    row, g = gradient_row(op), op.gradient
    names = [p.name for p in op.parameters]
    fields = [
        _quoted(op.name),
        _quoted(op.python),
        _quoted(schema(op)),
        _quoted(out_schema(op)),
        f"{op.name}_parameters",
        len(op.parameters),
        len(given(op)),
        len(op.outputs),
        str(op.inplace).lower(),
        str(op.pointwise).lower(),
        -1 if row is None else OPS.index(row),
        "nullptr" if row is None else f"{op.name}_sources",
        _mask(op, g.zero if g else ()),
        _mask(op, g.nonnegative if g else ()),
        names.index(g.only_if) if g and g.only_if else -1,
        _bits(gradient_dtypes(op)),
        _quoted(listed(gradient_dtypes(op))),
        _bits(gradient_dtypes_beyond(op)),
    ]
    return "    {" + ", ".join(map(str, fields)) + "},\n"


def _bits(dtypes: tuple[str, ...]) -> int:
    return sum(1 << _scalar_type(TORCH[d]) for d in dtypes)


def _scalar_type(dtype: torch.dtype) -> int:
    """The number of at::ScalarType, which is part of the serialised formats of torch."""
    return {torch.float16: 5, torch.float32: 6, torch.float64: 7, torch.bfloat16: 15}[dtype]


def rows() -> str:
    text = "// SPDX-License-Identifier: Apache-2.0\n"
    text += "// Written by openaclnn/torch/source.py from table.py.\n\n"
    for op in OPS:
        text += _parameters(op)
        if found := ", ".join(_source(op, s) for s in sources(op)):
            text += f"constexpr Source {op.name}_sources[] = {{{found}}};\n"
    text += f"\nconst Row rows[] = {{\n{''.join(map(_row, OPS))}}};\n"
    return text + f"const int row_count = {len(OPS)};\n"
