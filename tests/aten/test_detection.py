# SPDX-License-Identifier: Apache-2.0
"""Overlap of boxes, and attention to points of feature maps with its gradient, in float64."""

from __future__ import annotations

import math

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import Refused, torch
from tests.aten.golden import FLOATS, call, close

Tensor = torch.Tensor
SLACK = 4e-6


def overlap(a: list[float], b: list[float], mode: str, eps: float) -> float:
    width = max(min(a[2], b[2]) - max(a[0], b[0]), 0)
    both = width * max(min(a[3], b[3]) - max(a[1], b[1]), 0)
    first, second = ((x[2] - x[0] + eps) * (x[3] - x[1] + eps) for x in (a, b))
    return both / (second if mode == "iof" else first + second - both)


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("mode", ["iou", "iof"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_boxes_overlap(dtype, mode, aligned):
    torch.manual_seed(0)

    def boxes(count: int) -> Tensor:
        corner = torch.rand(count, 2) * 2
        return torch.cat([corner, corner + torch.rand(count, 2) * 2 + 0.25], 1).to(dtype)

    a, b = boxes(4), boxes(4 if aligned else 3)
    pairs = zip(a.tolist(), b.tolist(), strict=True) if aligned else (
        (x, y) for x in a.tolist() for y in b.tolist())  # fmt: skip
    expected = torch.tensor([overlap(x, y, mode, 0.5) for x, y in pairs], dtype=torch.float64)
    out = torch.empty(4, 1 if aligned else 3, dtype=dtype)
    close(call("aclnnIou", a, b, mode, 0.5, aligned, out), [expected.reshape(out.shape)], SLACK)


SHAPES = [(3, 4), (2, 2)]  # of the maps
B, S, HEADS, C, Q, POINTS = 2, 16, 2, 3, 5, 2


def attention(value: Tensor, location: Tensor, weight: Tensor) -> Tensor:
    """Pixel by pixel: each is weighted by its distance to the point, up to 1 along either axis."""
    out, start = 0, 0
    for level, (h, w) in enumerate(SHAPES):
        u, v = location[:, :, :, level, :, 0] * w - 0.5, location[:, :, :, level, :, 1] * h - 0.5
        for y in range(h):
            for x in range(w):
                near = (1 - (u - x).abs()).clamp(min=0) * (1 - (v - y).abs()).clamp(min=0)
                share = (near * weight[:, :, :, level]).sum(-1, keepdim=True)
                out = out + share * value[:, None, start + y * w + x]
        start += h * w
    return out.reshape(B, Q, HEADS * C)


@pytest.mark.parametrize("dtype", FLOATS)
def test_points_of_maps_are_attended_to(dtype):
    torch.manual_seed(0)
    given = [torch.randn(B, S, HEADS, C), torch.rand(B, Q, HEADS, 2, POINTS, 2) * 1.5 - 0.25,
             torch.rand(B, Q, HEADS, 2, POINTS)]  # fmt: skip
    given = [t.to(dtype) for t in given]
    maps = torch.tensor(SHAPES, dtype=torch.int32), torch.tensor([0, 12], dtype=torch.int32)
    wide = [t.double().requires_grad_() for t in given]
    expected = attention(*wide)
    out, g = torch.empty(expected.shape, dtype=dtype), torch.randn(expected.shape).to(dtype)
    (got,) = call("aclnnMultiScaleDeformableAttnFunction", given[0], *maps, *given[1:], out)
    close([got], [expected], SLACK)
    gradients = torch.autograd.grad(expected, wide, g.double())
    got = call("aclnnMultiScaleDeformableAttentionGrad", given[0], *maps, *given[1:], g,
               *(torch.empty_like(t) for t in given))  # fmt: skip
    # Rounded locations lie on the centres of pixels, where the gradient has two sides.
    kept = slice(None) if dtype == torch.float32 else slice(0, 3, 2)
    close(got[kept], list(gradients)[kept], SLACK)


@pytest.mark.parametrize("sizes", [[(3, 4), (2, 3)], [(3, 4), (0, 2)], [(3, 4), (2**31 - 1, 9)]])
def test_maps_lie_within_the_values(sizes):
    values = [torch.ones(B, S, HEADS, C), torch.tensor(sizes), torch.tensor([0, 12]),
              torch.ones(B, Q, HEADS, 2, POINTS, 2), torch.ones(B, Q, HEADS, 2, POINTS),
              torch.empty(B, Q, HEADS * C)]  # fmt: skip
    with pytest.raises(Refused, match="must lie within the 16 positions of value, but level 1"):
        call("aclnnMultiScaleDeformableAttnFunction", *values)
    assert math.prod(sizes[0]) == 12
