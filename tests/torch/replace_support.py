# SPDX-License-Identifier: Apache-2.0
"""A block with two norms, and the check of what replace made of a model."""

from __future__ import annotations

from tests.torch.torch_support import torch

import openaclnn.torch as ot

nn = torch.nn


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
