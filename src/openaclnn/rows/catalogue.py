# SPDX-License-Identifier: Apache-2.0
"""The rows as people read them: one operator in full, all as a table, as data or as Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from .dtypes import DTYPES
from .schema import Op, Parameter
from .shapes import Form
from .suggestions import near
from .table import OPS

SHORT = {dtype.name: dtype.short for dtype in DTYPES.values()}
PHASE2 = "void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream"


def as_data(op: Op) -> dict[str, Any]:
    return {
        "name": op.name,
        "python": op.python,
        "header": f"aclnnop/{op.header}",
        "formula": op.formula,
        "where": list(op.where),
        "doc": op.doc,
        "products": list(op.products),
        "dtypes": list(op.dtypes),
        "dtypes_any": list(op.computed),
        "parameters": [
            {
                "name": p.name,
                "python": p.python_name,
                "c_type": p.c_type,
                "role": p.role,
                "required": p.required,
                "default": p.default,
            }
            for p in op.parameters
        ],
    }


def formula_lines(op: Op, width: int) -> list[str]:
    """The formula, then the definitions of its letters; lines break between equations."""
    lines: list[str] = []
    for head, equations in (("", op.formula.split("; ")), ("where ", op.where)):
        for i, equation in enumerate(equations):
            if i and len(f"{lines[-1]}; {equation};") <= width:
                lines[-1] += f"; {equation}"
                continue
            if i:
                lines[-1] += ";"
            lines.append((" " * len(head) if i else head) + equation)
    return lines


def attributes_text(op: Op, attributes: Mapping[str, Any]) -> str:
    """ "alpha = 1e10, is_result = False": those that have a value."""
    values = {
        p.python_name: bool(v) if p.kind == "bool" else v
        for p in op.attributes
        if (v := attributes.get(p.python_name)) is not None
    }
    return ", ".join(f"{name} = {shortest(value)}" for name, value in values.items())


def shortest(value: Any) -> str:
    """1e10 for 10000000000.0, 1e-5 for 1e-05: the shortest text that is read as the same number."""
    plain = str(value)
    if not isinstance(value, float) or not math.isfinite(value) or "e" not in f"{value:g}":
        return plain
    digits, _, exponent = f"{Decimal(plain).normalize():e}".partition("e")
    return min(plain, f"{digits}e{int(exponent)}", key=len)


def c_signatures(op: Op) -> list[str]:
    phase1 = [p.c_declaration for p in op.parameters]
    phase1 += ["uint64_t* workspaceSize", "aclOpExecutor** executor"]
    return [
        wrapped(f"aclnnStatus {op.name}GetWorkspaceSize(", phase1, end=");"),
        wrapped(f"aclnnStatus {op.name}(", PHASE2.split(", "), end=");"),
    ]


def wrapped(head: str, parameters: list[str], end: str, width: int = 94) -> str:
    """A prototype over as many lines as it needs."""
    lines = [head]
    for i, parameter in enumerate(parameters):
        text = parameter + (end if i + 1 == len(parameters) else ", ")
        if len(lines[-1]) + len(text.rstrip()) > width:
            lines.append("    ")
        lines[-1] += text
    return "\n".join(line.rstrip() for line in lines)


def python_signature(op: Op) -> str:
    given = [p for p in op.parameters if p.role != "output"]
    arguments = [f"{p.python_name}={p.default}" if p.has_default else p.python_name for p in given]
    if not op.inplace:
        arguments += ["*", "out=None"]
    return wrapped(f"openaclnn.{op.python}(", arguments, end=")")


FORMATS = 'NULL, "NCHW" or "ND"'  # the only texts so far are data formats


def role(p: Parameter) -> str:
    """What a parameter is for, and when it may be NULL."""
    text = {"inout": "input and output"}.get(p.role, p.role)
    if p.kind == "text":
        return f"{text}: {FORMATS}"
    if p.condition:
        return f"{text}, may be NULL unless {p.condition}"
    optional = p.kind in ("tensor", "scalar") and not p.required
    return f"{text}, may be NULL" if optional else text


def shapes(op: Op) -> str:
    """What the shapes of the tensors have to do with each other."""
    if len(op.input_tensors) == 1 and op.shapes == "same":
        return "any, rank 0 to 8"
    if op.shapes != "named":
        relation = "broadcast with each other" if op.shapes == "broadcast" else "all equal"
        return f"{relation}, rank 0 to 8"
    by_form: dict[Form, list[str]] = {}
    for p in op.tensors:
        by_form.setdefault(p.form, []).append(p.name)
    texts = [
        f"{', '.join(names)} {form}" + (", in any dimensions" if form.flat else "")
        for form, names in by_form.items()
    ]
    counts = ", ".join(f"{name} {word}" for name, word in op.sizes.items() if name != word)
    limits = [f"{divisor} divides {size}" for size, divisor in op.multiples.items()]
    return f"{'; '.join(texts)}; rank up to 8; {counts}; {'; '.join([*limits, op.limits])}"


def companions(op: Op) -> str:
    """The dtype of the tensors that may be FLOAT beside 16 bits; empty where there are none."""
    names = [p.name for p in op.tensors if p.companion]
    if not names:
        return ""
    first = op.input_tensors[0].name
    return (
        f"{', '.join(names)}: all that of {first}, or all FLOAT beside 16 bits; "
        "results follow the inputs among them"
    )


def find_operator(name: str) -> Op | None:
    """By C name, with or without GetWorkspaceSize, or by Python name, in any case."""
    wanted = name.removesuffix("GetWorkspaceSize").lower()
    for op in OPS:
        if wanted in (op.name.lower(), op.name.lower().removeprefix("aclnn"), op.python):
            return op
    return None


def nearest(name: str) -> str | None:
    """The operator that was probably meant, by its C name if `name` looks like one."""
    in_c = name.lower().startswith("aclnn") or not name.islower()
    known = {
        spelling.lower().removeprefix("aclnn"): op.name if in_c else op.python
        for op in OPS
        for spelling in (op.name, op.python)
    }
    meant = near(name.lower().removeprefix("aclnn"), known)
    return known[meant] if meant else None


def markdown(ops: Sequence[Op] = OPS) -> str:
    """The table of the README; tools/docs/refresh.py puts it there."""
    rows = (f"| `{op.name}` | `{op.python}` | {op.doc} |\n" for op in ops)
    return f"| operator | Python | what it does |\n| --- | --- | --- |\n{''.join(rows)}"
