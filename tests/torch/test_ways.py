# SPDX-License-Identifier: Apache-2.0
"""replace(model) reads in the source of a method which norms a SiLU alone follows."""

from __future__ import annotations

import functools

import pytest
from tests.torch.replace_support import Residual, check, images
from tests.torch.torch_support import torch

import openaclnn.torch as ot

nn, functional = torch.nn, torch.nn.functional


def nonlinearity(x):
    """As VQGAN writes it."""
    return x * torch.sigmoid(x)


def shifted(x):
    return x * torch.sigmoid(x + 1)


class Swish(nn.Module):
    def forward(self, x):
        return functional.silu(x)


def passing(function):
    @functools.wraps(function)
    def wrapped(*arguments, **named):
        return function(*arguments, **named)

    return wrapped


# ---- both norms are followed ----


def in_branches(self, x, skip=None):
    """diffusers' ResnetBlock2D: one activation, for the time embedding too."""
    h = self.norm1(x)
    h = self.act(h)
    t = self.act(x.mean((2, 3)))[:, :, None, None]
    if x.shape[0] > 100:
        h = h + t
        h = self.norm2(h)
    elif len(x.shape) == 3:
        h = self.norm2(h)
        h = h * 2
    else:
        h = self.norm2(h + t)
    h = self.act(h)
    return self.conv1(h)


def by_functions(self, x):
    h = functional.silu(self.norm1(x), inplace=True)
    h = self.norm2(h)
    return nonlinearity(h)


def by_products(self, x):
    h = self.norm1(x)
    h = h * torch.sigmoid(h)
    n = self.norm2(h)
    return n.sigmoid() * n


def by_value(self, x):
    if x.sum() > 1e9:
        return self.act(self.norm2(x))
    try:
        return self.act(self.norm1(x))
    except ValueError:
        return x


def with_variables(self, x):
    n1 = self.norm1(x)
    other = self.conv1(x)
    x = other + self.act(n1)
    n2 = self.norm2(x)
    return self.conv2(self.act(n2)) + x


def in_a_closure(self, x):
    def inner(x):
        return self.act(self.norm1(x))

    return sum(self.act(self.norm2(y)) for y in [inner(x), x])


@passing
def decorated(self, x, *, factor: torch.Tensor | int = 2):
    return self.act(self.norm1(x)) * factor + self.act(self.norm2(x))


# ---- norm1 is not ----


def two_users(self, x):
    n = self.norm1(x)
    return n + self.act(n) + self.act(self.norm2(x))


def between(self, x):
    h = self.norm1(x)
    h = h * 2
    return self.act(h) + self.act(self.norm2(x))


def another_activation(self, x):
    return functional.gelu(self.norm1(x)) + shifted(self.norm1(x)) + self.act(self.norm2(x))


def used_later(self, x):
    h = self.norm1(x)
    y = self.act(h)
    return y + h + self.act(self.norm2(x))


def captured(self, x):
    h = self.norm1(x)
    later = lambda: h  # noqa: E731
    y = self.act(h) + self.act(self.norm2(x))
    return y + later()


def by_another_name(self, x, nonlinearity=torch.tanh):
    return nonlinearity(self.norm1(x)) + self.act(self.norm2(x))


def without_gradient(self, x):
    h = self.norm1(x)
    with torch.no_grad():
        y = self.act(h)
    return y + self.act(self.norm2(x))


def direct(self, x):
    return self.act(self.norm1.forward(x)) + self.act(self.norm2(x))


BOTH = [in_branches, by_functions, by_products, by_value, with_variables, in_a_closure, decorated]
ONE = [
    *(two_users, between, another_activation, used_later, captured, by_another_name),
    *(without_gradient, direct),
]


def block(forward):
    kind = type("Block", (Residual,), {"forward": forward, "__module__": __name__})
    return kind()


@pytest.mark.parametrize("forward", [*BOTH, *ONE], ids=lambda f: f.__name__)
def test_what_the_source_proves(forward):
    why = (
        "no method calls it as self.NAME(x)"
        if forward is direct
        else "no SiLU alone takes its result"
    )
    left = {} if forward in BOTH else {"norm1": why}
    report = check(block(forward), ["norm1", "norm2"][len(left) :], left)
    if forward is in_branches:
        assert (
            report.replaced["norm2"]
            == "one call with act in Block.forward, in 2 of its 3 calls, those that a SiLU follows"
        )
    assert ("register_replacement" in str(report)) == bool(left)


class Inner(Residual):
    """What a new class could lose: super(), other methods, activations of other kinds."""

    def __init__(self):
        super().__init__()
        self.act = Swish()
        self.norms = nn.ModuleList([self.norm1, nn.GroupNorm(1, 6)])

    def forward(self, x):
        return super().forward(x) + self.act(self.norms[1](x)) + self.last(x)

    def last(self, x):
        return functional.silu(self.norms[0](x))


def test_other_methods():
    report = check(Inner(), ["norm1", "norms.1"], {"norm2": "no method calls it as self.NAME(x)"})
    assert report.replaced["norm1"] == "one call with functional.silu in Inner.last"


def test_no_source():
    made = {}
    exec("def forward(self, x):\n    return self.act(self.norm1(x))", made)
    check(block(made["forward"]), [], {"norm1": "Python has no source", "norm2": "Python has no"})


def test_one_call_computes_both(monkeypatch):
    called = []
    fused_call = ot.replacing.Norms.__module__.replace("norms", "fused_call")
    own = ot.group_norm_swish
    monkeypatch.setattr(f"{fused_call}.group_norm_swish", lambda *a: called.append(a[1]) or own(*a))
    model = block(in_branches)
    ot.replace(model)
    model(images())
    assert called == [2, 3]


@pytest.mark.parametrize("forward", [in_branches, by_products, two_users])
def test_pass_of_compiled_graphs(forward):
    """What the pass makes of Dynamo's graph, with gradients."""
    graphs = []

    def backend(module, _):
        ot.fuse_pass(module.graph)
        module.recompile()
        graphs.append(module.graph)
        return module

    torch._dynamo.reset()
    model, ends = block(forward), []
    for way in (model, torch.compile(model, backend=backend)):
        model.zero_grad()
        y = way(images())
        y.square().sum().backward()
        ends.append([y.detach(), *(p.grad for p in model.parameters() if p.grad is not None)])
    for a, b in zip(*ends, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    (graph,) = graphs
    fused = [n for n in graph.nodes if n.target is ot.group_norm_swish]
    assert len(fused) == (1 if forward is two_users else 2)
