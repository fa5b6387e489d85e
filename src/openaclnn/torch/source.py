# SPDX-License-Identifier: Apache-2.0
"""Sources of functions, and what the expressions in them are."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import textwrap
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch
from torch.nn import GroupNorm, Module, ModuleDict, ModuleList, Sequential

from .fused_call import NORMS, SILU

SIGMOID = {torch.sigmoid, torch.nn.functional.sigmoid}
CONTAINERS = (ModuleList, Sequential, ModuleDict, list, tuple, dict)
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True)
class Source:
    """A function below its decorators, and its tree with the lines of its file."""

    function: FunctionType
    tree: ast.FunctionDef
    text: str
    first: int  # line

    def copy(self) -> ast.FunctionDef:
        tree: ast.FunctionDef = _parsed(self.text, self.first)
        return tree

    @property
    def parameters(self) -> list[str]:
        a = self.tree.args
        return [p.arg for p in (*a.posonlyargs, *a.args)]

    @functools.cached_property
    def written(self) -> list[str]:
        """Names of arguments and variables, of functions inside too, as often as they are set."""
        nodes = list(ast.walk(self.tree))
        names = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        return names + [n.arg for n in nodes if isinstance(n, ast.arg)]


@functools.cache
def source_of(function: Any) -> Source | None:
    """None where Python has no source, for example of functions that `exec` made."""
    raw = inspect.unwrap(function)
    try:
        lines, first = inspect.getsourcelines(raw)
        text = textwrap.dedent("".join(lines))
        tree = _parsed(text, first)
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    is_function = isinstance(raw, FunctionType) and isinstance(tree, ast.FunctionDef)
    return Source(raw, tree, text, first) if is_function else None


def _parsed(text: str, first: int) -> Any:
    (tree,) = ast.parse(text).body
    return ast.increment_lineno(tree, first - 1)


def _member(holder: Any, name: str) -> Any:
    """An attribute, without running properties."""
    if isinstance(holder, Module):
        own = holder._modules.get(name, holder.__dict__.get(name))
        return inspect.getattr_static(holder, name, None) if own is None else own
    return inspect.getattr_static(holder, name, None)


def value_of(expression: ast.expr, source: Source, self: Any) -> Any:
    """What an expression like self.norm, self.norms[0] or functional.silu is; None if unknown."""
    if isinstance(expression, ast.Attribute):
        return _member(value_of(expression.value, source, self), expression.attr)
    if isinstance(expression, ast.Subscript) and isinstance(expression.slice, ast.Constant):
        holder, key = value_of(expression.value, source, self), expression.slice.value
        try:
            return holder[key] if isinstance(holder, CONTAINERS) else None  # type: ignore[index]
        except (LookupError, TypeError):
            return None
    if not isinstance(expression, ast.Name):
        return None
    name, function = expression.id, source.function
    if self is not None and source.parameters[:1] == [name]:
        return self if source.written.count(name) == 1 else None
    if name in source.written:
        return None
    code = function.__code__
    if name in code.co_freevars:
        cell = (function.__closure__ or ())[code.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:  # not bound yet
            return None
    return function.__globals__.get(name, getattr(builtins, name, None))


def activation_call(expression: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """An expression that may be a SiLU, and its input: f(x) or x * f(x)."""
    if isinstance(expression, ast.Call):
        known = all(k.arg == "inplace" for k in expression.keywords)
        if known and len(expression.args) == 1 and not isinstance(expression.args[0], ast.Starred):
            return expression.func, expression.args[0]
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Mult):
        for x, gate in (
            (expression.left, expression.right),
            (expression.right, expression.left),
        ):
            if isinstance(x, ast.Name) and isinstance(gate, ast.Call):
                return expression, x
    return None


def _is_gate(gate: ast.Call, x: ast.Name, source: Source, self: Any) -> bool:
    """sigmoid(x) or x.sigmoid()."""

    def is_x(e: ast.expr) -> bool:
        return isinstance(e, ast.Name) and e.id == x.id

    f, arguments = gate.func, gate.args
    if gate.keywords:
        return False
    if isinstance(f, ast.Attribute) and f.attr == "sigmoid" and is_x(f.value):
        return not arguments
    if len(arguments) != 1 or not is_x(arguments[0]):
        return False
    value = value_of(f, source, self)
    return type(value) is torch.nn.Sigmoid or _is_in(value, SIGMOID)


def is_silu(activation: ast.expr, source: Source, self: Any) -> bool:
    """Whether the first part of what `activation_call` returns is a SiLU."""
    if isinstance(activation, ast.BinOp):
        x, gate = activation.left, activation.right
        if isinstance(gate, ast.Name):
            x, gate = gate, x
        is_call = isinstance(x, ast.Name) and isinstance(gate, ast.Call)
        return is_call and _is_gate(gate, x, source, self)  # type: ignore[arg-type]
    value = value_of(activation, source, self)
    return value is not None and computes_silu(value)


def computes_silu(value: Any) -> bool:
    """torch's SiLU, or a function or module that does nothing but return one."""
    kind = type(value) if isinstance(value, Module) else value
    if not callable(kind):
        return False
    is_module = isinstance(value, Module)
    if not _is_in(kind, SILU) and _returns_silu(kind.forward if is_module else kind, is_module):
        SILU.add(kind)
    return _is_in(kind, SILU)


def computes_group_norm(kind: type) -> bool:
    """torch's GroupNorm, or a subclass that computes the same, in float32 too (GroupNorm32)."""
    if kind not in NORMS and kind.__mro__[1] is GroupNorm and kind.__call__ is Module.__call__:
        own = vars(kind).get("forward")
        if own is None or _returns_group_norm(own, kind.__name__):
            NORMS.add(kind)
    return kind in NORMS


def _returns_group_norm(forward: Any, name: str) -> bool:
    source = source_of(forward) if isinstance(forward, FunctionType) else None
    if source is None or source.tree.decorator_list or len(source.parameters) != 2:
        return False
    self, x = source.parameters
    body = [ast.unparse(s) for s in source.tree.body if not _is_text(s)]
    norms = [f"{base}.forward({x}.float())" for base in ("super()", f"super({name}, {self})")]
    return len(body) == 1 and body[0] in {
        f"return {norm}.{cast}({x}.dtype)" for norm in norms for cast in ("type", "to")
    }


def _is_in(value: Any, known: set[Any]) -> bool:
    return any(value is one for one in known)


def _returns_silu(function: Any, is_method: bool) -> bool:
    source = source_of(function) if isinstance(function, FunctionType) else None
    if source is None or source.tree.decorator_list or source.function is not function:
        return False
    body = [s for s in source.tree.body if not _is_text(s)]
    if len(source.parameters) != 1 + is_method or len(body) != 1:
        return False
    returned = body[0].value if isinstance(body[0], ast.Return) else None
    found = None if returned is None else activation_call(returned)
    if found is None:
        return False
    activation, x = found
    if not isinstance(x, ast.Name) or x.id != source.parameters[-1]:
        return False
    if isinstance(activation, ast.BinOp):
        return is_silu(activation, source, None)
    return _is_in(value_of(activation, source, None), SILU)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
