# SPDX-License-Identifier: Apache-2.0
"""Writes in place that autograd must see, and a network that learns."""

from __future__ import annotations

import pytest
from tests.support import rows
from tests.torch.torch_support import (
    arguments,
    operator,
    same_bits,
    tensors,
    torch,
)

import openaclnn
from openaclnn.torch import modules

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")


@pytest.mark.parametrize("op", rows(lambda op: op.inplace))
def test_a_write_is_seen_by_the_backward_pass(op):
    (x,) = tensors(op, "FLOAT")
    for write in (torch.no_grad, torch.inference_mode, torch.enable_grad):
        hidden = x.clone().requires_grad_() * 1
        loss = (hidden * hidden).sum()
        with write():
            operator(op)(*arguments(op, [hidden.detach()]))
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


@pytest.mark.parametrize("op", rows(lambda op: op.inplace))
def test_in_place_on_views_and_leaves(op):
    (x,) = tensors(op, "FLOAT", shape=(4, 41))
    leaf = x.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        operator(op)(*arguments(op, [leaf]))
    whole = leaf * 1
    operator(op)(*arguments(op, [whole[1:3]]))
    whole.sum().backward()
    other = x[1:3].clone().requires_grad_()
    operator(op)(*arguments(op, [other * 1])).sum().backward()
    assert same_bits(leaf.grad[1:3], other.grad)
    assert (leaf.grad[0] == 1).all()


@pytest.fixture
def one_thread():
    """Two pools on busy cores wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    openaclnn.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_a_small_network_learns():
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        modules.GroupNormSwish(2, 8),
        torch.nn.Conv2d(8, 8, 3, padding=1),
        modules.ELU(inplace=True),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 36, 4),
        modules.LeakyReLU(0.1),
    )
    x, y = torch.randn(16, 3, 6, 6), torch.randn(16, 4)
    losses = []
    for _ in range(50):
        net.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        with torch.no_grad():
            for parameter in net.parameters():
                parameter -= 0.1 * parameter.grad
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2, losses
