# SPDX-License-Identifier: Apache-2.0
"""The UNet of the tests: convolutions and attention, up and down once."""

from __future__ import annotations

import diffusers


def small_unet(size: int, channels: tuple[int, int]) -> diffusers.UNet2DModel:
    return diffusers.UNet2DModel(
        sample_size=size,
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        block_out_channels=channels,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=8,
    )
