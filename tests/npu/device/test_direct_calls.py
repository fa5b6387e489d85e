# SPDX-License-Identifier: Apache-2.0
"""Rows that torch_npu does not reach under the name of this device, called as C functions: their
values against torch's own operators, autograd, or the sum that defines them. The files
test_direct_*.py have attention, norms, pooling and random numbers; this one has the rest.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from tests.npu.device.direct_calls import gradients, image, line, out, whole, x23, y23
from torch.testing import assert_close

# A row, its arguments, and what it must write. None stands for an argument that is a result.
PLAIN = {
    "aclnnAddRelu": ((x23, y23, 0.5), torch.relu(x23 + 0.5 * y23)),
    "aclnnAddV3": ((2.0, x23, 3.0), 2 + 3 * x23),
    "aclnnBucketize": (
        (x23, torch.tensor([-1.0, 0.0, 1.0]), False, True),
        torch.bucketize(x23, torch.tensor([-1.0, 0.0, 1.0]), right=True),
    ),
    "aclnnLessScalar": ((x23, 0.3), x23 < 0.3),
    "aclnnLeftShifts": ((whole, 2), whole << 2),
    "aclnnMaskedScale": ((x23, (x23 > 0).float(), 1.5), x23 * (x23 > 0) * 1.5),
    "aclnnRepeatInterleaveTensor": (
        (torch.tensor([2, 0, 3]), 5),
        torch.tensor([0, 0, 2, 2, 2]),
    ),
    "aclnnUnfoldGrad": (
        (torch.arange(12.0).reshape(4, 3), (6,), 0, 3, 1),
        gradients(lambda x: x.unfold(0, 3, 1), torch.arange(12.0).reshape(4, 3), torch.ones(6))[0],
    ),
    "aclnnIndexAddV2": (
        (x23, 0, torch.tensor([1, 1]), y23, 2.0, 0),
        x23.index_add(0, torch.tensor([1, 1]), y23, alpha=2),
    ),
    "aclnnIndexFillTensor": (
        (x23, 1, (0, 2), 5.0),
        x23.index_fill(1, torch.tensor([0, 2]), 5),
    ),
    "aclnnUpsampleNearest1d": ((line, (9,)), F.interpolate(line, 9)),
    "aclnnFastGelu": ((x23,), x23 * torch.sigmoid(1.702 * x23)),
    "aclnnFastGeluBackward": (
        (y23, x23),
        gradients(lambda x: x * torch.sigmoid(1.702 * x), y23, x23)[0],
    ),
    "aclnnSwiGluGrad": (
        (y23[:, :2].contiguous(), image[0, 0, :2, :4].contiguous(), -1),
        gradients(
            lambda x: F.silu(x[:, :2]) * x[:, 2:], y23[:, :2].contiguous(), image[0, 0, :2, :4]
        )[0],
    ),
    "aclnnCdistBackward": (
        (y23[:, :2].contiguous(), x23, y23, torch.cdist(x23, y23), 2.0),
        gradients(torch.cdist, y23[:, :2].contiguous(), x23, y23)[0],
    ),
    "aclnnConvDepthwise2d": (
        (image, image[0, :, None, :3, :3].contiguous(), (3, 3), y23[0].contiguous(), (2, 1), (1, 0),
         (1, 1)),
        F.conv2d(image, image[0, :, None, :3, :3], y23[0], (2, 1), (1, 0), 1, 3), 0,
    ),
    "aclnnConvTbc": (
        (image[0], image[1, :, :, :2].contiguous(), y23[0, :2].contiguous(), 1),
        torch.conv_tbc(image[0], image[1, :, :, :2].contiguous(), y23[0, :2], 1), 0,
    ),
    "aclnnGeluMul": (
        (image, "tanh"), F.gelu(image[..., :3], approximate="tanh") * image[..., 3:]
    ),
    "aclnnScaledMaskedSoftmax": (
        (image, image > 0, 2.0, False),
        torch.softmax((image * 2).masked_fill(image > 0, -10000), -1),
    ),
    "aclnnScaledMaskedSoftmaxBackward": (
        (image.cos(), torch.softmax((image * 2).masked_fill(image > 0, -10000), -1), image > 0, 2.0,
         False),
        gradients(
            lambda x: torch.softmax((x * 2).masked_fill(image > 0, -10000), -1), image.cos(), image
        )[0],
    ),
    "aclnnMaskedSoftmaxWithRelPosBias": (
        (image[None], image[:, 0].contiguous(), image[0].contiguous(), 0.5, 0),
        torch.softmax(image[None] * 0.5 + image[:, 0][:, None] + image[0], -1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_rows_with_one_result(call, name):
    given, expected, *behind = PLAIN[name]
    result = out(*expected.shape, dtype=expected.dtype) if expected.dtype != torch.bool else (
        torch.zeros_like(expected)
    )  # fmt: skip
    call(name, *given, result, *behind)
    assert_close(result, expected)


INPLACE = {
    "aclnnInplaceAddRelu": ((y23, 0.5), torch.relu(x23 + 0.5 * y23)),
    "aclnnInplaceXLogYScalarOther": ((2.0,), torch.xlogy(x23, 2.0)),
    "aclnnEmbeddingRenorm": (
        (torch.tensor([1]), 1.0, 2.0),
        torch.stack([x23[0], x23[1] / (x23[1].norm() + 1e-7)]),
    ),
    "aclnnScatterNdUpdate": (
        (torch.tensor([[0, 2], [1, 0]]), torch.tensor([8.0, 9.0])),
        torch.tensor([[x23[0, 0], x23[0, 1], 8.0], [9.0, x23[1, 1], x23[1, 2]]]),
    ),
}


@pytest.mark.parametrize("name", INPLACE)
def test_rows_in_place(call, name):
    given, expected = INPLACE[name]
    result = x23.clone()
    call(name, result, *given)
    assert_close(result, expected)


def test_extremes(call):
    low, high = out(), out()
    call("aclnnAminmaxAll", x23, low, high)
    assert (low, high) == (x23.min(), x23.max())
    low, high = out(2), out(2)
    call("aclnnAminmaxDim", x23, 1, False, low, high)
    assert torch.equal(low, x23.amin(1))
    assert torch.equal(high, x23.amax(1))


def test_parts(call):
    parts = [out(2, 1), out(2, 2)]
    call("aclnnSplitWithSize", x23, (1, 2), 1, parts)
    assert torch.equal(torch.cat(parts, 1), x23)


def test_slogdet(call):
    square = image[:, 0, :4, :4].contiguous()
    sign, log = out(2), out(2)
    call("aclnnSlogdet", square, sign, log)
    assert_close((sign, log), tuple(torch.linalg.slogdet(square)))


def test_confusion_transpose(call):
    result = out(3, 2, 2)
    given = torch.arange(12.0).reshape(4, 3)
    call("aclnnConfusionTranspose", given, (2, 0, 1), (2, 2, 3), False, result)
    assert torch.equal(result, given.reshape(2, 2, 3).permute(2, 0, 1))
    call("aclnnConfusionTranspose", given, (1, 0), (3, 2, 2), True, result)
    assert torch.equal(result, given.t().reshape(3, 2, 2))


@pytest.mark.parametrize("repeats", [torch.tensor([2, 0, 3]), torch.tensor([2])])
def test_gradient_of_repeat_interleave(call, repeats):
    leaf = torch.ones(3, 2)
    dy = torch.arange(2.0 * (5 if repeats.numel() > 1 else 6)).reshape(-1, 2)
    result = out(3, 2)
    call("aclnnRepeatInterleaveGrad", dy, repeats, 0, result)
    expected = gradients(lambda x: x.repeat_interleave(repeats.expand(3).contiguous(), 0), dy, leaf)
    assert_close(result, expected[0])


def test_unique(call):
    given = torch.tensor([3.0, 1, 3, 2, 1])
    values, places = out(5), out(5, dtype=torch.int64)
    call("aclnnUnique", given, True, True, values, places)
    assert values[:3].tolist() == [1, 2, 3]
    assert places.tolist() == [2, 0, 2, 1, 0]
    given = torch.tensor([[3, 1], [0, 0], [3, 1]])
    values = torch.zeros(3, 2, dtype=torch.int64)
    places, counts = out(3, dtype=torch.int64), out(3, dtype=torch.int64)
    call("aclnnUniqueDim", given, True, True, 0, values, places, counts)
    assert values[:2].tolist() == [[0, 0], [3, 1]]
    assert places.tolist() == [1, 0, 1]
    assert counts[:2].tolist() == [1, 2]


# ---- lists, with the number in a tensor ----


@pytest.mark.parametrize("name", ["Add", "Sub", "Mul", "Div", "Maximum", "Minimum", "Pow"])
def test_lists_with_a_number(call, name):
    given, number = [y23, line.abs()], torch.tensor(0.7)
    results = [torch.zeros_like(t) for t in given]
    call(f"aclnnForeach{name}Scalar", given, number, results)
    f = getattr(torch, name.lower())
    assert_close(results, [f(t, number) for t in given])
    if name in ("Add", "Sub"):
        call(f"aclnnForeach{name}List", given, given[::-1][::-1], number, results)
        assert_close(results, [f(t, t, alpha=0.7) for t in given])


@pytest.mark.parametrize("name", ["Addcdiv", "Addcmul"])
def test_lists_of_three_with_a_number(call, name):
    given, by, over = [x23, line], [x23 + 1, line * 2], [y23, line.abs() + 1]
    results = [torch.zeros_like(t) for t in given]
    call(f"aclnnForeach{name}Scalar", given, by, over, torch.tensor(0.7), results)
    f = getattr(torch, name.lower())
    assert_close(results, [f(*t, value=0.7) for t in zip(given, by, over, strict=True)])


@pytest.mark.parametrize(
    ("mode", "f"), [(1, torch.round), (2, torch.floor), (3, torch.ceil), (5, torch.trunc)]
)
def test_lists_rounded(call, mode, f):
    given = [x23 * 1.7, line * 3]
    results = [torch.zeros_like(t) for t in given]
    call("aclnnForeachRoundOffNumber", given, torch.tensor([mode], dtype=torch.int8), results)
    assert_close(results, [f(t) for t in given])
