# SPDX-License-Identifier: Apache-2.0
"""Writes what follows from the rows: C headers and shims, the kernel list, the thin libraries'
names, the Python functions and the reference pages. Its output is never committed.

    python tools/build/generate.py OUT            everything the build needs
    python tools/build/generate.py OUT --docs     the reference pages, OUT/<op>.md, and of ATen
"""

from __future__ import annotations

import argparse
from pathlib import Path

from c_headers import declared
from python_functions import functions
from reference_pages import aten_page, page
from refused_calls import source as refused_calls
from rows import (
    ANY,
    CPP_KINDS,
    DTYPES,
    LIBRARIES,
    NOTE,
    OPS,
    OTHER_CHIPS,
    PHASE2,
    PRODUCTS,
    SPDX,
    argument_name,
    c_signatures,
    catalogue,
    given,
    load,
    made,
    write,
)

gradients = load("rows.gradients")
gradient_row, sources = gradients.gradient_row, gradients.sources


def phase1(op) -> str:
    parameters = [p.c_declaration for p in op.parameters]
    return ", ".join([*parameters, "uint64_t* workspaceSize", "aclOpExecutor** executor"])


# ---- C ----


def op_header(ops) -> str:
    """The header of an operator and its in-place form."""
    guard = "OPENACLNN_" + ops[0].header.upper().replace(".", "_")
    text = f"// {SPDX}\n// {NOTE}\n#ifndef {guard}\n#define {guard}\n\n"
    text += '#include "aclnn/aclnn_base.h"\n#include "aclnn_util.h"\n\n'
    text += '#ifdef __cplusplus\nextern "C" {\n#endif\n'
    for op in ops:
        formula = "".join(f" *     {line}\n" for line in catalogue.formula_lines(op, 88))
        text += f"\n/* {op.doc}\n *\n{formula} */\n"
        text += "".join(f"ACLNN_API {prototype}\n" for prototype in c_signatures(op))
    return text + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n"


def headers() -> dict[str, str]:
    by_header: dict[str, list] = {}
    for op in OPS:
        by_header.setdefault(op.header, []).append(op)
    files = {name: op_header(ops) for name, ops in by_header.items()}
    includes = "".join(f'#include "aclnnop/{name}"\n' for name in files)
    guard = "OPENACLNN_ACLNN_OPS_NN_H"
    files["aclnn_ops_nn.h"] = (
        f"// {SPDX}\n// {NOTE}\n#ifndef {guard}\n#define {guard}\n\n{includes}\n#endif\n"
    )
    return files


def with_level2(files: dict[str, str]) -> dict[str, str]:
    """The headers, and beside them level2/, under which older programs include the same."""
    second = {
        f"level2/{name}": f"// {SPDX}\n// {NOTE}\n// Another name of the header.\n"
        f'#include "aclnnop/{name}"  // IWYU pragma: export\n'
        for name in files
    }
    return files | second


def forms(op) -> str:
    """The shapes of a row with named sizes, by parameter."""
    positions = {p.name: i for i, p in enumerate(op.parameters)}
    attributes = {p.name for p in op.attributes}
    sizes = list(dict.fromkeys(s for p in op.tensors for s in p.form.sizes if s not in attributes))
    lines = []
    for p in op.parameters:
        extents = "".join(
            f"{{{-1 if s in attributes else sizes.index(s)}, {positions.get(s, -1)}, "
            f'"{op.sizes[s]}"}}, '
            for s in p.form.sizes
        )
        before = [i.name for i in op.input_tensors if i.form == p.form and i.form.rest]
        alike = [positions[name] for name in before if positions[name] < positions[p.name]]
        rest, flat = str(p.form.rest).lower(), str(p.form.flat).lower()
        like = alike[-1] if alike else -1
        lines.append(f"    {{{{{extents}}}, {len(p.form.sizes)}, {rest}, {flat}, {like}}},\n")
    most = f"std::size(Form().extents) >= {max(len(p.form.sizes) for p in op.parameters)}"
    return (
        f'static_assert({most} && {len(sizes)} <= kMaxSizes, "raise kMaxExtents or kMaxSizes");\n'
        f"constexpr Form {op.name}_forms[] = {{\n{''.join(lines)}}};\n"
    )


def gradient(op) -> str:
    """The gradient of a row as C++ data."""
    row, g = gradient_row(op), op.gradient
    if row is None or g is None:
        return f"constexpr Gradient {op.name}_gradient = {{-1, nullptr, 0, 0, 0, -1}};\n"
    positions = {p.name: i for i, p in enumerate(op.parameters)}
    values = ", ".join(
        f"{{From::{s.kind}, {positions.get(s.name, -1)}, {str(s.constant).lower()}}}"
        for s in sources(op)
    )

    def mask(names) -> int:
        return sum(1 << positions[name] for name in names)

    return (
        f"constexpr Source {op.name}_sources[] = {{{values}}};\n"
        f"constexpr Gradient {op.name}_gradient = {{{OPS.index(row)}, {op.name}_sources, "
        f"{len(row.parameters)}, {mask(g.zero)}, {mask(g.nonnegative)}, "
        f"{positions.get(g.only_if, -1)}}};\n"
    )


