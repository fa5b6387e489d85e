# SPDX-License-Identifier: Apache-2.0
"""The rows of openaclnn through torch_npu have the bits of openaclnn's own functions, which other
tests compare with float64; so the right operator got the right attributes. Autograd is compared
with float64.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import openaclnn

SEED = 20260


def drawn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(SEED)) * 2).to(dtype)


CASES = {
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.3), lambda x: openaclnn.leaky_relu(x, 0.3)),
    "leaky_relu_": (
        lambda x: F.leaky_relu_(x.clone(), 0.3),
        lambda x: openaclnn.leaky_relu(x, 0.3),
    ),
    "elu": (lambda x: F.elu(x, 0.7), lambda x: openaclnn.elu(x, 0.7, 1.0, 1.0)),
    "elu_": (lambda x: F.elu_(x.clone(), 0.7), lambda x: openaclnn.elu(x, 0.7, 1.0, 1.0)),
    "hardshrink": (lambda x: F.hardshrink(x, 0.4), lambda x: openaclnn.hardshrink(x, 0.4)),
    "logit": (lambda x: torch.logit(x, 0.1), lambda x: openaclnn.logit(x, 0.1)),
    "logit without eps": (torch.logit, lambda x: openaclnn.logit(x, -1.0)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_bits(name, dtype):
    call, own = CASES[name]
    for x in (drawn(257, dtype=dtype), drawn(8, 33, dtype=dtype).t()):
        x = torch.rand_like(x) if name.startswith("logit") else x
        got, want = (t.contiguous().view(torch.uint8) for t in (call(x.npu()).cpu(), own(x)))
        assert torch.equal(got, want)


GRADIENTS = {
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.3), drawn),
    "elu": (lambda x: F.elu(x, 0.7), drawn),
    "selu": (F.selu, drawn),
    "celu": (lambda x: F.celu(x, 0.7), drawn),
    "hardshrink": (lambda x: F.hardshrink(x, 0.4), drawn),
    "logit": (lambda x: torch.logit(x, 1e-3), lambda *s: torch.sigmoid(drawn(*s))),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_against_float64(name):
    call, inputs = GRADIENTS[name]
    x = inputs(4, 65)
    exact = x.double().requires_grad_()
    call(exact).backward(torch.ones_like(exact))
    there = x.npu().requires_grad_()
    call(there).backward(torch.ones_like(there))
    apart = (there.grad.cpu().double() - exact.grad).abs() / exact.grad.abs().clamp_min(1e-30)
    assert apart.max() <= 4 * np.finfo(np.float32).eps  # what their references allow, and less


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_group_norm_swish(scale):
    x, gamma, beta, dy = drawn(2, 8, 5, 3), drawn(8), drawn(8) + 1, drawn(2, 8, 5, 3) - 1
    inputs = [t.npu().requires_grad_() for t in (x, gamma, beta)]
    got = torch.ops.npu.npu_group_norm_swish(inputs[0], 4, inputs[1], inputs[2], 1e-5, scale)
    y, mean, rstd = openaclnn.group_norm_swish(x, gamma, beta, 4, "NCHW", 1e-5, True, scale)
    for g, w in zip(got, (y, mean, rstd), strict=True):
        assert torch.equal(g.detach().cpu().reshape(w.shape), w)
    got[0].backward(dy.npu())
    exact = [t.double().requires_grad_() for t in (x, gamma, beta)]
    normal = F.group_norm(exact[0], 4, exact[1], exact[2], 1e-5)
    (normal * torch.sigmoid(scale * normal)).backward(dy.double())
    for there, want in zip(inputs, exact, strict=True):
        error = (there.grad.cpu().double() - want.grad).abs().max() / want.grad.abs().max()
        assert (
            error < 4e-7 * 8
        )  # of the sum of absolute terms, which is at most 8 times the largest
