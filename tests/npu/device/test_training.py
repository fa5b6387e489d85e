# SPDX-License-Identifier: Apache-2.0
"""Models learn on npu as on the CPU: the same kernels of ATen run, apart from rows of ours."""

from __future__ import annotations

import copy
import os

import pytest
import torch
from tests.npu.device.small_models import MODELS, mlp, train
from torch import nn

# All of the curve in one mode of the queue, its start in the others.
STEPS = 200 if os.environ.get("TASK_QUEUE_ENABLE") == "0" else 20


def losses(name: str, device: str, optimiser, **options) -> list[float]:
    torch.manual_seed(3)
    make, inputs = MODELS[name]
    model, x = make(), inputs()
    with torch.no_grad():
        labels = torch.randint(0, 31, (model(x).shape[0],))
    model, x, labels = model.to(device), x.to(device), labels.to(device)
    steps = optimiser(model.parameters(), lr=3e-3, **options)
    return train(model, x, labels, steps, STEPS)


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
