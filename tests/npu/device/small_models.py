# SPDX-License-Identifier: Apache-2.0
"""Small models that learn, and a loop that trains one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class Transformer(nn.Module):
    """A GPT: token and position embedding, two blocks, a head."""

    def __init__(self, words: int = 31, width: int = 32, length: int = 16) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 64, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, words)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[1]
        h = self.words(x) + self.places(torch.arange(length, device=x.device))
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=x.device)
        return self.head(self.blocks(h, mask=mask, is_causal=True)).flatten(0, 1)


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 31)
    )


def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Upsample(scale_factor=2),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 31),
    )  # fmt: skip


class UNet(nn.Module):
    """One level of a UNet: down, a bottleneck, up, and the skip between them."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()

        def block(before: int, after: int) -> nn.Module:
            return nn.Sequential(
                nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(4, after), nn.SiLU()
            )

        self.first, self.down = block(1, width), nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.middle, self.last = block(width, width), block(2 * width, width)
        self.head = nn.Linear(4 * width, 31)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        high = self.first(x)
        low = nn.functional.interpolate(self.middle(self.down(high)), scale_factor=2.0)
        joined = self.last(torch.cat([high, low], 1))
        return self.head(nn.functional.adaptive_avg_pool2d(joined, 2).flatten(1))


class Reader(nn.Module):
    """Words to a class through an LSTM and a GRU."""

    def __init__(self, words: int = 31, width: int = 16) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(2 * width, width, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.gru(self.lstm(self.words(x))[0])[0][:, -1])


def tokens() -> torch.Tensor:
    return torch.randint(0, 31, (4, 16))


MODELS = {
    "mlp": (mlp, lambda: torch.randn(64, 16)),
    "convolutions": (convolutions, lambda: torch.randn(8, 1, 8, 8)),
    "transformer": (Transformer, tokens),
    "unet": (UNet, lambda: torch.randn(4, 1, 8, 8)),
    "recurrent": (Reader, tokens),
}


def train(
    model: nn.Module,
    x: torch.Tensor,
    labels: torch.Tensor,
    optimiser: torch.optim.Optimizer,
    steps: int,
    forward: Callable[[torch.Tensor], Any] | None = None,
) -> list[float]:
    """The losses; `forward`: in place of the model, such as the compiled one."""
    call = model if forward is None else forward
    found = []
    for _ in range(steps):
        loss = nn.functional.cross_entropy(call(x), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        found.append(loss.item())
    return found
