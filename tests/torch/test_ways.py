# SPDX-License-Identifier: Apache-2.0
"""replace(model) sees every way through a forward, or leaves the norms of the module."""

from __future__ import annotations

import pytest
from tests.torch.replace_support import Residual, check, images
from tests.torch.torch_support import torch

import openaclnn.torch as ot

nn = torch.nn


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


class Direct(Residual):
    """A hook would not see the second call, and neither does a trace."""

    def forward(self, x):
        return self.act(self.norm1(x)) + self.norm1.forward(x)


class DirectActivation(Residual):
    def forward(self, x):
        return self.act(self.norm1(x)) + self.act.forward(x)


class Elsewhere(Residual):
    """A norm that a replacement would not reach."""

    def __init__(self):
        super().__init__()
        self.norms = [self.norm1]

    def forward(self, x):
        return self.act(self.norms[0](x))


SOME = (
    "act follows it in some calls only: the forward depends on training, on gradients or on an "
    "argument"
)


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
    check(NotInTraining().train(training), [], {"norm1": SOME, "norm2": SOME})
    check(NotWithoutSkip().train(training), [], {"norm1": SOME, "norm2": "no SiLU alone"})


def without_emb(self, x, emb):
    h = self.norm1(x)
    return h if emb is None else self.act(h) + emb


def not_recorded(self, x):
    h = self.norm1(x)
    return self.act(h) if torch.is_grad_enabled() else h


def by_type(self, x):
    h = self.norm1(x)
    return h if isinstance(x, torch.Tensor) else self.act(h)


def by_type_in_torch(self, x):
    h = self.norm1(x)
    return h if torch.is_tensor(x) else self.act(h)


def by_value(self, x):
    """Swallows the error of a trace, so that the trace ends well."""
    try:
        large = bool(x.mean() > 100)
    except Exception:
        large = False
    return self.norm1(x) if large else self.act(self.norm1(x))


def by_row(self, x):
    """Does the same."""
    try:
        x = sum(x)
    except Exception:
        return self.act(self.norm1(x))
    return self.norm1(x)


def unfinished(self, x):
    """The tracer runs it, and reports an error without a text by its type."""
    raise NotImplementedError


def needs_emb(self, x, emb, *, size=None):
    """Calls without emb are no ways through it, and no question here decides."""
    batch, _, *_ = x.shape[0], x.shape[1], emb.shape
    h = self.act(self.norm1(x) if isinstance(self.conv1, nn.Conv2d) else x)
    return self.act(self.norm2(h)).view(batch, -1) + emb[:, :6]


WAYS = [
    (without_emb, SOME),
    (not_recorded, SOME),
    (by_type, "in training: it asks for the type of a value"),
    (by_type_in_torch, "in training: it asks for the type of a value"),
    (by_value, "in training: it decides by the value of a tensor"),
    (by_row, "in training: it loops over a tensor"),
    (unfinished, "in training: NotImplementedError"),
    (needs_emb, None),
]


@pytest.mark.parametrize(("forward", "why"), WAYS, ids=lambda x: getattr(x, "__name__", ""))
def test_replace_sees_that_a_forward_has_several_ways(forward, why):
    model = type("Block", (Residual,), {"forward": forward})()
    report = ot.replace(model)
    if why is None:
        assert set(report.replaced) == {"norm1", "norm2"}
    else:
        assert why in report.left["norm1"]
        assert type(model.act) is nn.SiLU


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Untraceable, {"norm1": "torch.fx cannot trace", "norm2": "torch.fx cannot trace"}),
        (Direct, dict.fromkeys(["norm1", "norm2"], "it calls norm1.forward itself")),
        (DirectActivation, dict.fromkeys(["norm1", "norm2"], "it calls act.forward itself")),
        (Elsewhere, dict.fromkeys(["norm1", "norm2"], "torch.fx cannot trace")),
    ],
)
def test_replace_leaves_what_a_trace_cannot_see(kind, why):
    check(kind(), [], why)
