# SPDX-License-Identifier: Apache-2.0
"""Puts the modules of openaclnn.torch into a model in place of torch.nn's."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch.fx import Node
from torch.nn import Module

from ..settings import is_unrestricted
from .dtypes import NAMES, plain
from .modules import ELU, GroupNormSwish, Hardshrink, LeakyReLU
from .tracing import Calls, calls_of


@dataclass
class Replacement:
    """What `replace` did, by name of the module, and what it left, with the reason."""

    replaced: dict[str, str] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{name}: {what}" for name, what in self.replaced.items()]
        lines += [f"{name}: left as it is, because {why}" for name, why in self.left.items()]
        return "\n".join(lines) or "nothing to replace"


def replace(model: Module) -> Replacement:
    """Exchanges ELU, LeakyReLU, Hardshrink, and each GroupNorm that only a SiLU follows.

    Works on the model itself; parameters, names and the state_dict stay. A GroupNorm is followed by
    a SiLU in a Sequential, or in a forward that torch.fx can trace: in training and in evaluation,
    with gradients and without, with and without the arguments that may be None. Modules are
    expected to be called by the module that holds them.
    """
    if not isinstance(model, Module):
        raise TypeError(f"replace: model must be a torch.nn.Module, but got {type(model).__name__}")
    report = Replacement()
    _replace_activations(model, report)
    why: dict[int, str] = {}
    for name, parent in list(model.named_modules()):
        for activation, norms in _groups(parent, why):
            reason = _refusal(parent, activation, norms)
            if reason is None:
                report.replaced |= _fuse(name, parent, activation, norms)
            else:
                why |= {id(getattr(parent, key)): reason for key in norms}
    for name, module in model.named_modules():
        if _is_norm(module):
            report.left[name] = why.get(id(module), "no SiLU alone takes its result")
    return report


def _peculiar(module: Module) -> str | None:
    """What it has that the module in its place would not have."""
    if "forward" in vars(module):
        return "has a forward of its own"
    if any(found for name, found in vars(module).items() if name.endswith("_hooks")):
        return "has hooks"
    held = module._parameters.keys() | module._buffers.keys() | module._modules.keys()
    if more := sorted(held - ({"weight", "bias"} if _is_norm(module) else set())):
        return f"holds {', '.join(more)} too"
    return None


def _like(module: Module, made: Module) -> Module:
    made.train(module.training)
    return made


def _activation(module: Module) -> Module | None:
    """Ours for one of torch.nn's; subclasses may do something else."""
    if type(module) is torch.nn.ELU:
        return ELU(module.alpha, module.inplace)
    if type(module) is torch.nn.LeakyReLU:
        return LeakyReLU(module.negative_slope, module.inplace)
    return Hardshrink(module.lambd) if type(module) is torch.nn.Hardshrink else None


def _replace_activations(model: Module, report: Replacement) -> None:
    made: dict[int, Module] = {}  # a module of two names stays one module
    wide = not is_unrestricted() and any(p.dtype == torch.float64 for p in model.parameters())
    for name, parent in list(model.named_modules()):
        for key, child in list(parent._modules.items()):  # named_children: one name of each
            if child is None:
                continue
            full = f"{name}.{key}" if name else key
            ours = made.get(id(child)) or _activation(child)
            if ours is None:
                continue
            peculiar = _peculiar(child)
            if peculiar is not None:
                report.left[full] = f"it {peculiar}"
                continue
            if wide and not isinstance(child, torch.nn.LeakyReLU):
                report.left[full] = "the model has float64 parameters"
                continue
            made[id(child)] = _like(child, ours)
            setattr(parent, key, ours)
            report.replaced[full] = f"openaclnn.torch.{type(ours).__name__}"
    if _activation(model) is not None:
        report.left["(the model)"] = "it is the model itself; make one of openaclnn.torch"


# ---- GroupNorm and SiLU ----


