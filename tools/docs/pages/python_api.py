# SPDX-License-Identifier: Apache-2.0
"""The page of the Python API: every public name of openaclnn, openaclnn.torch and openaclnn.jax
with its signature and docstring. Of openaclnn.torch the source is read, so torch is not needed."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import openaclnn
from openaclnn import aclnn
from openaclnn.reference.comparison import Comparison
from openaclnn.rows.catalogue import python_signature
from openaclnn.rows.table import OPS

TORCH = Path(openaclnn.__file__).parent / "torch"
PYTHON = [op.python for op in OPS]
# What public functions return, and what is reached only through it.
RESULTS = {"Comparison": Comparison}


def prose(doc: str | None) -> str:
    """A docstring as Markdown: what is indented is code."""
    parts = []
    for part in re.split(r"\n\s*\n", inspect.cleandoc(doc or "")):
        if part.startswith(("    ", ">>> ")):
            parts.append(f"```python\n{textwrap.dedent(part)}\n```")
        else:
            parts.append(part)
    return "\n\n".join(part for part in parts if part)


def entry(name: str, signature: str, doc: str | None, level: int = 3) -> str:
    shown = f"```python\n{name}{signature}\n```\n\n" if signature else ""
    return f"{'#' * level} {name}\n\n{shown}{prose(doc)}\n\n"


def signature_of(value: Any) -> str:
    try:
        return re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(value)))
    except (TypeError, ValueError):  # of the extension
        first = (value.__doc__ or "").partition("\n")[0]
        return f"({first.partition('(')[2]}" if "(" in first else ""


def members(kind: type) -> str:
    """The public methods and properties of a class, as a list."""
    lines = []
    for name, member in inspect.getmembers(kind):
        if name.startswith("_") or name in dir(ValueError):
            continue
        doc = inspect.getdoc(member) or ""
        # nanobind writes the signature into the first line
        text = doc.partition("\n\n")[2] if re.match(rf"{name}\(", doc) else doc
        call = "()" if callable(member) else ""
        first = " ".join(text.split("\n\n")[0].split())
        lines.append(f"* `{name}{call}`" + (f": {first}" if first else ""))
    return "\n".join(lines) + "\n\n" if lines else ""


def described(name: str, value: Any) -> str:
    if isinstance(value, type):
        return entry(name, "", value.__doc__) + members(value)
    if callable(value):
        return entry(name, signature_of(value), value.__doc__)
    if isinstance(value, ModuleType):
        return entry(name, "", value.__doc__)
    return entry(name, "", "The table of operators: names, parameters, dtypes, products.")


# ---- openaclnn.torch ----


def definitions() -> dict[str, ast.FunctionDef | ast.ClassDef]:
    """Every top-level function and class of its modules, and what other names stand for one."""
    found: dict[str, ast.FunctionDef | ast.ClassDef] = {}
    for file in (*sorted(TORCH.glob("*.py")), TORCH.parent / "compiled.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.setdefault(node.name, node)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                made = node.value.func if isinstance(node.value, ast.Call) else node.value
                if isinstance(made, ast.Name) and isinstance(found.get(made.id), ast.ClassDef):
                    found.setdefault(node.targets[0].id, found[made.id])
    return found


def torch_names() -> list[str]:
    tree = ast.parse((TORCH / "__init__.py").read_text(encoding="utf-8"))
    (names,) = (
        node.value for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )  # fmt: skip
    return list(ast.literal_eval(names))


def torch_entry(name: str, node: ast.FunctionDef | ast.ClassDef) -> str:
    doc = ast.get_docstring(node)
    if isinstance(node, ast.FunctionDef):
        returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        return entry(name, f"({ast.unparse(node.args)}){returns}", doc)
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    alias = "" if node.name in (name, "FusePass") else f"Another name of `{node.name}`.\n\n"
    return entry(name, "", f"{alias}{doc}") + (f"Derived from `{bases}`.\n\n" if bases else "")


# ---- page ----


def operators(module: str, keyword: bool) -> str:
    lines = ["| function | what it does |", "| --- | --- |"]
    for op in OPS:
        signature = " ".join(python_signature(op).removeprefix("openaclnn.").split())
        if not keyword:  # arrays of JAX cannot be written
            signature = signature.replace(", *, out=None", "")
        lines.append(f"| [`{signature}`](../operators/{op.python}.md) | {op.doc} |")
    return f"{module}\n\n" + "\n".join(lines) + "\n\n"


def page() -> str:
    text = (
        "# Python API\n\nEvery public name. In Python, `help(openaclnn.elu)` shows the same; "
        "examples are on the pages of the [operators](../operators/index.md).\n\n## openaclnn\n\n"
    )
    others = [name for name in openaclnn.__all__ if name not in PYTHON]
    text += "".join(described(name, getattr(openaclnn, name)) for name in others)
    text += "".join(described(name, value) for name, value in RESULTS.items())
    text += "### Operators\n\n" + operators(
        "Arrays are NumPy arrays, torch CPU tensors or DLPack producers.", keyword=True
    )
    text += "## openaclnn.aclnn\n\n" + prose(aclnn.__doc__) + "\n\n"
    text += ", ".join(f"`{name}`" for name in dir(aclnn)) + "\n\n"
    text += "## openaclnn.torch\n\n[How to use it](../howto/pytorch.md). Also every operator as "
    text += "`torch.ops.openaclnn.NAME`.\n\n"
    known = definitions()
    text += "".join(torch_entry(name, known[name]) for name in torch_names())
    text += "## openaclnn.jax\n\n" + operators(
        "[How to use it](../howto/jax.md). Arrays of JAX; all other arguments are static.", False
    )
    text += '## openaclnn.npu\n\nImported before torch, it makes `device="npu"` available: '
    return text + "[the npu device](../howto/npu_device.md).\n"
