# SPDX-License-Identifier: Apache-2.0
"""Methods in which a SiLU takes the result of a GroupNorm, written again with one call for both.

    h = self.norm(x)
    h = self.act(h)     becomes     h = silu_of_norm(self.act, self.norm, x); h = h

The source proves that the norm's result goes nowhere else, whatever way a call takes. An object of
a class gets a class derived from it; modules, parameters and names stay.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import copy
import functools
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from torch.nn import Module, functional

from .fused_call import silu_of_norm
from .source import FUNCTIONS, Source, activation_call, source_of

FUSED = "_openaclnn_silu_of_norm"
ENDS = ast.Return | ast.Raise | ast.Continue | ast.Break
SIMPLE = ast.Assign | ast.Return | ast.Expr | ast.AugAssign
FLAGS = functools.reduce(
    lambda a, b: a | b, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names)
)
# Whether a call of this norm and this activation may become one; both as written in a method.
Accept = Callable[[ast.expr, ast.expr], bool]
Pair = tuple[str, str]  # norm and activation as texts


def _result(s: ast.stmt) -> str | None:
    """v of a statement v = ..."""
    if isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name):
        return s.targets[0].id
    return None


def _names(tree: ast.AST, name: str) -> list[ast.Name]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == name]


class _Fuser(ast.NodeTransformer):
    """Changes a method in place; `fused` are the norms and activations that became one call."""

    def __init__(self, method: ast.FunctionDef, accept: Accept) -> None:
        self.method, self.accept = method, accept
        self.fused: list[tuple[ast.expr, ast.expr]] = []

    def _norm(self, e: ast.expr, activation: ast.expr) -> ast.Call | None:
        """The expression as a call norm(x) that this activation may follow."""
        if not isinstance(e, ast.Call) or e.keywords or len(e.args) != 1:
            return None
        if isinstance(e.args[0], ast.Starred) or not self.accept(e.func, activation):
            return None
        return e

    def _fused(self, norm: ast.Call, activation: ast.expr, at: ast.expr) -> ast.expr:
        self.fused.append((norm.func, activation))
        f: ast.expr = activation
        if isinstance(f, ast.BinOp):
            f = ast.Name(FUSED + "_default", ast.Load())
        call = ast.Call(ast.Name(FUSED, ast.Load()), [f, norm.func, norm.args[0]], [])
        return ast.fix_missing_locations(ast.copy_location(call, at))

    def visit(self, node: ast.AST) -> Any:
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(node, field, None)
            if isinstance(statements, list):
                self._sink(statements)
                self._join(statements)
        return super().visit(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        found = activation_call(node)
        if found is not None and (norm := self._norm(found[1], found[0])) is not None:
            return self._fused(norm, found[0], node)  # type: ignore[arg-type]
        return node

    def _sink(self, statements: list[ast.stmt]) -> None:
        """if c: v = norm(x), else: v = ..., then v = act(v): the last one moves into both."""
        for i in range(len(statements) - 1, 0, -1):
            branch, s = statements[i - 1 : i + 1]
            v = _result(s)
            found = activation_call(s.value) if isinstance(s, ast.Assign) else None
            if found is None or v is None or not isinstance(branch, ast.If):
                continue
            if not isinstance(found[1], ast.Name) or found[1].id != v:
                continue
            if any(self._ends_in_norm(b, v, found[0]) for b in _branches(branch)):
                _append(branch, s)
                del statements[i]

    def _ends_in_norm(self, statements: list[ast.stmt], v: str, activation: ast.expr) -> bool:
        last = statements[-1] if statements else None
        if isinstance(last, ast.If):
            return any(self._ends_in_norm(b, v, activation) for b in _branches(last))
        if not isinstance(last, ast.Assign) or _result(last) != v:
            return False
        return self._norm(last.value, activation) is not None

    def _join(self, statements: list[ast.stmt]) -> None:
        """v = norm(x), then the one use of it, act(v)."""
        for i, s in enumerate(statements):
            v = _result(s)
            if v is None:
                continue
            for j in range(i + 1, len(statements)):
                other = statements[j]
                if not isinstance(other, SIMPLE):
                    break
                if _names(other, v):
                    self._join_two(s, other, v, adjacent=j == i + 1)  # type: ignore[arg-type]
                    break

    def _join_two(self, s: ast.Assign, other: ast.stmt, v: str, adjacent: bool) -> None:
        for e in ast.walk(other):
            found = activation_call(e)
            if found is None or not isinstance(found[1], ast.Name) or found[1].id != v:
                continue
            reads = [n for n in _names(other, v) if not isinstance(n.ctx, ast.Store)]
            if len(reads) != len(_names(e, v)):
                return
            gone = _result(other) == v or isinstance(other, ast.Return)
            if not (adjacent and gone and not self._is_captured(v)) and not self._is_own(
                v, len(reads)
            ):
                return
            if (norm := self._norm(s.value, found[0])) is not None:
                s.value = self._fused(norm, found[0], s.value)
                _Exchange(e, v).visit(other)
            return

    def _is_captured(self, v: str) -> bool:
        inner = [n for n in ast.walk(self.method) if isinstance(n, FUNCTIONS)]
        return any(n is not self.method and _names(n, v) for n in inner)

    def _is_own(self, v: str, reads: int) -> bool:
        """Whether a variable of the method is written once and has no other reads."""
        given = [a for a in ast.walk(self.method) if isinstance(a, ast.arg) and a.arg == v]
        names = _names(self.method, v)
        stores = [n for n in names if isinstance(n.ctx, ast.Store)]
        return not given and len(stores) == 1 and len(names) == 1 + reads


class _Exchange(ast.NodeTransformer):
    """A variable in the place of an expression."""

    def __init__(self, old: ast.AST, name: str) -> None:
        self.old, self.name = old, name

    def visit(self, node: ast.AST) -> Any:
        if node is not self.old:
            return super().visit(node)
        return ast.copy_location(ast.Name(self.name, ast.Load()), node)


def _branches(s: ast.If) -> Iterator[list[ast.stmt]]:
    yield s.body
    yield s.orelse


def _append(branch: ast.If, s: ast.stmt) -> None:
    for statements in _branches(branch):
        if not (statements and isinstance(statements[-1], ENDS)):
            statements.append(copy.deepcopy(s))


def _is_private(node: ast.AST) -> bool:
    """__name: Python spells it by the class around it."""
    name = getattr(node, "id", None) or getattr(node, "attr", None) or ""
    return name.startswith("__") and not name.endswith("__")


def fuse(source: Source, accept: Accept) -> tuple[ast.FunctionDef, list[tuple[ast.expr, ast.expr]]]:
    """The method with one call for each norm and activation, and these."""
    tree = source.copy()
    nodes = list(ast.walk(tree))
    if any(isinstance(n, ast.Global | ast.Nonlocal) or _is_private(n) for n in nodes):
        return tree, []
    fuser = _Fuser(tree, accept)
    fuser.visit(tree)
    return tree, fuser.fused


def _compiled(source: Source, tree: ast.FunctionDef) -> Any:
    """The function that the tree defines, with the globals, closure and decorators of the old."""
    old = source.function
    free = dict(zip(old.__code__.co_freevars, old.__closure__ or (), strict=True))
    values: dict[str, Any] = {}
    for name, cell in free.items():
        with contextlib.suppress(ValueError):  # not bound yet
            values[name] = cell.cell_contents
    values |= {FUSED: silu_of_norm, FUSED + "_default": functional.silu}
    a = tree.args  # defaults and annotations are taken from the old function
    a.defaults = [ast.Constant(None) for _ in a.defaults]
    a.kw_defaults = [d and ast.Constant(None) for d in a.kw_defaults]
    for p in ast.walk(a):
        if isinstance(p, ast.arg):
            p.annotation = None
    tree.returns = None
    outer = ast.parse(f"def outer({', '.join(values)}):\n    return {tree.name}").body[0]
    assert isinstance(outer, ast.FunctionDef)
    outer.body.insert(0, tree)
    module = ast.fix_missing_locations(ast.Module([outer], []))
    flags = old.__code__.co_flags & FLAGS
    code = compile(module, old.__code__.co_filename, "exec", flags, dont_inherit=True)
    made: dict[str, Any] = {}
    exec(code, old.__globals__, made)
    function = made["outer"](**values)
    for own in _layers(function):
        own.__qualname__ = old.__qualname__
    inner = list(_layers(function))[-1]
    for name in ("__defaults__", "__kwdefaults__", "__annotations__"):
        setattr(inner, name, getattr(old, name))
    return function


def _layers(function: Any) -> Iterator[Any]:
    yield function
    while (function := getattr(function, "__wrapped__", None)) is not None:
        yield function


def methods(kind: type[Module], words: set[str]) -> Iterator[tuple[str, Source | None]]:
    """Methods of a class, not those of torch, that name one of these attributes."""
    seen = set()
    for base in kind.__mro__:
        if base.__module__.startswith("torch."):
            continue
        for name, function in vars(base).items():
            if name in seen:
                continue
            seen.add(name)
            raw = _innermost(function)
            if isinstance(raw, FunctionType) and words & set(_words(raw.__code__)):
                yield name, source_of(function)


def _innermost(function: Any) -> Any:
    return list(_layers(function))[-1] if isinstance(function, FunctionType) else None


def _words(code: Any) -> Iterator[str]:
    yield from code.co_names
    for c in code.co_consts:
        if hasattr(c, "co_names"):
            yield from _words(c)


def accepting(pairs: frozenset[Pair]) -> Accept:
    return lambda norm, activation: (ast.unparse(norm), ast.unparse(activation)) in pairs


@functools.cache
def rewritten(kind: Any, names: frozenset[str], pairs: frozenset[Pair]) -> type[Module]:
    """The class with these methods written again for these pairs of norm and activation."""
    made: dict[str, Any] = {}
    for name in sorted(names):
        source = source_of(getattr(kind, name))
        assert source is not None
        tree, _ = fuse(source, accepting(pairs))
        made[name] = _compiled(source, tree)

    def reduce(self: Any, protocol: Any) -> Any:
        """Copies and pickles name the class from which this one is derived."""
        reduced: Any = kind.__reduce_ex__(self, protocol)
        return _restored, (kind, names, pairs), *reduced[2:]

    made |= {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    made |= {"__doc__": kind.__doc__, "__reduce_ex__": reduce, "_openaclnn_pairs": pairs}
    made_class: type[Module] = type(kind)(kind.__name__, (kind,), made)
    return made_class


def _restored(kind: Any, names: frozenset[str], pairs: frozenset[Pair]) -> Any:
    return object.__new__(rewritten(kind, names, pairs))
