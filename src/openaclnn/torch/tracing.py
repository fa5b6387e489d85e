# SPDX-License-Identifier: Apache-2.0
"""What a forward calls, by every way through it that torch.fx can be led."""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import torch
from torch.fx import Node, Proxy, Tracer
from torch.fx.proxy import TraceError
from torch.nn import Module

Calls = list[Node]  # of modules, by one way through a forward


class _Value(Proxy):
    @property  # type: ignore[misc]  # object's can be set
    def __class__(self) -> Any:
        """isinstance asks for it, in the frame of its caller: a forward may go by the answer."""
        caller = sys._getframe(1)
        own = caller.f_globals.get("__name__", "").startswith("torch.")
        if not own and "isinstance" in caller.f_code.co_names:
            self.tracer.refuse("it asks for the type of a value")
        return Proxy


class _OneLevel(Tracer):
    """Sees the forward of one module; modules in it are calls."""

    def __init__(self) -> None:
        super().__init__()
        self.doubt = ""

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True

    def proxy(self, node: Node) -> Proxy:
        return _Value(node, self)

    def create_arg(self, a: Any) -> Any:
        return a.node if isinstance(a, Proxy) else super().create_arg(a)

    def refuse(self, why: str, *_: Any, **__: Any) -> NoReturn:
        """Makes the trace void, whatever the forward does with the error."""
        self.doubt = self.doubt or why
        raise TraceError(why)

    def to_bool(self, obj: Proxy) -> bool:
        self.refuse("it decides by the value of a tensor")

    def iter(self, obj: Proxy) -> Iterator[Proxy]:
        self.refuse("it loops over a tensor")


EVERY = 4  # so many arguments are None in every combination


def _absences(module: Module) -> Iterator[tuple[str, ...]]:
    """The arguments that are None in a call, of those that are None by default or, after the first,
    have no default; of more than EVERY none, one, all but one, or all. A trace gives the others a
    value, which is not None."""
    names = [
        p.name
        for i, p in enumerate(inspect.signature(type(module).forward).parameters.values())
        if p.default is None
        or (i > 1 and p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))
    ]
    every = range(len(names) + 1)
    counts = every if len(names) <= EVERY else {0, 1, len(names) - 1, len(names)}
    for count in sorted(counts):
        yield from itertools.combinations(names, count)


def _copy(module: Module) -> Module:
    """A module that writes into buffers and attributes of its own."""
    own = object.__new__(type(module))
    own.__dict__ = module.__dict__ | {
        "_parameters": dict(module._parameters),
        "_modules": dict(module._modules),
        "_buffers": {k: None if b is None else b.clone() for k, b in module._buffers.items()},
    }
    return own


def _apart(module: Module, watched: Iterable[str], tracer: _OneLevel) -> Module:
    """A copy of the module and of these children. A call of a child is seen and does not run its
    forward; so where that runs, nothing else has seen it."""
    own = _copy(module)
    copies: dict[int, Module] = {}
    for key in watched:
        child = module._modules[key]
        if id(child) not in copies:  # a module of two names stays one module
            copies[id(child)] = _copy(child)
            refuse = functools.partial(tracer.refuse, f"it calls {key}.forward itself")
            copies[id(child)].__dict__["forward"] = refuse
        own._modules[key] = copies[id(child)]
    return own


def _is_no_call(error: Exception, absent: tuple[str, ...]) -> bool:
    """Whether the forward itself refuses a call without these arguments."""
    if not absent or isinstance(error, TraceError):
        return False
    return "NoneType" in str(error) or isinstance(error, ValueError | AssertionError)


def calls_of(module: Module, watched: list[str]) -> list[Calls] | str:
    """What its forward calls, for each way through it, or why torch.fx cannot trace it.

    One trace takes one way: `self.training` and `argument is None` are not in the graph. A call
    of the forward of a watched child, instead of the child, is no call that a trace sees.
    """
    found = []
    with torch.random.fork_rng(devices=[]):  # a forward may draw
        for training, recorded, absent in itertools.product(
            (True, False), (True, False), _absences(module)
        ):
            tracer = _OneLevel()
            own = _apart(module, watched, tracer)
            own.training = training
            doubt = ""
            try:
                with torch.set_grad_enabled(recorded):
                    graph = tracer.trace(own, dict.fromkeys(absent))
            except Exception as error:  # the tracer runs the forward: anything may come
                if not tracer.doubt and _is_no_call(error, absent):
                    continue
                doubt = str(error) or type(error).__name__
            if doubt := tracer.doubt or doubt:
                way = f"torch.fx cannot trace the forward of {type(module).__name__}"
                way += " in training" if training else " in evaluation"
                way += "" if recorded else " under no_grad"
                way += f" without {', '.join(absent)}" if absent else ""
                return f"{way}: {doubt}"
            found.append([node for node in graph.nodes if node.op == "call_module"])
    return found
