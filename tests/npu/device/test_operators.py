# SPDX-License-Identifier: Apache-2.0
"""Operators of the device in forms that the first samples of PyTorch's OpInfo leave out, against
the CPU.
"""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

ROWS_KEPT = torch.tensor([True, False, True, True, False])
MASKS = {
    "rows": lambda x: x[ROWS_KEPT.to(x.device)],
    "rows, mask on the CPU": lambda x: x[ROWS_KEPT],
    "elements": lambda x: x[x > 0],
    "nothing": lambda x: x[x > 1000],
    "everything": lambda x: x[x == x],
    "columns": lambda x: x[:, ROWS_KEPT.to(x.device)],
    "behind a new dim": lambda x: x[None, ROWS_KEPT.to(x.device), 1:],
    "with integers": lambda x: x[ROWS_KEPT.to(x.device), torch.tensor([0, 4, 2]).to(x.device)],
    "transposed": lambda x: x.t()[x > 0],
    "rank 0": lambda x: x[1, 1][torch.tensor(True).to(x.device)],
    "empty": lambda x: x[:0][x[:0] > 0],
    "put": lambda x: x.index_put((x > 0,), torch.tensor(7.0).to(x.device)),
    "put, accumulated": lambda x: x.index_put(
        (ROWS_KEPT.to(x.device),), torch.ones(5).to(x.device), accumulate=True
    ),
    "nonzero": lambda x: torch.nonzero(x > 0),
    "nonzero as tuple": lambda x: torch.stack(torch.nonzero(x > 0, as_tuple=True)),
}


@pytest.mark.parametrize("form", MASKS)
def test_boolean_masks(form):
    x = torch.randn(5, 5)
    assert torch.equal(MASKS[form](x.npu()).cpu(), MASKS[form](x))


def test_gradient_through_a_mask():
    x = torch.randn(5, 5)
    expected, got = x.clone().requires_grad_(), x.npu().requires_grad_()
    for leaf in (expected, got):
        leaf[leaf > 0].square().sum().backward()
    assert torch.equal(got.grad.cpu(), expected.grad)


def test_assignment_to_a_mask():
    x = torch.randn(4, 6)
    y = x.npu()
    y[y < 0] = 0
    y[y > 1] *= 2
    x[x < 0] = 0
    x[x > 1] *= 2
    assert torch.equal(y.cpu(), x)


def put(x, places, value=1):
    x = x.clone()
    x[places] = value
    return x


PLACES = {
    "columns": lambda x: (slice(None), [0, 3]),
    "one column": lambda x: (slice(None), [2]),
    "last": lambda x: (..., [0, 3]),
    "apart": lambda x: ([0, 1], slice(None), [0, 1]),
    "a mask in the last dim": lambda x: (slice(None), slice(None), x[0, 0] > 0),
    "a new dim": lambda x: (None, slice(None), torch.tensor([1, 1, 2]).to(x.device)),
    "a mask of nothing": lambda x: x != x,
    "a mask of nothing in the last dim": lambda x: (..., x[0, 0] != x[0, 0]),
    "no row": lambda x: torch.tensor([], dtype=torch.long).to(x.device),
    "no column": lambda x: (slice(None), torch.tensor([], dtype=torch.long).to(x.device)),
}


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int32, torch.half, torch.bool])
def test_assignment_to_places(places, dtype):
    x = (torch.arange(60).reshape(3, 4, 5) % 7 - 1).to(dtype)
    there = x.npu()
    expected = put(x, PLACES[places](x))
    assert torch.equal(put(there, PLACES[places](there)).cpu(), expected)


def test_gradient_of_selected_places():
    x = torch.randn(3, 4, 5)
    expected, got = x.clone().requires_grad_(), x.npu().requires_grad_()
    for leaf in (expected, got):
        (leaf[:, [0, 3]].square().sum() + leaf[[0, 1], :, [0, 1]].exp().sum()).backward()
    assert_close(got.grad.cpu(), expected.grad)


@pytest.mark.parametrize("weights", [1, 4])
@pytest.mark.parametrize("shape", [(3, 4), (2, 4, 3), (2, 4, 4), (2, 4, 3, 5), (2, 4, 2, 2, 3)])
def test_prelu(shape, weights):
    x, dy = torch.randn(shape), torch.randn(shape)
    results = []
    for device in ("cpu", "npu"):
        layer = torch.nn.PReLU(weights).to(device)
        leaf = x.clone().to(device).requires_grad_()
        y = layer(leaf)
        y.backward(dy.to(device))
        results.append([t.detach().cpu() for t in (y, leaf.grad, layer.weight.grad)])
    assert torch.equal(results[1][0], results[0][0])
    assert torch.equal(results[1][1], results[0][1])
    assert_close(results[1][2], results[0][2])
