# SPDX-License-Identifier: Apache-2.0
"""GroupNorms whose result a SiLU alone takes: in a Sequential, or by the source of a method."""

from __future__ import annotations

import ast
import functools
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn import GroupNorm, Module, Sequential

from ..settings import is_unrestricted
from .dtypes import NAMES, plain
from .fused_call import DEVICES, has_hooks
from .modules import GroupNormSwish
from .replacement import MODEL, NO_SILU, NOT_CALLED, ON_INSTANCE, OTHER, WIDE, Replacement
from .rewriting import Pair, fuse, methods, rewritten
from .source import Source, computes_group_norm, is_silu, value_of

ITSELF = "it is the model itself; use openaclnn.torch.GroupNormSwish if a SiLU follows"
LOOPS = ast.For | ast.comprehension


def is_norm(module: Any) -> bool:
    return isinstance(module, GroupNorm) and computes_group_norm(type(module))


def is_other_norm(module: Module) -> bool:
    """A class derived from GroupNorm, of which replace does not know what it computes."""
    return isinstance(module, GroupNorm) and not (is_norm(module) or type(module) is GroupNormSwish)


def _other_class(module: Module) -> str:
    return f"its class {type(module).__name__}, derived from GroupNorm, {OTHER}"


def peculiar(module: Module) -> str | None:
    """What it has that the module or call in its place would not have."""
    if "forward" in vars(module):
        return ON_INSTANCE
    if has_hooks(module) or any(v for k, v in vars(module).items() if k.endswith("_hooks")):
        return "has hooks"
    held = module._parameters.keys() | module._buffers.keys() | module._modules.keys()
    if more := sorted(held - ({"weight", "bias"} if isinstance(module, GroupNorm) else set())):
        return f"holds {', '.join(more)} too"
    return None


def refusal(norm: GroupNorm) -> str | None:
    """Why openaclnn does not compute it."""
    x = torch.empty(1, norm.num_channels, device="meta")
    try:
        torch.ops.openaclnn.group_norm_swish(x, x[0], x[0], norm.num_groups)
    except ValueError as error:
        return str(error)
    for parameter in norm.parameters():
        if parameter.device.type not in DEVICES:
            return f"its parameters are on {parameter.device}"
        if parameter.dtype == torch.float64 and not is_unrestricted():
            return f"it has {WIDE}"
        if parameter.dtype not in NAMES:
            return f"its parameters are {plain(parameter.dtype)}"
    return None


def swish_of(norm: GroupNorm) -> GroupNormSwish:
    """A module with the same parameters, for optimizers."""
    made = GroupNormSwish(
        norm.num_groups, norm.num_channels, eps=norm.eps, affine=norm.affine, device="meta"
    )
    made.weight, made.bias = norm.weight, norm.bias
    made.train(norm.training)
    return made


@dataclass
class Norms:
    """The norms of a model while they are replaced."""

    model: Module
    report: Replacement
    why: dict[int, str] = field(default_factory=dict)  # by id of the norm, why it stays
    done: set[int] = field(default_factory=set)
    taken: dict[int, str] = field(default_factory=dict)  # Sequentials whose members a method takes
    names: dict[int, str] = field(default_factory=dict)  # of the norms
    refusals: dict[int, str | None] = field(default_factory=dict)

    def refusal(self, norm: GroupNorm) -> str | None:
        if id(norm) not in self.refusals:
            self.refusals[id(norm)] = refusal(norm)
        return self.refusals[id(norm)]

    def run(self) -> None:
        modules = list(self.model.named_modules())
        for name, module in modules:
            if is_other_norm(module):
                self.report.left.setdefault(name or MODEL, _other_class(module))
        self.names = {id(m): name for name, m in modules if is_norm(m)}
        words = {part for name in self.names.values() for part in name.split(".")}
        if not words:
            return
        for _, parent in modules:
            _Holder(self, parent).run(words)
        for name, parent in modules:
            if isinstance(parent, Sequential) and type(parent).forward is Sequential.forward:
                self._fuse_pairs(name, parent)
        for name, module in self.model.named_modules():
            if is_norm(module) and id(module) not in self.done:
                why = self.why.get(id(module), NOT_CALLED)
                self.report.left[name or MODEL] = why if name else ITSELF

    def _fuse_pairs(self, name: str, parent: Sequential) -> None:
        for norm in filter(is_norm, parent._modules.values()):
            self.why.setdefault(id(norm), NO_SILU)
        prefix = f"{name}." if name else ""
        for one, other in itertools.pairwise(list(parent._modules)):
            norm, act = parent._modules[one], parent._modules[other]
            if not isinstance(norm, GroupNorm) or not is_norm(norm):
                continue
            if type(act) is not torch.nn.SiLU or id(norm) in self.done:
                continue
            why = (f"{one} {p}" if (p := peculiar(norm)) else None) or (
                f"{other} {p}" if (p := peculiar(act)) else self.refusal(norm)
            )
            if "forward" in vars(parent):
                why = f"the module that holds it {ON_INSTANCE}"
            why = self.taken.get(id(parent), why)
            if why is not None:
                self.why[id(norm)] = why
                continue
            setattr(parent, one, swish_of(norm))
            setattr(parent, other, torch.nn.Identity())
            done = f"openaclnn.torch.GroupNormSwish, with {prefix}{other}"
            self.report.replaced[prefix + one] = done