def operator(op) -> str:
    """The row as C++ data and its two C symbols."""
    positions = {p.name: i for i, p in enumerate(op.parameters)}
    order = {p.name: i for group in (given(op), made(op)) for i, p in enumerate(group)}
    parameters = "".join(
        f'    {{"{p.name}", "{argument_name(op, p)}", Kind::{CPP_KINDS[p.kind]}, Role::{p.role}, '
        f"{str(p.required).lower()}, {str(p.companion).lower()}, "
        f"{positions.get(p.condition, -1)}, {order[p.name]}}},\n"
        for p in op.parameters
    )
    products = " | ".join(f"1u << {i}" for i, p in enumerate(PRODUCTS) if p.key in op.products)

    def mask(dtypes) -> str:
        return " | ".join(f"uint64_t{{1}} << {DTYPES[d].constant}" for d in dtypes)

    rules = "".join(f"rules::{rule}, " for rule in op.rules)
    arguments = ", ".join(f"argument({p.name})" for p in op.parameters)
    formula = op.kernel if op.pointwise else "none"
    named = op.shapes == "named"
    flags = f"{str(op.inplace).lower()}, {str(op.pointwise).lower()}"
    return f"""
{forms(op) if named else ""}constexpr Parameter {op.name}_parameters[] = {{
{parameters}}};
static_assert(fits({op.name}_parameters), "raise kMaxParameters or kMaxOutputs");
constexpr RuleFunction {op.name}_rules[] = {{{rules}nullptr}};
{gradient(op)}constexpr Operator {op.name}_row = {{{{
    "{op.name}", "{op.python}", {op.name}_parameters,
    {len(op.parameters)}, {len(given(op))}, {len(op.outputs)}, {flags},
    {products}, {mask(op.dtypes)},
    {mask(op.computed)}, {op.name}_gradient}},
    Shapes::{op.shapes}, {f"{op.name}_forms" if named else "nullptr"},
    Inputs::{op.inputs}, Output::{op.output},
    plan_{op.family}, infer_{op.family}, FormulaId::{formula}, {op.name}_rules}};

extern "C" aclnnStatus {op.name}GetWorkspaceSize({phase1(op)}) {{
  Argument arguments[] = {{{arguments}}};
  return plan_call({op.name}_row, arguments, workspaceSize, executor);
}}

extern "C" aclnnStatus {op.name}({PHASE2}) {{
  return run_call({op.name}_row, workspace, workspaceSize, executor, stream);
}}
"""


def families() -> str:
    """Phase 1 of each family, which is plan_<family> and infer_<family> in a file of core/ops."""
    return "".join(
        f"Status plan_{family}(const Operator&, const Argument*, Executor&);\n"
        f"Status infer_{family}(const Operator&, const Argument*, int, aclDataType*, Dims*);\n"
        for family in dict.fromkeys(op.family for op in OPS)
    )


def operators() -> str:
    rows = ", ".join(f"&{op.name}_row" for op in OPS)
    return (
        f"// {SPDX}\n// {NOTE}\n"
        "#include <iterator>\n\n"
        '#include "aclnnop/aclnn_ops_nn.h"\n'
        '#include "core/ops/operator.h"\n#include "core/ops/rules.h"\n\n'
        "namespace openaclnn {\n\n"
        + families()
        + "".join(operator(op) for op in OPS)
        + f"\nconst Operator* const operators[] = {{{rows}}};\n"
        f"const int operator_count = {len(OPS)};\n\n"
        "}  // namespace openaclnn\n"
    )


# ---- the libraries CANN programs name: jumps into libopenaclnn ----


def libraries() -> dict[str, list[str]]:
    ops = [name for op in OPS for name in (op.name + "GetWorkspaceSize", op.name)]
    found = {}
    for name, headers_of_it in LIBRARIES.items():
        own = [f.name for f in declared(headers_of_it)] if headers_of_it else []
        found[name] = own + (ops if headers_of_it == "aclnnop/" else [])
    return found


def forwards(names: list[str]) -> str:
    lines = "".join(f"FORWARD({name})\n" for name in names)
    return f'// {SPDX}\n// {NOTE}\n#include "core/names/forward.h"\n\n{lines}'


def aliases() -> str:
    names = sorted({name for names in libraries().values() for name in names})
    return "".join(f"openaclnn_{name} = {name};\n" for name in names)


def build_files() -> dict[str, str]:
    rows = [op for op in OPS if op.pointwise]
    formulas = {op.kernel: len(op.input_tensors) for op in rows}
    files = {f"include/aclnnop/{name}": text for name, text in with_level2(headers()).items()}
    files |= {f"names/{name}.c": forwards(names) for name, names in libraries().items()}
    files |= {
        "generated/operators.cpp": operators(),
        "generated/formulas.inc": "".join(f"FORMULA({k}, {n})\n" for k, n in formulas.items()),
        "generated/names.inc": "".join(f"OPERATOR({op.name})\n" for op in OPS),
        "generated/products.inc": "".join(
            f'PRODUCT("{p.key}", "{p.title}", "{p.soc_name}", {str(p.bfloat16).lower()}, '
            f"{str(p.everything).lower()})\n"
            for p in (*PRODUCTS, ANY)
        ),
        "generated/chips.inc": "".join(
            f'CHIP("{chip}", "{key}")\n'
            for key, chips in [*((p.key, p.chips) for p in PRODUCTS), ("", OTHER_CHIPS)]
            for chip in chips
        ),
        "generated/aliases.ld": aliases(),
        "generated/refused.cpp": refused_calls(),
        "python/functions.py": functions(),
    }
    return files


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="folder to write into")
    parser.add_argument("--docs", action="store_true", help="write the reference pages instead")
    arguments = parser.parse_args()
    pages = {f"{op.name}.md": page(op) for op in OPS} if arguments.docs else {}
    files = {**pages, "operators_of_aten.md": aten_page()} if arguments.docs else build_files()
    write(arguments.out, files)


if __name__ == "__main__":
    main()
