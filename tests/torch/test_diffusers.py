# SPDX-License-Identifier: Apache-2.0
"""replace in the UNets of diffusers: every pair is found, and gradients are as good as torch's."""

from __future__ import annotations

import copy

import pytest
from tests.torch.torch_support import torch

import openaclnn.torch as ot

diffusers = pytest.importorskip("diffusers", reason="diffusers is not installed")

SMALL = {"block_out_channels": (8, 8, 16, 16), "layers_per_block": 1, "norm_num_groups": 4}
KINDS = {
    "UNet2DModel": ({"attention_head_dim": 4}, (3,)),
    "UNet2DConditionModel": ({"cross_attention_dim": 8, "attention_head_dim": 4}, (4, 8)),
}


def gradients(model, given):
    """Of all parameters, as one vector."""
    model.zero_grad()
    model(*given, return_dict=False)[0].square().sum().backward()
    return torch.cat([p.grad.double().flatten() for p in model.parameters()])


@pytest.mark.parametrize("name", KINDS)
def test_unets(name):
    more, (channels, *text) = KINDS[name]
    torch.manual_seed(0)
    model = getattr(diffusers, name)(**SMALL, **more)
    given = [torch.randn(2, channels, 16, 16), torch.tensor([3, 700])]
    given += [torch.randn(2, 5, n) for n in text]
    wide = [x.double() if x.is_floating_point() else x for x in given]
    due = gradients(copy.deepcopy(model).double(), wide)
    usual = (gradients(model, given) - due).norm() / due.norm()
    keys = list(model.state_dict())
    norms = [n for n, m in model.named_modules() if type(m) is torch.nn.GroupNorm]
    report = ot.replace(model)
    pairs = [n for n in norms if "attentions" not in n]
    assert sorted(report.replaced) == sorted(pairs)
    assert list(model.state_dict()) == keys
    ours = (gradients(model, given) - due).norm() / due.norm()
    assert ours <= max(2 * usual, 1e-6)
