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
    return (torch.randn(shape, generator=torch.Generator().manual_seed(SEED)) * 2).to(dtype)


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


# What torch calls, and the attributes of the rows behind it and its gradient.
SELU = {"alpha": 1.6732632423543772, "scale": 1.0507009873554805, "input_scale": 1.0}
ELU = {"alpha": 0.7, "scale": 1.0, "input_scale": 1.0}
ROWS = {
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.3), {"negative_slope": 0.3}),
    "elu": (lambda x: F.elu(x, 0.7), ELU),
    "selu": (F.selu, SELU),
    "hardshrink": (lambda x: F.hardshrink(x, 0.4), {"lambd": 0.4}),
    "logit": (lambda x: torch.logit(x, 0.1), {"eps": 0.1}),
    "logit without eps": (torch.logit, {"eps": -1.0}),
}
LAYOUTS = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.transpose(0, 3),
    "channels last": lambda t: t.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2),
    "sliced": lambda t: t[:, 1:, ::2, 1:4],
    "empty": lambda t: t[:0],
    "rank 0": lambda t: t[1, 2, 3, 4],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ROWS)
def test_forward_and_backward_are_as_exact_as_promised(name, layout, dtype):
    call, attributes = ROWS[name]
    op = name.split()[0].replace("selu", "elu")
    x = drawn(2, 4, 6, 5)
    x = (torch.sigmoid(x) if op == "logit" else x).to(dtype)
    leaf = LAYOUTS[layout](x.npu()).detach().requires_grad_()
    assert leaf.stride() == LAYOUTS[layout](x).stride()
    y = call(leaf)
    dy = drawn(*y.shape, dtype=dtype)
    y.backward(dy.npu())
    x, y, dx = (t.detach().cpu() for t in (leaf, y, leaf.grad))
    if layout == "empty":  # nothing to compare
        assert y.shape == dx.shape == x.shape == (0, 4, 6, 5)
        return
    assert (found := openaclnn.compare(y, op, x, **attributes)), found
    gradient = {
        "leaky_relu": lambda: openaclnn.compare(
            dx, "leaky_relu_backward", dy, x, self_is_result=False, **attributes
        ),
        "elu": lambda: openaclnn.compare(
            dx, "elu_backward", dy, is_result=False, self_or_result=x, **attributes
        ),
        "hardshrink": lambda: openaclnn.compare(dx, "hardshrink_backward", dy, x, **attributes),
        "logit": lambda: openaclnn.compare(dx, "logit_grad", x, dy, **attributes),
    }
    assert (found := gradient[op]()), found


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
