# SPDX-License-Identifier: Apache-2.0
"""Rows that torch_npu does not reach under the name of this device, called as C functions: their
values against torch's own operators, autograd, or the sum that defines them.
"""

from __future__ import annotations

import ctypes

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close

from openaclnn.aten import rows
from openaclnn.torch_npu.provider import provider

ROWS = {row.name: row for row in rows()}
CODES = {torch.float32: 0, torch.int32: 3, torch.uint8: 4, torch.int64: 9, torch.bool: 12}
NUMBERS = {
    "int": ctypes.c_int64, "byte": ctypes.c_int8, "double": ctypes.c_double,
    "float": ctypes.c_float, "bool": ctypes.c_bool, "dtype": ctypes.c_int32,
}  # fmt: skip


class Library:
    def __init__(self) -> None:
        torch.ones(1, device="npu")
        self.rows = ctypes.CDLL(str(provider()))
        self.base = ctypes.CDLL("libopenaclnn.so")
        self.base.aclGetRecentErrMsg.restype = ctypes.c_char_p
        made = ("Tensor", "Scalar", "IntArray", "TensorList")
        for name in made:
            getattr(self.base, f"aclCreate{name}").restype = ctypes.c_void_p
        self.kept: list[object] = []

    def tensor(self, value: Tensor) -> ctypes.c_void_p:
        self.kept.append(value)
        rank = ctypes.c_uint64(value.dim())
        shape = (ctypes.c_int64 * value.dim())(*value.shape)
        strides = (ctypes.c_int64 * value.dim())(*value.stride())
        return ctypes.c_void_p(
            self.base.aclCreateTensor(
                shape, rank, CODES[value.dtype], strides, ctypes.c_int64(0), 2, shape, rank,
                ctypes.c_void_p(value.data_ptr()),
            )
        )  # fmt: skip

    def argument(self, kind: str, value: object) -> object:
        if kind in NUMBERS:
            return NUMBERS[kind](value)
        if value is None:
            return None
        if kind == "tensor":
            return self.tensor(value)
        if kind == "text":
            return ctypes.c_char_p(value.encode())
        if kind == "scalar":
            whole = isinstance(value, int)
            held = (ctypes.c_int64 if whole else ctypes.c_double)(value)
            return ctypes.c_void_p(
                self.base.aclCreateScalar(ctypes.byref(held), 9 if whole else 11)
            )
        count = ctypes.c_uint64(len(value))
        if kind == "ints":
            items = (ctypes.c_int64 * len(value))(*value)
            return ctypes.c_void_p(self.base.aclCreateIntArray(items, count))
        assert kind == "tensors", kind
        items = (ctypes.c_void_p * len(value))(*(self.tensor(one).value for one in value))
        return ctypes.c_void_p(self.base.aclCreateTensorList(items, count))

    def __call__(self, name: str, *values: object) -> tuple[object, ...]:
        """Runs both phases and returns the values; the row writes some of them."""
        given = ROWS[name].given
        assert len(given) == len(values), name
        arguments = [self.argument(p.kind, v) for p, v in zip(given, values, strict=True)]
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        plan = getattr(self.rows, f"{name}GetWorkspaceSize")
        code = plan(*arguments, ctypes.byref(size), ctypes.byref(executor))
        assert code == 0, self.base.aclGetRecentErrMsg()
        stream = ctypes.c_void_p(torch.npu.current_stream().npu_stream)
        code = getattr(self.rows, name)(None, ctypes.c_uint64(0), executor, stream)
        assert code == 0, self.base.aclGetRecentErrMsg()
        return values


@pytest.fixture(scope="module")
def call():
    return Library()


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(20260)


