# SPDX-License-Identifier: Apache-2.0
"""Rows of pooling, interpolation and convolution, called as C functions."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from tests.npu.device.direct_calls import gradients, image, line, out, volume, y23
from torch import Tensor
from torch.testing import assert_close


def test_max_pool_with_places(call):
    given = ((3, 2), (2, 2), (1, 0), (1, 1), True)
    expected, places = F.max_pool2d(image, *given, return_indices=True)
    value, where = torch.zeros_like(expected), out(*places.shape, dtype=torch.int32)
    call("aclnnMaxPool2dWithIndices", image, *given, value, where)
    assert torch.equal(value, expected)
    assert torch.equal(where.long(), places)
    dx, dy = torch.zeros_like(image), expected.cos()
    call("aclnnMaxPool2dWithIndicesBackward", dy, image, where, *given, dx)
    assert_close(dx, gradients(lambda x: F.max_pool2d(x, *given), dy, image)[0])


@pytest.mark.parametrize("kind", ["bilinear", "bicubic"])
def test_interpolation_with_antialias(call, kind):
    def forward(x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=0.7, mode=kind, antialias=True)

    name = f"aclnnUpsample{kind.title()}2dAA"
    expected = forward(image)
    value, size = torch.zeros_like(expected), tuple(expected.shape[2:])
    call(name, image, size, False, 0.7, 0.7, value)
    assert_close(value, expected)
    dx, dy = torch.zeros_like(image), expected.cos()
    backward = name + ("Grad" if kind == "bicubic" else "Backward")
    call(backward, dy, size, tuple(image.shape), False, 0.7, 0.7, dx)
    assert_close(dx, gradients(forward, dy, image)[0])


@pytest.mark.parametrize("given", [line, image, volume], ids=["1d", "2d", "3d"])
def test_gradient_of_interpolation(call, given):
    dims = given.dim() - 2

    def check(name: str, mode: str, *options: bool) -> None:
        def forward(x: Tensor) -> Tensor:
            return F.interpolate(x, scale_factor=1.3, mode=mode)

        dy, dx = forward(given).cos(), torch.zeros_like(given)
        scales = (1.3,) * dims
        call(name, dy, tuple(dy.shape[2:]), tuple(given.shape), *options, *scales, dx)
        assert_close(dx, gradients(forward, dy, given)[0])

    check(f"aclnnUpsampleNearestExact{dims}dBackward", "nearest-exact")
    if dims == 2:
        check("aclnnUpsampleBilinear2dBackward", "bilinear", False)


def test_gradient_of_conv_tbc(call):
    x, weight, bias = image[0], image[1, :, :, :2].contiguous(), y23[0, :2].contiguous()

    def forward(*inputs: Tensor) -> Tensor:
        return torch.conv_tbc(*inputs, 1)

    dy = forward(x, weight, bias).cos()
    results = [torch.zeros_like(t) for t in (x, weight, bias)]
    call("aclnnConvTbcBackward", dy, x, weight, bias, 1, 0, *results)
    for result, expected in zip(results, gradients(forward, dy, x, weight, bias), strict=True):
        assert_close(result, expected)
