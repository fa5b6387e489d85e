# SPDX-License-Identifier: Apache-2.0
"""Puts the operators of openaclnn.torch into an existing model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import Module

from ..settings import is_unrestricted
from .modules import ELU, Hardshrink, LeakyReLU
from .norms import Norms, peculiar, refusal, swish_of
from .replacement import MODEL, ON_INSTANCE, WIDE, Replacement

Make = Callable[[Any], Module | None]


def replace(model: Module) -> Replacement:
    """Exchanges ELU, LeakyReLU, Hardshrink, and each GroupNorm whose result a SiLU alone takes.

    Works on the model itself; parameters, names and the state_dict stay. The SiLU follows in a
    Sequential, or in the source of a method, which proves that nothing else takes the result:
    `self.act(self.norm(x))`, `h = self.norm(x)` and then `h = self.act(h)`, with branches between
    too. It is a module, also one that others share, functional.silu, x * sigmoid(x), or a function
    or module that only returns one of these. Of methods one call for both is written, which checks
    each time that norm and activation are still what they were.
    """
    if not isinstance(model, Module):
        raise TypeError(f"replace: model must be a torch.nn.Module, but got {type(model).__name__}")
    report = Replacement()
    _exchange(model, report)
    Norms(model, report).run()
    return report


def register_replacement(kind: type[Module] | str, make: Make) -> None:
    """`replace` calls `make` with each module of this class, subclasses not included.

    It returns the module to put in its place, which may be the same module after a change, or None
    to leave it. The class may be given by its name with that of its module, to be imported later.
    """
    if not isinstance(kind, type | str):
        raise TypeError(
            "register_replacement: kind must be a class or its name, "
            f"but got an instance of {type(kind).__name__}"
        )
    if not callable(make):
        raise TypeError(
            "register_replacement: make must be a function of the module, "
            f"but got {type(make).__name__}"
        )
    _MAKE[kind if isinstance(kind, str) else _name(kind)] = make


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _norm_and_act(module: Any) -> Module | None:
    """timm's GroupNormAct: dropout and activation are modules in the norm."""
    plain = type(module.act) is torch.nn.SiLU and type(module.drop) is torch.nn.Identity
    if not plain or peculiar(module.act) or peculiar(module.drop) or refusal(module):
        return None
    return swish_of(module)


_MAKE: dict[str, Make] = {
    _name(torch.nn.ELU): lambda m: ELU(m.alpha, m.inplace),
    _name(torch.nn.LeakyReLU): lambda m: LeakyReLU(m.negative_slope, m.inplace),
    _name(torch.nn.Hardshrink): lambda m: Hardshrink(m.lambd),
    "timm.layers.norm_act.GroupNormAct": _norm_and_act,
}
_NO_FLOAT64 = (torch.nn.ELU, torch.nn.Hardshrink)


def _exchange(model: Module, report: Replacement) -> None:
    """Modules of registered classes."""
    made: dict[int, Module] = {}  # a module of two names stays one module
    wide = not is_unrestricted() and any(p.dtype == torch.float64 for p in model.parameters())
    for name, parent in list(model.named_modules()):
        for key, child in list(parent._modules.items()):  # named_children: one name of each
            make = None if child is None else _MAKE.get(_name(type(child)))
            if child is None or make is None:
                continue
            full = f"{name}.{key}" if name else key
            if (why := _why_not(child, wide)) is not None:
                report.left[full] = why
                continue
            ours = made.get(id(child)) or make(child)
            if ours is None:
                continue
            if not isinstance(ours, Module):
                raise TypeError(
                    f"replace: make of {_name(type(child))} must return a torch.nn.Module, or None "
                    f"to leave it, but returned {type(ours).__name__}"
                )
            ours.train(child.training)
            made[id(child)] = ours
            setattr(parent, key, ours)
            report.replaced[full] = _text(ours)
    if _name(type(model)) in _MAKE:
        report.left[MODEL] = "it is the model itself; make one of openaclnn.torch"


def _text(module: Module) -> str:
    kind = type(module)
    own = kind.__module__.startswith(f"{__package__}.")
    return f"{__package__}.{kind.__name__}" if own else _name(kind)


def _why_not(module: Module, wide: bool) -> str | None:
    if type(module).__module__.startswith("torch."):  # what a registered class holds is known
        if (p := peculiar(module)) is not None:
            return f"it {p}"
        if wide and type(module) in _NO_FLOAT64:
            return f"the model has {WIDE}"
    elif "forward" in vars(module):
        return f"it {ON_INSTANCE}"
    return None
