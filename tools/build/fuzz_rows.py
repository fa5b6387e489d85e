# SPDX-License-Identifier: Apache-2.0
"""Writes the rows as the fuzzer and the soak test read them: one entry for each operator, so that a
new row is fuzzed without an edit.

    python tools/build/fuzz_rows.py OUT           OUT/rows.inc, OUT/families.inc
"""

from __future__ import annotations

import sys
from pathlib import Path

from rows import CPP_KINDS, DTYPES, NOTE, OPS, SPDX


def sizes(op) -> str:
    """The named sizes; one that is a multiple of another comes after it."""
    names = sorted(op.sizes, key=lambda name: name in op.multiples)
    divisors = {name: f'"{divisor}"' for name, divisor in op.multiples.items()}
    return ", ".join(f'{{"{name}", {divisors.get(name, "nullptr")}}}' for name in names)


def entry(op) -> str:
    """One `Row`: what the operator takes, and its two C symbols."""
    positions = {p.name: i for i, p in enumerate(op.parameters)}
    parameters = ", ".join(
        f'{{"{p.name}", Kind::{CPP_KINDS[p.kind]}, Role::{p.role}, '
        f"{str(p.required).lower()}, {str(p.companion).lower()}, "
        f"{positions.get(p.condition, -1)}, "
        f"{{{', '.join(f'{chr(34)}{size}{chr(34)}' for size in p.form.sizes)}}}, "
        f"{str(p.form.rest).lower()}}}"
        for p in op.parameters
    )
    dtypes = ", ".join(DTYPES[d].constant for d in op.dtypes)
    pointers = {"tensor", "scalar"}
    arguments = ", ".join(
        f"static_cast<{p.c_type}>(v[{i}].handle)"
        if p.kind in pointers
        else f"v[{i}].{CPP_KINDS[p.kind]}"
        for i, p in enumerate(op.parameters)
    )
    return (
        f'{{"{op.name}", "{op.kernel}", &{op.family}, {{{parameters}}}, {{{dtypes}}},\n'
        f" {{{sizes(op)}}}, {str(op.shapes == 'broadcast').lower()}, "
        f"{str(op.inputs == 'equal').lower()}, {str(op.output == 'equal').lower()}, "
        f"{str(bool(op.rules)).lower()},\n"
        f" [](const Value* v, uint64_t* size, aclOpExecutor** executor) {{\n"
        f"   return {op.name}GetWorkspaceSize({arguments}, size, executor);\n"
        f" }},\n {op.name}}},\n"
    )


if __name__ == "__main__":
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    head = f"// {SPDX}\n// {NOTE}\n"
    families = ", ".join(dict.fromkeys(op.family for op in OPS))
    (out / "rows.inc").write_text(head + "".join(map(entry, OPS)))
    (out / "families.inc").write_text(
        f'{head}#include "families.h"\n\nnamespace fuzz {{\nextern const Family {families};\n}}\n'
    )
