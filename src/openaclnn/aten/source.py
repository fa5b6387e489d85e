# SPDX-License-Identifier: Apache-2.0
"""The rows as C++: their data, and two C functions each."""

from __future__ import annotations

import hashlib

from . import KINDS, Row, rows

HEAD = """// SPDX-License-Identifier: Apache-2.0
// Written by openaclnn/aten/source.py from the rows beside it.
#include "core/aten/row.h"

#define PHASE extern "C" __attribute__((visibility("default"))) int32_t
#ifdef OPENACLNN_BEHIND_JUMPS  // of the libraries for C programs, which have the names of CANN's
#define NAME(name) openaclnn_##name
#else
#define NAME(name) name
#endif

namespace openaclnn::aten {
namespace {
"""


def argument(row: Row, text: str) -> str:
    names = [p.name for p in row.parameters]
    if text in names:
        return f"{{Argument::From::parameter, {names.index(text)}, 0, nullptr}}"
    if text == "dtype of out":
        return "{Argument::From::dtype_of_out, 0, 0, nullptr}"
    if text == "none":
        return "{Argument::From::none, 0, 0, nullptr}"
    if text in ("true", "false"):
        return f"{{Argument::From::flag, {text}, 0, nullptr}}"
    if text.startswith('"'):
        return f"{{Argument::From::text, 0, 0, {text}}}"
    try:
        return f"{{Argument::From::integer, {int(text)}, 0, nullptr}}"
    except ValueError:
        return f"{{Argument::From::real, 0, {float(text)!r}, nullptr}}"


def data(row: Row) -> str:
    parameters = ", ".join(
        f'{{"{p.name}", Kind::{KINDS[p.kind][1]}, {str(p.written).lower()}}}'
        for p in row.parameters
    )
    text = f"constexpr Parameter {row.name}_parameters[] = {{{parameters}}};\n"
    if row.arguments:
        arguments = ", ".join(argument(row, a) for a in row.arguments)
        text += f"constexpr Argument {row.name}_arguments[] = {{{arguments}}};\n"
    return text


def entry(row: Row) -> str:
    overload = "nullptr" if row.overload is None else f'"{row.overload}"'
    arguments = f"{row.name}_arguments" if row.arguments else "nullptr"
    outputs = ", ".join(map(str, (*row.outputs, -1)))
    return (
        f'    {{"{row.name}", {row.name}_parameters, {len(row.parameters)}, "{row.op}", '
        f"{overload}, {arguments}, {len(row.arguments)}, {{{outputs}}}, "
        f"{str(row.inplace).lower()}, Row::Computed::{row.computed}}},\n"
    )


def functions(index: int, row: Row) -> str:
    typed = ", ".join(f"{KINDS[p.kind][0]} {p.name}_" for p in row.given)
    takes_self = row.outputs if row.inplace else ()
    values = ", ".join(
        f"value({row.parameters[0].name if i in takes_self else p.name}_)"
        for i, p in enumerate(row.parameters)
    )
    return (
        f"PHASE NAME({row.name}GetWorkspaceSize)({typed}, uint64_t* size, void** executor) {{\n"
        f"  const Value values[] = {{{values}}};\n"
        f"  return plan({index}, values, size, executor);\n}}\n"
        f"PHASE NAME({row.name})(void* workspace, uint64_t size, void* executor, void* stream) {{\n"
        f"  return run({index}, workspace, size, executor, stream);\n}}\n"
    )


def source() -> str:
    """One C++ file, which needs no header of torch."""
    found = rows()
    table = (
        "".join(map(data, found))
        + "}  // namespace\n\nconst Row rows[] = {\n"
        + "".join(map(entry, found))
        + f"}};\nconst int row_count = {len(found)};\n"
    )
    digest = hashlib.sha256(table.encode()).hexdigest()[:16]
    return (
        HEAD
        + table
        + f'const char* const rows_digest = "{digest}";\n\n}}  // namespace openaclnn::aten\n\n'
        + "using namespace openaclnn::aten;\n\n"
        + "".join(functions(i, row) for i, row in enumerate(found) if not row.is_type)
    )
