# SPDX-License-Identifier: Apache-2.0
"""replace(model) sees every way through a forward, or leaves the norms of the module."""

from __future__ import annotations

import pytest
from replace_support import Residual, check, images
from torch_support import torch

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


SOME = "act follows it in some calls only: the forward depends on training or on an argument"


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


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Untraceable, {"norm1": "torch.fx cannot trace", "norm2": "torch.fx cannot trace"}),
    ],
)
def test_replace_leaves_what_a_trace_cannot_see(kind, why):
    check(kind(), [], why)
