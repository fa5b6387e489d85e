# SPDX-License-Identifier: Apache-2.0
"""The module openaclnn.functions: one Python function for each row."""

from __future__ import annotations

import re
import textwrap

from rows import NOTE, OPS, SPDX, catalogue, given, made

PY_TYPES = {
    "tensor": "Array",
    "double": "SupportsFloat",
    "scalar": "SupportsFloat",
    "int64": "int",
    "bool": "bool",
    "text": "str | None",
}


def function(index: int, op) -> str:
    signature = ", ".join(
        f"{p.python_name}: {PY_TYPES[p.kind]}" + (f" = {p.default!r}" if p.has_default else "")
        for p in given(op)
    )
    types = ["Array | None" if p.condition else "Array" for p in op.outputs]
    returns = types[0] if len(types) == 1 else f"tuple[{', '.join(types)}]"
    outs = ["out"] if len(made(op)) == 1 else [p.python_name for p in made(op)]
    missing = ", ".join(["None"] * len(outs))
    results = [p.result_name for p in op.outputs]
    unpack = ""
    if len(outs) > 1:
        quoted = ", ".join(f'"{name}"' for name in (op.name, *results))
        unpack = f"    {', '.join(outs)} = (\n        ({missing}) if out is None else "
        unpack += f"unpack_outputs(out, {quoted})\n    )\n"
    named = dict(zip((p.name for p in made(op)), outs, strict=True))
    arguments = ", ".join(named.get(p.name, p.python_name) for p in op.parameters)
    keyword = "" if op.inplace else f", *, out: {returns} | None = None"
    names = {p.name: p.result_name for p in op.parameters}

    def pythonic(text: str) -> str:
        return re.sub(r"\w+", lambda m: names.get(m[0], m[0]), text)

    head = f"def {op.python}({signature}{keyword}) -> {returns}:"
    if len(head) > 100:
        head = head.replace("(", "(\n    ", 1).replace(") ->", ",\n) ->")
        head = re.sub(r"(?<=,) (?=\w+: |\*)", "\n    ", head)
    facts = [f"Returns ({', '.join(results)})."] if unpack else []
    facts += [f"Shapes: {pythonic(catalogue.shapes(op))}."]
    dtypes = [", ".join(op.dtypes), *filter(None, [pythonic(catalogue.companions(op))])]
    facts.append(f"Dtypes: {'; '.join(dtypes)}.")
    formats = catalogue.FORMATS.replace("NULL", "None")
    facts += [f"{p.python_name}: {formats}." for p in given(op) if p.kind == "text"]
    facts.append(f"C: {op.name}.")
    formula = textwrap.indent(pythonic("\n".join(catalogue.formula_lines(op, 84))), " " * 8)
    lines = "\n".join(
        textwrap.fill(fact, 100, initial_indent=" " * 4, subsequent_indent=" " * 8)
        for fact in facts
    )
    return (
        f"\n\n{head}\n"
        f'    """{op.doc}\n\n{formula}\n\n'
        f"{lines}\n"
        f'    """\n{unpack}    result: {returns} = launch({index}, {arguments})\n'
        "    return result\n"
    )


def functions() -> str:
    names = ", ".join(f'"{op.python}"' for op in OPS)
    return (
        f'# {SPDX}\n"""One function per row. {NOTE}"""\n\n'
        "from __future__ import annotations\n\nfrom typing import SupportsFloat, TypeVar\n\n"
        "from ._core import launch\nfrom .function_outputs import unpack_outputs\n\n"
        f'__all__ = [{names}]\n\nArray = TypeVar("Array")\n'
        + "".join(function(i, op) for i, op in enumerate(OPS))
    )
