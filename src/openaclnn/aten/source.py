# SPDX-License-Identifier: Apache-2.0
"""The rows as C++: their data, and two C functions each."""

from __future__ import annotations

import hashlib

from . import KINDS, Parameter, Row, rows
from .prototypes import phase1_names

HEAD = """// SPDX-License-Identifier: Apache-2.0
// Written by openaclnn/aten/source.py from the rows beside it.
#include "core/aten/row.h"

#define PHASE extern "C" __attribute__((visibility("default"))) int32_t
#ifdef OPENACLNN_BEHIND_JUMPS  // libopenaclnn_aten; the libraries with CANN's names jump here
#define NAME(name) openaclnn_##name
#define PLAN plan_for_c
#define RUN run_for_c
#else  // libaclnn_math.so
#define NAME(name) name
#define PLAN plan_for_npu
#define RUN run_for_npu
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


NUMBERS = {
    "any": "any", "float": "floating", "index": "integral", "packed": "packed", "scale": "scale",
    "unset": "unset",
}  # fmt: skip


NAMES = 16  # kNames of core/torch/aten/sizes.h


class Sizes:
    """The shapes and bounds of a row, one after the other in one array."""

    def __init__(self, row: Row) -> None:
        self.array = f"{row.name}_sizes"
        self.parameters = [p.name for p in row.parameters]
        self.names: list[str] = []  # of sizes, in the order in which they are met
        self.entries: list[str] = []

    def _entry(self, text: str) -> str:
        name = text.rstrip("?+")
        if name in ("*", "..."):
            kind, value = ("rest" if name == "*" else "any"), 0
        elif name.isdigit():
            kind, value = "number", int(name)
        elif name in self.parameters:
            kind, value = "of_value", self.parameters.index(name)
        else:
            if name not in self.names:
                self.names.append(name)
                if len(self.names) > NAMES:
                    raise ValueError(f"{self.array}: more than {NAMES} names of sizes")
            kind, value = "named", self.names.index(name)
        optional, positive = (str(text.endswith(mark)).lower() for mark in "?+")
        return f'{{Size::Kind::{kind}, {optional}, {positive}, {value}, "{name}"}}'

    def add(self, sizes: tuple[str, ...]) -> str:
        """Where they begin."""
        begin = len(self.entries)
        self.entries += map(self._entry, sizes)
        return f"{self.array} + {begin}" if sizes else "nullptr"

    def limits(self, p: Parameter) -> str:
        """The limits of a parameter as designated initialisers, in the order of the members."""
        index = self.parameters.index
        found = {
            "shape": p.shape is not None and self.add(p.shape or ()),
            "sizes": p.shape is not None and str(len(p.shape)),
            "nullable": p.nullable and "true",
            "flat": p.flat and "true",
            "condition": p.condition is not None and str(index(p.condition)),
            "unless": p.unless is not None and str(index(p.unless)),
            "numbers": p.of != "any" and f"Limits::Numbers::{NUMBERS[p.of]}",
            "least": p.least is not None and str(p.least),
            "most": p.most is not None and str(p.most),
            "multiple": p.multiple is not None and str(index(p.multiple)),
            "bound": p.bound != () and self.add(p.bound),
            "factors": p.bound != () and str(len(p.bound)),
            "ignored": p.ignored is not None and str(index(p.ignored)),
        }
        text = ", ".join(f".{name} = {value}" for name, value in found.items() if value)
        return f", {{{text}}}" if text else ""


def data(row: Row) -> str:
    sizes = Sizes(row)
    parameters = ", ".join(
        f'{{"{p.name}", Kind::{KINDS[p.kind][1]}, {str(p.written).lower()}{sizes.limits(p)}}}'
        for p in row.parameters
    )
    text = f"constexpr Parameter {row.name}_parameters[] = {{{parameters}}};\n"
    if sizes.entries:
        text = f"constexpr Size {sizes.array}[] = {{{', '.join(sizes.entries)}}};\n" + text
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
    plans = "".join(
        f"PHASE NAME({name})({typed}, uint64_t* size, void** executor) {{\n"
        f"  const Value values[] = {{{values}}};\n"
        f"  return PLAN({index}, values, size, executor);\n}}\n"
        for name in phase1_names(row.name)
    )
    return (
        f"{plans}"
        f"PHASE NAME({row.name})(void* workspace, uint64_t size, void* executor, void* stream) {{\n"
        f"  return RUN({index}, workspace, size, executor, stream);\n}}\n"
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
