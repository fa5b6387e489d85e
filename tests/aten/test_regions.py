# SPDX-License-Identifier: Apache-2.0
"""Deformable convolution and regions of images, against loops in float64;
gradients by autograd.
"""

from __future__ import annotations

import math

import pytest
from tests.aten import aten_support  # noqa: F401  (skips without torch and a compiler)
from tests.aten.aten_samples import torch
from tests.aten.quantised_support import FLOATS, Refused, call, miss, random

Tensor = torch.Tensor
F = torch.nn.functional


def at(image: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Bilinear sample of [C, H, W]; corners outside are 0."""
    total = torch.zeros(image.shape[0], dtype=torch.float64)
    row, column = int(y.detach().floor()), int(x.detach().floor())
    for i in (row, row + 1):
        for j in (column, column + 1):
            if 0 <= i < image.shape[1] and 0 <= j < image.shape[2]:
                total = total + image[:, i, j] * (1 - (y - i).abs()) * (1 - (x - j).abs())
    return total


# Kernel, stride, padding, dilation.
KERNEL, STRIDE, PADDING, DILATION = [2, 3], [1, 1, 2, 1], [1, 0, 2, 1], [1, 1, 1, 2]
SETS, GROUPS = 2, 2


def deformed(x: Tensor, offset: Tensor, modulated: bool) -> Tensor:
    """The samples [N, C, OH KH, OW KW]."""
    n, c, rows, columns = *x.shape[:2], *offset.shape[2:]
    part = offset.reshape(n, -1, SETS, *KERNEL, rows, columns)
    made = []
    for b in range(n):
        for g in range(SETS):
            image = x[b, g * c // SETS : (g + 1) * c // SETS]
            for i in range(rows):
                for u in range(KERNEL[0]):
                    for j in range(columns):
                        for v in range(KERNEL[1]):
                            here = part[b, :, g, u, v, i, j]
                            sample = at(
                                image,
                                i * STRIDE[2] - PADDING[0] + u * DILATION[2] + here[1],
                                j * STRIDE[3] - PADDING[2] + v * DILATION[3] + here[0],
                            )
                            made.append(sample * here[2] if modulated else sample)  # fmt: skip
    shape = (n, SETS, rows * KERNEL[0], columns * KERNEL[1], c // SETS)
    return torch.stack(made).reshape(shape).permute(0, 1, 4, 2, 3).flatten(1, 2)


@pytest.mark.parametrize("modulated", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_deformable_convolution_and_its_gradients(dtype, modulated):
    x, weight = random(2, 4, 5, 6, dtype=dtype), random(6, 2, *KERNEL, seed=1, dtype=dtype)
    bias = random(6, seed=2, dtype=dtype)
    shape = (2, (3 if modulated else 2) * SETS * 6, 3, 5)
    # Between pixels, where samples have a derivative.
    offset = ((random(*shape, seed=3, low=-2, high=2) * 8).round() / 8 + 1 / 16).to(dtype)
    wide = [t.double().requires_grad_() for t in (x, weight, offset, bias)]
    samples = deformed(wide[0], wide[2], modulated)
    y = F.conv2d(samples, wide[1], wide[3], stride=KERNEL, groups=GROUPS)
    form = (KERNEL, STRIDE, PADDING, DILATION, GROUPS, SETS, modulated)
    out, laid = call("aclnnDeformableConv2d", x, weight, offset, bias, *form,
                     torch.empty(y.shape, dtype=dtype),
                     torch.empty(samples.shape, dtype=dtype))  # fmt: skip
    assert miss(out, y) == ""
    assert miss(laid, samples) == ""
    dy = random(*y.shape, seed=4, dtype=dtype)
    expected = torch.autograd.grad(y, wide, dy.double())
    got = call("aclnnDeformableConv2dBackward", x, dy, laid, weight, offset, *form,
               *map(torch.empty_like, (x, weight, offset, bias)))  # fmt: skip
    for one, other in zip(got, expected, strict=True):
        assert miss(one, other, slack=torch.finfo(dtype).eps) == ""


def weights(begin: float, length: float, bins: int, size: int, samples: int) -> Tensor:
    """[bins, size]: what each pixel adds to the mean of a bin's samples."""
    count = samples or max(1, math.ceil(length / bins))
    made = torch.zeros(bins, size, dtype=torch.float64)
    for i in range(bins * count):
        place = begin + (i + 0.5) * length / bins / count
        if -1 <= place <= size:
            place = min(max(place, 0), size - 1)
            low = math.floor(place)
            made[i // count, low] += (1 - place + low) / count
            made[i // count, min(low + 1, size - 1)] += (place - low) / count
    return made


BOXES = torch.tensor([[1, 0, 0, 7, 5], [0, 2.5, 1.25, 3, 2], [1, -3, 4, 12, 9], [0, 5, 5, 4, 4]])


def pooled(x: Tensor, scale: float, bins: tuple[int, int], samples: int, form: str) -> Tensor:
    """form: end (inside), plain (a pixel at least) or aligned."""
    made = []
    for n, *box in BOXES.double().tolist():
        more, shift, least = (form == "end"), 0.5 * (form == "aligned"), float(form == "plain")
        sides = []
        for first, last, count, size in ((box[1], box[3], bins[0], x.shape[2]),
                                         (box[0], box[2], bins[1], x.shape[3])):  # fmt: skip
            length = max((last + more - first) * scale, least)
            sides.append(weights(first * scale - shift, length, count, size, samples))
        made.append(sides[0] @ x[int(n)] @ sides[1].T)
    return torch.stack(made)


@pytest.mark.parametrize("samples", [0, 2])
@pytest.mark.parametrize("form", ["plain", "end", "aligned"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_regions_are_averaged_and_their_gradients_spread(dtype, form, samples):
    if form == "aligned" and dtype != torch.float32:
        pytest.skip("refused by product A2")
    x, scale, bins = random(2, 3, 6, 7, dtype=dtype), 0.75, (2, 3)
    wide = x.double().requires_grad_()
    expected = pooled(wide, scale, bins, samples, form)
    dy, out = random(4, 3, *bins, seed=1, dtype=dtype), torch.empty(4, 3, *bins, dtype=dtype)
    boxes = BOXES.to(dtype)
    if form == "aligned":
        (got,) = call("aclnnRoiAlignV2", x, boxes, *bins, scale, samples, True, out)
        (dx,) = call("aclnnRoiAlignV2Backward", dy, boxes, list(x.shape), *bins, scale, samples,
                     True, torch.empty_like(x))  # fmt: skip
    else:
        mode = int(form == "end")
        (got,) = call("aclnnROIAlign", x, boxes, scale, *bins, samples, mode, out)
        (dx,) = call("aclnnROIAlignBackward", dy, boxes, list(x.shape), *bins[::-1], scale, samples,
                     mode, torch.empty_like(x))  # fmt: skip
    assert miss(got, expected) == ""
    assert miss(dx, torch.autograd.grad(expected, wide, dy.double())[0]) == ""


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({1: torch.tensor([[2.0, 0, 0, 1, 1]])}, r"images of regions must be in \[0, 1\]"),
        ({1: torch.tensor([[0.0, math.nan, 0, 1, 1]])}, "regions must be finite"),
        ({1: torch.tensor([[0.0, 0, 0, 1e9, 1]])}, "their bins at most 65536 pixels"),
        ({1: torch.ones(1, 4)}, r"rois must have shape \[1, 5\]"),
        ({3: 0}, "pooledHeight and pooledWidth must be from 1"),
        ({5: 2000}, "the samples of a bin must be from 0 to 1024"),
        ({6: 2}, "roiEndMode must be 0 or 1, but got 2"),
    ],
)
def test_refusals_of_regions(changed, sentence):
    given = [torch.ones(2, 3, 6, 7), torch.tensor([[0.0, 0, 0, 1, 1]]), 1.0, 2, 2, 0, 0,
             torch.empty(1, 3, 2, 2)]  # fmt: skip
    for i, value in changed.items():
        given[i] = value
    with pytest.raises(Refused, match=sentence):
        call("aclnnROIAlign", *given)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({2: torch.ones(1, 8, 2, 4)}, "offset must have shape"),
        ({5: [1, 1, 0, 1]}, "stride must be from 1"),
        ({6: [0, 0, 1]}, "padding must have 4 numbers"),
        ({8: 3}, "groups and deformableGroups must divide the channels of x, 2"),
        ({4: [9, 9]}, "weight must have shape"),
    ],
)
def test_refusals_of_deformable_convolution(changed, sentence):
    given = [torch.ones(1, 2, 3, 4), torch.ones(2, 2, 2, 2), torch.ones(1, 8, 2, 3), None, [2, 2],
             [1] * 4, [0] * 4, [1] * 4, 1, 1, False, torch.empty(1, 2, 2, 3), None]  # fmt: skip
    call("aclnnDeformableConv2d", *given)
    for i, value in changed.items():
        given[i] = value
    with pytest.raises(Refused, match=sentence):
        call("aclnnDeformableConv2d", *given)
