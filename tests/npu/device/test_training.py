# SPDX-License-Identifier: Apache-2.0
"""Models learn on npu as on the CPU: the same kernels of ATen run, apart from rows of ours."""

from __future__ import annotations

import copy
import os

import pytest
import torch
from torch import nn

# All of the curve in one mode of the queue, its start in the others.
STEPS = 200 if os.environ.get("TASK_QUEUE_ENABLE") == "0" else 20


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


def losses(name: str, device: str, optimiser, **options) -> list[float]:
    torch.manual_seed(3)
    make, inputs = MODELS[name]
    model, x = make(), inputs()
    with torch.no_grad():
        labels = torch.randint(0, 31, (model(x).shape[0],))
    model, x, labels = model.to(device), x.to(device), labels.to(device)
    steps = optimiser(model.parameters(), lr=3e-3, **options)
    found = []
    for _ in range(STEPS):
        loss = nn.functional.cross_entropy(model(x), labels)
        steps.zero_grad()
        loss.backward()
        steps.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("name", MODELS)
def test_the_losses_are_those_of_the_cpu(name):
    there, here = (losses(name, d, torch.optim.AdamW) for d in ("npu", "cpu"))
    assert there[-1] < there[0]
    assert there == pytest.approx(here, rel=1e-4)


def test_fused_adamw():
    there = losses("mlp", "npu", torch.optim.AdamW, fused=True)
    assert there == pytest.approx(losses("mlp", "cpu", torch.optim.AdamW), rel=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_autocast(dtype):
    torch.manual_seed(3)
    model, x = mlp(), torch.randn(64, 16)
    want = model(x)
    with torch.autocast("npu", dtype):
        got = model.npu()(x.npu())
    assert got.dtype == dtype
    error = (got.float().cpu() - want).abs().max() / want.abs().max()
    assert error < 8 * torch.finfo(dtype).eps  # four layers, each rounded once or twice


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_in_training_and_evaluation(dims, affine, training):
    torch.manual_seed(dims)
    norm = {1: torch.nn.BatchNorm1d, 2: torch.nn.BatchNorm2d, 3: torch.nn.BatchNorm3d}[dims]
    layer = norm(3, affine=affine)
    layer.running_mean.normal_()
    layer.running_var.uniform_(0.5, 2)
    other = copy.deepcopy(layer).to("npu")
    layer.train(training), other.train(training)
    x = torch.randn(4, 3, *(5, 6, 7)[:dims])
    results = []
    for each, device in ((layer, "cpu"), (other, "npu")):
        mine = x.to(device, copy=True).requires_grad_()
        y = each(mine)
        (y * y).sum().backward()
        found = [y, mine.grad, *(p.grad for p in each.parameters()), *each.buffers()]
        results.append([t.detach().cpu() for t in found])
    for found, expected in zip(results[1], results[0], strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_layers_outside_training(kind):
    layer, x = kind(3, 4, num_layers=2, bidirectional=True).eval(), torch.randn(5, 2, 3)
    with torch.no_grad():
        expected = layer(x)
        found = layer.npu()(x.npu())
    for got, wanted in zip(flat(found), flat(expected), strict=True):
        torch.testing.assert_close(got.cpu(), wanted)


def flat(found) -> list[torch.Tensor]:
    y, last = found
    return [y, *(last if isinstance(last, tuple) else [last])]


def test_packed_sequences_in_two_layers():
    """The gradient of packed inputs is torch_npu's: it takes the first rows of the padded one."""
    layer, x = nn.LSTM(3, 4, num_layers=2, batch_first=True), torch.randn(3, 5, 3)
    found = []
    for device in ("cpu", "npu"):
        there = copy.deepcopy(layer).to(device)
        packed = nn.utils.rnn.pack_padded_sequence(
            x.to(device), torch.tensor([4, 3, 1]), batch_first=True
        )
        y, last = there(packed)
        y = nn.utils.rnn.pad_packed_sequence(y, batch_first=True)[0]
        total = sum((t * t.detach().cos()).sum() for t in (y, *last))
        found.append([y, *last, *torch.autograd.grad(total, list(there.parameters()))])
    for wanted, got in zip(*found, strict=True):
        torch.testing.assert_close(got.cpu(), wanted)
