# SPDX-License-Identifier: Apache-2.0
"""A small diffusion UNet in torch.nn, as people write them, and random data to train it on.

GroupNorm and SiLU stand before each convolution of a residual block. Attention at the lowest
resolution has a GroupNorm without SiLU.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

GROUPS = 8


class Block(nn.Module):
    """Two convolutions, the time between them, and what they add to."""

    def __init__(self, inside: int, outside: int, time: int) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.GroupNorm(GROUPS, inside), nn.SiLU(), nn.Conv2d(inside, outside, 3, padding=1)
        )
        self.time = nn.Linear(time, outside)
        self.second = nn.Sequential(
            nn.GroupNorm(GROUPS, outside), nn.SiLU(), nn.Conv2d(outside, outside, 3, padding=1)
        )
        self.skip = nn.Conv2d(inside, outside, 1) if inside != outside else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        h = self.first(x) + self.time(time)[:, :, None, None]
        return self.second(h) + self.skip(x)


class Attention(nn.Module):
    """All positions look at all."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, channels)
        self.inside = nn.Conv2d(channels, 3 * channels, 1)
        self.outside = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (t.flatten(2).mT[:, None] for t in self.inside(self.norm(x)).chunk(3, 1))
        h = nn.functional.scaled_dot_product_attention(q, k, v)
        return x + self.outside(h[:, 0].mT.unflatten(2, x.shape[2:]))


class UNet(nn.Module):
    """Predicts the noise in an image."""

    def __init__(self, width: int = 64, colours: int = 3) -> None:
        super().__init__()
        time = 4 * width
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.start = nn.Conv2d(colours, width, 3, padding=1)
        self.down1 = Block(width, width, time)
        self.half1 = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.down2 = Block(width, 2 * width, time)
        self.half2 = nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1)
        self.middle1 = Block(2 * width, 2 * width, time)
        self.attention = Attention(2 * width)
        self.middle2 = Block(2 * width, 2 * width, time)
        self.up2 = Block(4 * width, width, time)
        self.up1 = Block(2 * width, width, time)
        self.end = nn.Sequential(
            nn.GroupNorm(GROUPS, width), nn.SiLU(), nn.Conv2d(width, colours, 3, padding=1)
        )
        self.twice = nn.Upsample(scale_factor=2)

    def forward(self, x: Tensor, moment: Tensor) -> Tensor:
        powers = torch.arange(self.width // 2, device=x.device)
        angles = moment[:, None] * torch.exp(-math.log(1e4) * 2 / self.width * powers)
        time = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        a = self.down1(self.start(x), time)
        b = self.down2(self.half1(a), time)
        h = self.middle1(self.half2(b), time)
        h = self.middle2(self.attention(h), time)
        h = self.up2(torch.cat([self.twice(h), b], 1), time)
        h = self.up1(torch.cat([self.twice(h), a], 1), time)
        return self.end(h)


class Data:
    """Sixteen smooth random images, and for each step a batch of them with noise."""

    def __init__(self, batch: int, size: int) -> None:
        generator = torch.Generator().manual_seed(1)
        rough = torch.randn(16, 3, 4, 4, generator=generator)
        self.images = nn.functional.interpolate(rough, size=(size, size), mode="bicubic")
        self.batch = batch

    def __call__(self, step: int, layout: torch.memory_format) -> tuple[Tensor, Tensor, Tensor]:
        """Noisy images, their moments, the noise."""
        generator = torch.Generator().manual_seed(1000 + step)
        chosen = torch.randint(len(self.images), (self.batch,), generator=generator)
        moment = torch.rand(self.batch, generator=generator)
        clean = self.images[chosen]
        noise = torch.randn(clean.shape, generator=generator)
        angle = (moment * math.pi / 2)[:, None, None, None]
        noisy = clean * angle.cos() + noise * angle.sin()
        return noisy.contiguous(memory_format=layout), 1000 * moment, noise
