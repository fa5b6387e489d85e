# SPDX-License-Identifier: Apache-2.0
"""A UNet of the package diffusers, tiny and random: the CPU's loss and gradients."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F

diffusers = pytest.importorskip(
    "diffusers", reason="diffusers is not installed: pip install '.[npu-test]'"
)


def compare(here, there, want, got):
    """The loss, and the gradients of all parameters."""
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


def test_loss_and_gradients_are_those_of_the_cpu():
    from tests.npu.device.unets import small_unet

    torch.manual_seed(0)
    here = small_unet(size=16, channels=(32, 64))
    there = copy.deepcopy(here).npu()
    x, noise, times = torch.randn(2, 3, 16, 16), torch.randn(2, 3, 16, 16), torch.tensor([3, 500])
    want = F.mse_loss(here(x, times).sample, noise)
    compare(here, there, want, F.mse_loss(there(x.npu(), times.npu()).sample, noise.npu()))


def gated_gelu(layer, x):
    """What diffusers asks of the device, on the CPU."""
    value, gate = layer.proj(x).chunk(2, -1)
    return value * F.gelu(gate, approximate="tanh")


def test_a_unet_with_a_text_trains(monkeypatch):
    """Of the kind of Stable Diffusion: its feed-forward layers are npu_geglu on the device."""
    torch.manual_seed(0)
    here = diffusers.UNet2DConditionModel(
        sample_size=8,
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        block_out_channels=(16, 32),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        norm_num_groups=4,
        cross_attention_dim=16,
        attention_head_dim=4,
    )
    there = copy.deepcopy(here).npu()
    x, noise, text = torch.randn(2, 3, 8, 8), torch.randn(2, 3, 8, 8), torch.randn(2, 5, 16)
    times = torch.tensor([3, 500])
    got = F.mse_loss(there(x.npu(), times.npu(), text.npu()).sample, noise.npu())
    monkeypatch.setattr(diffusers.models.activations.GEGLU, "forward", gated_gelu)
    compare(here, there, F.mse_loss(here(x, times, text).sample, noise), got)
