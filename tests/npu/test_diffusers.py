# SPDX-License-Identifier: Apache-2.0
"""A UNet of the package diffusers, tiny and random: the CPU's loss and gradients."""

from __future__ import annotations

import copy

import pytest
import torch

diffusers = pytest.importorskip(
    "diffusers", reason="diffusers is not installed: pip install '.[npu-test]'"
)


def test_loss_and_gradients_are_those_of_the_cpu():
    torch.manual_seed(0)
    here = diffusers.UNet2DModel(
        sample_size=16,
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        block_out_channels=(32, 64),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=8,
    )
    there = copy.deepcopy(here).npu()
    x, noise, times = torch.randn(2, 3, 16, 16), torch.randn(2, 3, 16, 16), torch.tensor([3, 500])
    want = torch.nn.functional.mse_loss(here(x, times).sample, noise)
    got = torch.nn.functional.mse_loss(there(x.npu(), times.npu()).sample, noise.npu())
    torch.testing.assert_close(got.detach().cpu(), want.detach())
    want.backward()
    got.backward()
    pairs = [
        (p.grad, q.grad.cpu()) for p, q in zip(here.parameters(), there.parameters(), strict=True)
    ]
    assert len(pairs) > 50
    largest = max(w.abs().max() for w, _ in pairs)
    error = max((g - w).abs().max() for w, g in pairs) / largest
    assert error < 32 * torch.finfo(torch.float32).eps
