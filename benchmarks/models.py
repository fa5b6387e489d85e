# SPDX-License-Identifier: Apache-2.0
"""The models whose training steps training.py measures.

The UNets of diffusers have their default blocks and fewer channels, so that a step takes seconds
on one core. Each takes noisy images and their moments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from unet import UNet

CHANNELS = (64, 64, 128, 128)


class Sample(nn.Module):
    """A UNet of diffusers as a function of images and moments."""

    def __init__(self, unet: nn.Module, *condition: Tensor) -> None:
        super().__init__()
        self.unet, self.condition = unet, condition

    def forward(self, x: Tensor, moment: Tensor) -> Any:
        condition = [c.expand(len(x), -1, -1) for c in self.condition]
        return self.unet(x, moment, *condition, return_dict=False)[0]


def unet_2d() -> nn.Module:
    from diffusers import UNet2DModel

    return Sample(UNet2DModel(block_out_channels=CHANNELS))


def unet_2d_condition() -> nn.Module:
    from diffusers import UNet2DConditionModel

    unet = UNet2DConditionModel(
        in_channels=3, out_channels=3, block_out_channels=CHANNELS, cross_attention_dim=64
    )
    return Sample(unet, torch.randn(1, 16, 64))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "UNet": UNet,
    "UNet2DModel": unet_2d,
    "UNet2DConditionModel": unet_2d_condition,
}