def _groups(parent: Module, why: dict[int, str]) -> Iterator[tuple[str, list[str]]]:
    """Names in `parent`: a SiLU and the GroupNorms, all of what it follows."""
    children = {key: m for key, m in parent._modules.items() if m is not None}
    if "forward" in vars(parent):
        text = "the module that holds it has a forward of its own"
        why |= {id(m): text for m in children.values() if _is_norm(m)}
    elif type(parent) is torch.nn.Sequential:
        keys = list(children)
        for one, other in itertools.pairwise(keys):
            if _is_norm(children[one]) and _is_silu(children[other]):
                yield other, [one]
    elif type(parent) not in (torch.nn.ModuleList, torch.nn.ModuleDict):
        yield from _traced_groups(parent, children, why)


def _traced_groups(
    parent: Module, children: dict[str, Module], why: dict[int, str]
) -> Iterator[tuple[str, list[str]]]:
    if not any(map(_is_norm, children.values())):
        return
    watched = [key for key, m in children.items() if _is_norm(m) or _is_silu(m)]
    traces = calls_of(parent, watched)
    if isinstance(traces, str):
        why |= {id(m): traces for m in children.values() if _is_norm(m)}
        return
    for key in (name for name, module in children.items() if _is_silu(module)):
        norms, alone = _followed(key, children, list(itertools.chain(*traces)))
        if norms and alone:
            yield key, norms
            continue
        text = f"{key}, which follows it, has other inputs too, or it is used elsewhere too"
        if any(all(_followed(key, children, calls)) for calls in traces):
            depends = "the forward depends on training, on gradients or on an argument"
            text = f"{key} follows it in some calls only: {depends}"
        why |= {id(children[name]): text for name in norms}


def _followed(activation: str, children: dict[str, Module], calls: Calls) -> tuple[list[str], bool]:
    """The norms whose results the activation takes, and whether it takes nothing else and all of
    these results: it can go then."""
    own = [node for node in calls if node.target == activation]
    sources = [_norm_before(node, children) for node in own]
    norms = [name for name in sources if name is not None]
    made = [node for node in calls if node.target in norms]
    return list(dict.fromkeys(norms)), len(norms) == len(own) == len(made)


def _is_norm(module: Module) -> bool:
    return type(module) is torch.nn.GroupNorm


def _is_silu(module: Module) -> bool:
    return type(module) is torch.nn.SiLU


def _norm_before(node: Node, children: dict[str, Module]) -> str | None:
    """The GroupNorm whose result goes into this call and nowhere else."""
    source = node.args[0] if node.args else None
    if not isinstance(source, Node) or source.op != "call_module" or len(source.users) != 1:
        return None
    name = str(source.target)
    return name if name in children and _is_norm(children[name]) else None


def _refusal(parent: Module, activation: str, norms: list[str]) -> str | None:
    """Why these modules stay as they are."""
    held = [m for _, m in parent.named_modules(remove_duplicate=False)]
    for key in (activation, *norms):
        module = getattr(parent, key)
        peculiar = _peculiar(module)
        if peculiar is not None:
            return f"{key} {peculiar}"
        if type(parent) is not torch.nn.Sequential and sum(m is module for m in held) > 1:
            return f"{key} has several names"  # the forward may call it by another
    for norm in (getattr(parent, key) for key in norms):
        x = torch.empty(1, norm.num_channels, device="meta")
        try:
            torch.ops.openaclnn.group_norm_swish(x, x[0], x[0], norm.num_groups)
        except ValueError as error:
            return str(error)
        for parameter in norm.parameters():
            if parameter.device.type not in ("cpu", "cuda", "meta"):
                return f"its parameters are on {parameter.device}"
            if parameter.dtype not in NAMES or parameter.dtype == torch.float64:
                return f"its parameters are {plain(parameter.dtype)}"
    return None


def _fuse(model_name: str, parent: Module, activation: str, norms: list[str]) -> dict[str, str]:
    """One for each norm, and nothing where the activation was."""
    prefix = f"{model_name}." if model_name else ""
    done = {}
    for key in norms:
        norm = getattr(parent, key)
        made = GroupNormSwish(
            norm.num_groups, norm.num_channels, eps=norm.eps, affine=norm.affine, device="meta"
        )
        made.weight, made.bias = norm.weight, norm.bias  # the same parameters, for optimizers
        setattr(parent, key, _like(norm, made))
        done[prefix + key] = f"openaclnn.torch.GroupNormSwish, with {prefix}{activation}"
    setattr(parent, activation, torch.nn.Identity())
    return done