class _Holder:
    """A module, and what its methods do with norms."""

    def __init__(self, norms: Norms, parent: Module) -> None:
        self.norms, self.parent = norms, parent
        kind = type(parent)
        self.old: frozenset[Pair] = vars(kind).get("_openaclnn_pairs", frozenset())
        self.kind = kind.__mro__[1] if self.old else kind

    def run(self, words: set[str]) -> None:
        children = [m for m in self.parent._modules.values() if is_norm(m)]
        if "forward" in vars(self.parent):
            for m in children:
                self.norms.why[id(m)] = f"the module that holds it {ON_INSTANCE}"
            return
        pairs: set[Pair] = set()
        changed: set[str] = set()
        fused: dict[int, list[tuple[str, str]]] = {}
        calls: Counter[int] = Counter()
        for name, source in methods(self.kind, words):
            where = f"{self.kind.__name__}.{name}"
            if source is None:
                text = f"Python has no source of {where}; put the class into a file"
                self.norms.why |= {id(m): text for m in children}
                continue
            self._look(source, where, calls)
            for norm, act in fuse(source, functools.partial(self._accepts, source))[1]:
                found = value_of(norm, source, self.parent)
                text = "SiLU" if isinstance(act, ast.BinOp) else ast.unparse(act)
                fused.setdefault(id(found), []).append((text.removeprefix("self."), where))
                pairs.add((ast.unparse(norm), ast.unparse(act)))
                changed.add(name)
        if not pairs:
            return
        if pairs != self.old:
            made = rewritten(self.kind, frozenset(changed), frozenset(pairs))
            self.parent.__class__ = made
        for key, places in fused.items():
            self.norms.done.add(key)
            self.norms.why.pop(key, None)
            follower, where = places[0]
            some = ""
            if len(places) < calls[key]:
                some = f", in {len(places)} of its {calls[key]} calls, those that a SiLU follows"
            if pairs != self.old:
                done = f"one call with {follower} in {where}{some}"
                self.norms.report.replaced[self.norms.names[key]] = done

    def _accepts(self, source: Source, norm: ast.expr, act: ast.expr) -> bool:
        module = value_of(norm, source, self.parent)
        if not isinstance(module, GroupNorm) or id(module) not in self.norms.names:
            return False
        if not is_silu(act, source, self.parent):
            return False
        why = self.norms.refusal(module)
        if (p := peculiar(module)) is not None:
            why = f"it {p}"
        follower = None if isinstance(act, ast.BinOp) else value_of(act, source, self.parent)
        if isinstance(follower, Module) and (p := peculiar(follower)) is not None:
            why = f"{ast.unparse(act).removeprefix('self.')} {p}"
        if why is not None:
            self.norms.why[id(module)] = why
        return why is None

    def _look(self, source: Source, where: str, calls: Counter[int]) -> None:
        """Counts the calls of norms, and finds Sequentials of which a method takes members."""
        for e in _expressions(source.tree):
            if isinstance(e, ast.Call):
                norm = id(value_of(e.func, source, self.parent))
                if norm in self.norms.names:
                    calls[norm] += 1
                    self.norms.why.setdefault(norm, f"{NO_SILU} in {where}")
            elif isinstance(e, ast.Subscript | LOOPS):
                taken = e.value if isinstance(e, ast.Subscript) else e.iter
                held = value_of(taken, source, self.parent)
                if isinstance(held, Sequential):
                    self.norms.taken[id(held)] = f"{where} takes the modules of its Sequential"


def _expressions(tree: ast.AST) -> Iterator[ast.AST]:
    return (e for e in ast.walk(tree) if isinstance(e, ast.Call | ast.Subscript | LOOPS))