def out(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Memory for a result, filled with a value that no result has."""
    return torch.full(shape, 77, dtype=dtype)


def gradients(f, dy: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    return torch.autograd.grad(f(*leaves), leaves, dy)


x23 = torch.linspace(-2, 2, 6).reshape(2, 3)
y23 = torch.linspace(1, 3, 6).reshape(2, 3)
image = torch.sin(torch.arange(2 * 3 * 6 * 6.0)).reshape(2, 3, 6, 6)
volume = torch.sin(torch.arange(2 * 4 * 4 * 4.0)).reshape(1, 2, 4, 4, 4)
line = torch.sin(torch.arange(12.0)).reshape(1, 2, 6)
whole = torch.tensor([[1, 2, 3], [4, 5, 6]])

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


# ---- pooling and interpolation ----


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
    call("aclnnForeachRoundOffNumber", given, torch.tensor([mode], dtype=torch.int32), results)
    assert_close(results, [f(t) for t in given])


# ---- random numbers: a seed in a tensor draws the same as the number ----


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("Normal", (1.0, 2.0)),
        ("Uniform", (-1.0, 3.0)),
        ("Random", (2, 9)),
        ("RandomWithoutFromTo", ()),
    ],
)
def test_seeds_in_tensors(call, name, given):
    first, second, other = (out(1000) for _ in range(3))
    seed, offset = torch.tensor([5]), torch.tensor([7])
    call(f"aclnnInplace{name}", first, *given, 5, 10)
    call(f"aclnnInplace{name}Tensor", second, *given, seed, offset, 3)
    call(f"aclnnInplace{name}Tensor", other, *given, seed, offset, 4)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert first.unique().numel() > 6


def test_seeds_in_tensors_of_multinomial(call):
    weights = torch.tensor([0.0, 1.0, 3.0])
    first, second = out(500, dtype=torch.int64), out(500, dtype=torch.int64)
    call("aclnnMultinomial", weights, 500, True, 5, 10, first)
    seed, offset = torch.tensor([5]), torch.tensor([7])
    call("aclnnMultinomialTensor", weights, 500, True, seed, offset, 3, second)
    assert torch.equal(first, second)
    # Three standard deviations of 500 draws with probability 3/4 are 29.
    assert abs((first == 2).sum().item() - 375) < 29
    assert not (first == 0).any()


def test_masks_of_dropout(call):
    masks = [out(128, dtype=torch.uint8) for _ in range(3)]
    call("aclnnDropoutGenMaskV2", (1000,), 0.3, 5, 10, 1, masks[0])
    call("aclnnDropoutGenMask", (1000,), 0.3, 5, 10, masks[1])
    seed, offset = torch.tensor([5]), torch.tensor([7])
    call("aclnnDropoutGenMaskV2Tensor", (1000,), 0.3, seed, offset, 3, 1, masks[2])
    assert torch.equal(masks[0], masks[1])
    assert torch.equal(masks[0], masks[2])
    kept = sum(byte.bit_count() for byte in masks[0].tolist())
    assert abs(kept - 700) < 60  # four standard deviations of 14.5


def test_masks_of_dropout_are_read_within_their_size(call):
    x, kept = torch.rand(17) + 1, torch.tensor([0b10101010, 0b1, 0b1], dtype=torch.uint8)
    result = out(17)
    call("aclnnDropoutDoMask", x, kept, 0.5, result)
    bits = torch.tensor([0, 1] * 4 + [1] + [0] * 7 + [1])
    assert_close(result, x * bits * 2)

    def call_and_wait(name, given):  # where the queue runs the call, the stream reports its failure
        call(name, *given)
        torch.npu.synchronize()

    for name, given, text in (
        ("aclnnDropoutDoMask", (x, kept[:2], 0.5, result), "UINT8 with at least 3 elements"),
        ("aclnnDropoutDoMask", (x, x, 0.5, result), "each of 17 elements, but got Float with 17"),
        ("aclnnDropoutGenMask", ((1000,), 0.3, 5, 10, kept), "UINT8 with at least 125 elements"),
    ):
        with pytest.raises((AssertionError, RuntimeError), match=text):
            call_and_wait(name, given)


@pytest.mark.parametrize("name", ["aclnnRReluWithNoise", "aclnnInplaceRReluWithNoise"])
@pytest.mark.parametrize("training", [True, False])
def test_rrelu(call, name, training):
    given, noise = torch.linspace(-3, 3, 200), out(200)
    result = given.clone() if "Inplace" in name else out(200)
    behind = () if "Inplace" in name else (result,)
    first = result if "Inplace" in name else given
    call(name, first, noise, 0.1, 0.5, training, 3, 4, *behind)
    if training:
        assert_close(result, given * noise)
        assert (noise[given > 0] == 1).all()
        drawn = noise[given <= 0]
        assert drawn.min() >= 0.1
        assert drawn.max() <= 0.5
        assert drawn.unique().numel() > 50
    else:
        assert_close(result, F.leaky_relu(given, 0.3))


# ---- batch normalisation in parts: two devices' parts are the whole batch ----


def test_batch_norm_in_parts(call):
    x, dy = torch.randn(6, 3, 4), torch.randn(6, 3, 4)
    weight, bias, eps = torch.randn(3), torch.randn(3), 1e-3
    running = [torch.randn(3), torch.rand(3)]
    expected_running = [t.clone() for t in running]
    again = [t.clone() for t in running]
    parts, counts = (x[:2].contiguous(), x[2:].contiguous()), torch.tensor([8.0, 16.0])
    means, invstds, sums, squares = (torch.zeros(2, 3) for _ in range(4))
    for i, part in enumerate(parts):
        call("aclnnBatchNormStats", part, eps, means[i], invstds[i])
        call("aclnnBatchNormReduce", part, sums[i], squares[i])
    mean, invstd, mean2, invstd2 = (out(3) for _ in range(4))
    call(
        "aclnnBatchNormGatherStatsWithCounts", x, means, invstds, *running, 0.2, eps, counts, mean,
        invstd,
    )  # fmt: skip
    call("aclnnSyncBatchNormGatherStats", sums, squares, counts, *again, 0.2, eps, mean2, invstd2)
    expected = F.batch_norm(x, *expected_running, weight, bias, True, 0.2, eps)
    assert_close(running, expected_running)
    assert_close(again, expected_running)
    assert_close((mean2, invstd2), (mean, invstd))
    y = torch.zeros_like(x)
    call("aclnnBatchNormElemt", x, weight, bias, mean, invstd, eps, y)
    assert_close(y, expected)

    def forward(*inputs: Tensor) -> Tensor:
        return F.batch_norm(inputs[0], None, None, *inputs[1:], True, 0.2, eps)

    of_x, of_weight, of_bias = gradients(forward, dy, x, weight, bias)
    sum_dy, sum_product, dweight, dbias = (out(3) for _ in range(4))
    call(
        "aclnnBatchNormReduceBackward", dy, x, mean, invstd, weight, True, True, True, sum_dy,
        sum_product, dweight, dbias,
    )  # fmt: skip
    assert_close((dweight, dbias), (of_weight, of_bias))
    dx = torch.zeros_like(x)
    call(
        "aclnnBatchNormElemtBackward", dy, x, mean, invstd, weight, sum_dy, sum_product, counts, dx
    )
    assert_close(dx, of_x)


def test_layer_norm_of_a_sum(call):
    a, b, dy, more = (torch.randn(4, 8) for _ in range(4))
    gamma, beta, bias, eps = *torch.randn(3, 8).unbind(), 1e-5
    y, total = torch.zeros(4, 8), torch.zeros(4, 8)
    mean, rstd = torch.zeros(4, 1), torch.zeros(4, 1)
    call("aclnnAddLayerNorm", a, b, gamma, beta, bias, eps, True, y, mean, rstd, total)
    assert_close(total, a + b + bias)
    assert_close(y, F.layer_norm(a + b + bias, (8,), gamma, beta, eps))
    call("aclnnAddLayerNorm", a, b, gamma, beta, None, eps, False, y, mean, rstd, None)

    def forward(x: Tensor, *affine: Tensor) -> Tensor:
        return F.layer_norm(x, (8,), *affine, eps)

    of_x, of_gamma, of_beta = gradients(forward, dy, a + b, gamma, beta)
    dx, dgamma, dbeta = torch.zeros(4, 8), torch.zeros(8), torch.zeros(8)
    call("aclnnAddLayerNormGrad", dy, a, b, rstd, mean, gamma, more, dx, dgamma, dbeta)
    assert_close((dx, dgamma, dbeta), (of_x + more, of_gamma, of_beta))
    call("aclnnFastLayerNorm", a, (8,), gamma, beta, eps, y, mean, rstd)
    assert_close(y, F.layer_norm(a, (8,), gamma, beta, eps))


def test_deep_norm(call):
    x, gx, dy = (torch.randn(4, 8) for _ in range(3))
    gamma, beta = torch.randn(2, 8).unbind()

    def forward(x: Tensor, gx: Tensor, beta: Tensor, gamma: Tensor) -> Tensor:
        return F.layer_norm(0.3 * x + gx, (8,), gamma, beta, 1e-6)

    y, mean, rstd = torch.zeros(4, 8), torch.zeros(4, 1), torch.zeros(4, 1)
    call("aclnnDeepNorm", x, gx, beta, gamma, 0.3, 1e-6, mean, rstd, y)
    assert_close(y, forward(x, gx, beta, gamma))
    results = [torch.zeros(4, 8), torch.zeros(4, 8), torch.zeros(8), torch.zeros(8)]
    call("aclnnDeepNormGrad", dy, x, gx, gamma, mean, rstd, 0.3, *results)
    for result, expected in zip(results, gradients(forward, dy, x, gx, beta, gamma), strict=True):
        assert_close(result, expected)


def test_other_norms(call):
    x, gamma = torch.randn(4, 8), torch.randn(8)
    y, rstd = torch.zeros(4, 8), torch.zeros(4, 1)
    call("aclnnGemmaRmsNorm", x, gamma, 1e-5, y, rstd)
    assert_close(y, F.rms_norm(x, (8,), 1 + gamma, 1e-5))
    assert_close(rstd, (x.square().mean(1, keepdim=True) + 1e-5).rsqrt())
    weight, bias = y23[0].contiguous(), x23[0].contiguous()
    y, mean, rstd = torch.zeros_like(image), torch.zeros(2, 3), torch.zeros(2, 3)
    call("aclnnGroupNormSilu", image, weight, bias, 3, 1e-5, y, mean, rstd)
    assert_close(y, F.silu(F.group_norm(image, 3, weight, bias, 1e-5)))
    assert_close(mean, image.mean((2, 3)))


def test_fake_quantisation(call):
    scale, zero = torch.tensor([0.1, 0.3]), torch.tensor([2, -1], dtype=torch.int32)
    y, mask = torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.bool)
    call("aclnnFakeQuantPerChannelAffineCachemask", x23, scale, zero, 0, -8, 7, y, mask)
    steps = (x23 / scale[:, None]).round() + zero[:, None]
    assert_close(y, (steps.clamp(-8, 7) - zero[:, None]) * scale[:, None])
    assert torch.equal(mask, (steps >= -8) & (steps <= 7))


# ---- attention ----


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Pair i of a head, (x[i], x[i + D/2]), turned by its angle."""
    a, b = x.chunk(2, -1)
    c, s = cos[..., : a.size(-1)], sin[..., : a.size(-1)]
    return torch.cat([a * c - b * s, b * c + a * s], -1)


def angles(*shape: int) -> tuple[Tensor, Tensor]:
    half = torch.rand(*shape[:-1], shape[-1] // 2) * 6
    both = torch.cat([half, half], -1)
    return both.cos(), both.sin()


@pytest.mark.parametrize("behind", [(), ("half",)])
def test_rotary_embedding_in_place(call, behind):
    query, key = torch.randn(2, 5, 4, 8), torch.randn(2, 5, 1, 8)
    cos, sin = angles(2, 5, 1, 8)
    expected = [rotated(x, cos, sin) for x in (query, key)]
    call("aclnnApplyRotaryPosEmb" + "V2" * len(behind), query, key, cos, sin, 1, *behind)
    assert_close([query, key], expected)


def test_rotary_embedding_of_neighbours(call):
    x = torch.randn(2, 4, 5, 8)
    cos, sin = angles(2, 1, 5, 8)
    result = torch.zeros_like(x)
    call("aclnnInterleaveRope", x, cos, sin, result)
    assert_close(result, rotated(torch.cat([x[..., ::2], x[..., 1::2]], -1), cos, sin))


@pytest.mark.parametrize("mode", [0, 1])
def test_gradient_of_rotary_embedding(call, mode):
    x, dy = torch.randn(2, 2, 4, 5, 8)
    cos, sin = torch.randn(2, 1, 5, 8), torch.randn(2, 1, 5, 8)

    def forward(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        turned = torch.empty_like(x)
        first, second = (
            (slice(0, 4), slice(4, 8)) if mode == 0 else (slice(0, 8, 2), slice(1, 8, 2))
        )
        turned = torch.zeros_like(x)
        turned[..., first] = -x[..., second]
        turned[..., second] = x[..., first]
        return x * cos + turned * sin

    results = [torch.zeros_like(t) for t in (x, cos, sin)]
    call("aclnnRotaryPositionEmbeddingGrad", dy, cos, sin, x, mode, *results)
    for result, expected in zip(results, gradients(forward, dy, x, cos, sin), strict=True):
        assert_close(result, expected)


def test_flash_attention_of_the_second_version(call):
    query, key, value, dy = torch.randn(4, 2, 3, 6, 8)
    largest, total, y = torch.zeros(2, 3, 6, 8), torch.zeros(2, 3, 6, 8), torch.zeros(2, 3, 6, 8)
    mask = torch.ones(6, 6, dtype=torch.bool).triu(1)
    numbers = (8**-0.5, 1.0, 65536, 65536, 3, "BNSD", 0, 0, 1)
    call(
        "aclnnFlashAttentionScoreV2", query, key, value, None, None, None, mask, (), (0,), (0,),
        *numbers, largest, total, None, y,
    )  # fmt: skip

    def forward(*inputs: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(*inputs, is_causal=True)

    assert_close(y, forward(query, key, value))
    results = [torch.zeros_like(query) for _ in range(3)]
    call(
        "aclnnFlashAttentionScoreGradV2", query, key, value, dy, None, None, None, mask, largest,
        total, None, y, (), (0,), (0,), *numbers, *results, None,
    )  # fmt: skip
    for result, expected in zip(results, gradients(forward, dy, query, key, value), strict=True):
        assert_close(result, expected)


def test_projections_of_attention(call):
    qkv, bias = torch.randn(2, 5, 24), torch.randn(24)
    results = [torch.zeros(2, 2, 5, 4) for _ in range(3)]
    call("aclnnTransformBiasRescaleQkv", qkv, bias, 2, *results)
    q, k, v = ((qkv + bias).reshape(2, 5, 3, 2, 4).permute(2, 0, 3, 1, 4)).unbind()
    assert_close(results, [q / 2, k, v])


@pytest.mark.parametrize("power", [float("inf"), -float("inf"), 2.0])
def test_norms_of_16_bit_floats(power):
    """torch_npu widens them by the type Cast of the interface before aclnn."""
    given = torch.randn(5, 7).bfloat16()
    found = torch.linalg.vector_norm(given.to("npu"), power)
    assert_close(found.cpu(), torch.linalg.vector_norm(given, power))
