# SPDX-License-Identifier: Apache-2.0
"""replace(model): what it exchanges, what it leaves, and that models compute what they did."""

from __future__ import annotations

import copy

import pytest
from torch_support import same_bits, torch

import openaclnn.torch as ot

nn, functional = torch.nn, torch.nn.functional


class Residual(nn.Module):
    """One activation after two norms, as diffusion models have it."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(2, 6), nn.GroupNorm(3, 6)
        self.conv1, self.conv2 = nn.Conv2d(6, 6, 3, padding=1), nn.Conv2d(6, 6, 1)
        self.act = nn.SiLU()

    def forward(self, x):
        h = self.conv1(self.act(self.norm1(x)))
        return x + self.conv2(self.act(self.norm2(h)))


class TwoUsers(Residual):
    def forward(self, x):
        n = self.norm1(x)
        return n + self.act(n) + self.act(self.norm2(x))


class OtherInputs(Residual):
    def forward(self, x):
        return self.act(self.norm1(x)) + self.act(self.norm2(x)) + self.act(x)


class Functional(Residual):
    def forward(self, x):
        return functional.silu(self.norm1(x))


class Untraceable(Residual):
    def forward(self, x):
        return self.act(self.norm1(x)) if x.sum() > -1e9 else x


class NotInTraining(Residual):
    def forward(self, x):
        h = self.norm1(x)
        return self.act(h * 2 if self.training else h) + self.act(self.norm2(x))


class NotWithoutSkip(Residual):
    def forward(self, x, scale=None, skip=None):
        h = self.norm1(x)
        if scale is not None and skip is None:
            h = h * scale
        return self.act(h if skip is not None else h + x)


class Indifferent(Residual):
    """What depends on the call is no matter of the norms."""

    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x, *, skip=None):
        h = self.conv1(self.act(self.norm1(x)))
        if self.training:
            self.steps.add_(1)
            self.steps += 1
            self.last = h
            h = h * 0.9 + 0 * torch.rand(())
        return self.act(self.norm2(h if skip is None else h + skip))


class Picky(Residual):
    """Calls that it refuses are no ways through it."""

    def forward(self, x, emb=None, mask=None):
        if mask is None:
            raise ValueError("mask must be given")
        return self.act(self.norm1(x) + emb[:, :6] * mask)


class TwoNames(Residual):
    def __init__(self):
        super().__init__()
        self.act2 = self.act

    def forward(self, x):
        return self.act2(self.norm1(x))


def images():
    return torch.randn(2, 6, 5, 4, generator=torch.Generator().manual_seed(1))


def check(model, replaced, left):
    """The report, and that the model computes what it did, gradients too."""
    x, before = images(), list(model.state_dict())
    ends = []
    for _ in range(2):
        model.zero_grad()
        y = model(x)
        y.square().sum().backward()
        ends.append([y.detach(), *(p.grad for p in model.parameters() if p.grad is not None)])
        if len(ends) == 1:
            report = ot.replace(model)
    assert set(report.replaced) == set(replaced)
    assert {name: why for name, why in report.left.items()}.keys() == left.keys()
    for name, why in left.items():
        assert why in report.left[name]
        assert f"{name}: left as it is, because" in str(report)
    assert list(model.state_dict()) == before
    for a, b in zip(*ends, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    return report


def test_replace_in_sequences():
    shared = nn.SiLU()
    layers = [nn.GroupNorm(3, 6), shared, nn.ELU(), nn.Conv2d(6, 6, 1), nn.GroupNorm(2, 6), shared]
    model = nn.Sequential(*layers, nn.LeakyReLU(0.2), nn.GroupNorm(2, 6), nn.Hardshrink())
    report = check(model, ["0", "2", "4", "6", "8"], {"7": "no SiLU alone"})
    assert report.replaced["0"] == "openaclnn.torch.GroupNormSwish, with 1"
    assert [type(m) for m in model][:3] == [ot.GroupNormSwish, nn.Identity, ot.ELU]
    assert model[0].weight is layers[0].weight


def test_replace_takes_a_module():
    with pytest.raises(
        TypeError, match=r"^replace: model must be a torch.nn.Module, but got Tensor$"
    ):
        ot.replace(torch.ones(3))


def test_replace_in_a_forward():
    model = nn.Sequential(nn.Conv2d(6, 6, 1), Residual(), Residual())
    check(model, ["1.norm1", "1.norm2", "2.norm1", "2.norm2"], {})
    assert type(model[1].act) is nn.Identity


@pytest.mark.parametrize("training", [True, False])
def test_replace_sees_every_way_through_a_forward(training):
    model = Indifferent().train(training)
    state = torch.get_rng_state()
    check(model, ["norm1", "norm2"], {})
    assert model.steps == (4 if training else 0)  # of the calls, not of replace
    assert type(getattr(model, "last", images())) is torch.Tensor
    assert training or torch.equal(torch.get_rng_state(), state)
    report = ot.replace(Picky().train(training))
    assert report.left["norm1"] == "no SiLU alone takes its result"
    some = "act follows it in some calls only: the forward depends on training or on an argument"
    check(NotInTraining().train(training), [], {"norm1": some, "norm2": some})
    check(NotWithoutSkip().train(training), [], {"norm1": some, "norm2": "no SiLU alone"})


def test_replace_one_module_of_two_names():
    shared = nn.ELU()
    model = nn.Sequential(shared, nn.Conv2d(6, 6, 1), shared)
    check(model, ["0", "2"], {})
    assert type(model[2]) is ot.ELU
    assert model[0] is model[2]


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (TwoUsers, {"norm1": "no SiLU alone", "norm2": "has other inputs too"}),
        (OtherInputs, {"norm1": "has other inputs too", "norm2": "has other inputs too"}),
        (Functional, {"norm1": "no SiLU alone", "norm2": "no SiLU alone"}),
        (Untraceable, {"norm1": "torch.fx cannot trace", "norm2": "torch.fx cannot trace"}),
        (TwoNames, {"norm1": "has several names", "norm2": "no SiLU alone"}),
    ],
)
def test_replace_leaves_what_it_cannot_see(kind, why):
    check(kind(), [], why)


def test_replace_leaves_hooks_and_dtypes():
    model = nn.Sequential(nn.GroupNorm(3, 6), nn.SiLU(), nn.ELU())
    model[0].register_forward_hook(lambda *_: None)
    model[2].register_forward_hook(lambda *_: None)
    check(model, [], {"0": "has hooks", "2": "it has hooks"})
    report = ot.replace(nn.Sequential(nn.GroupNorm(3, 6).double(), nn.SiLU()))
    assert report.left == {"0": "its parameters are float64"}
    assert str(ot.replace(nn.ReLU())) == "nothing to replace"


def test_replace_one_norm_refused_keeps_the_activation():
    model = Residual()
    model.norm2.register_forward_hook(lambda *_: None)
    check(model, [], {"norm1": "norm2 has hooks", "norm2": "norm2 has hooks"})
    assert type(model.act) is nn.SiLU


def test_replaced_models_export_and_copy():
    model = Residual()
    ot.replace(model)
    assert same_bits(copy.deepcopy(model)(images()), model(images()))
