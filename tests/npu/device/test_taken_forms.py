# SPDX-License-Identifier: Apache-2.0
"""Dtypes and shapes that a device takes and ATen's own kernels do not, against the CPU in a form
that ATen takes.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
import torch_npu
from tests.npu.device.marks import marked, not_on_2_8
from torch.testing import assert_close

import openaclnn

HALVES = [torch.half, torch.bfloat16]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.half])
def test_histogram_of_integers(dtype):
    """Mixtures of experts count their tokens so."""
    x = torch.tensor([0, 1, 1, 3, 7, 2, 9])
    got = torch.histc(x.to(dtype).npu(), bins=8, min=0, max=7)
    assert got.dtype == dtype
    assert got.cpu().tolist() == torch.histc(x.float(), bins=8, min=0, max=7).tolist()


INDICES = {
    "columns": lambda x: x[:, torch.tensor([2, 0]).to(x.device)],
    "in the middle": lambda x: x[:, torch.tensor([1, 0]).to(x.device), None],
    "around": lambda x: x[
        torch.tensor([1, 0]).to(x.device), ..., torch.tensor([0, 2]).to(x.device)
    ],
    "empty": lambda x: x[:0][:, torch.tensor([0]).to(x.device)],
    "an empty mask": lambda x: x[:0][torch.ones(0, dtype=torch.bool).to(x.device)],
}


@pytest.mark.parametrize("form", INDICES)
def test_masks_are_indexed(form):
    x = torch.randn(2, 3, 3) > 0
    assert torch.equal(INDICES[form](x.npu()).cpu(), INDICES[form](x))


@pytest.mark.parametrize("value", [3.0, torch.tensor(4.0)])
def test_expanded_tensors_are_filled(value):
    base = torch.zeros(1, 3, device="npu")
    base.expand(4, 3).fill_(value.npu() if isinstance(value, torch.Tensor) else value)
    assert base.cpu().tolist() == [[float(value)] * 3]


@pytest.mark.parametrize("dtype", [torch.float, torch.half, torch.int64, torch.bool])
def test_tensors_are_filled_by_type(dtype):
    """What operators are with compilation at run time."""
    x = torch.zeros(2, 3, dtype=dtype, device="npu")
    torch.npu.set_compile_mode(jit_compile=True)
    try:
        x.fill_(3)
    finally:
        torch.npu.set_compile_mode(jit_compile=False)
    assert torch.equal(x.cpu(), torch.full((2, 3), 3).to(dtype))


def test_a_tensor_is_filled_with_one_element(call):
    """torch itself refuses a value with dims, C programs pass one."""
    x = torch.zeros(2, 3)
    call("aclnnInplaceFillTensor", x, torch.tensor([5.0]))
    assert x.tolist() == [[5] * 3] * 2


LOSSES = {
    "nll": lambda x, t: F.nll_loss(x.log_softmax(1), t),
    "cross entropy": lambda x, t: F.cross_entropy(x, t, ignore_index=2),
    "smoothed": lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1),
    "weighted": lambda x, t: F.cross_entropy(x, t, torch.arange(1.0, 6).to(x.device)),
}


@pytest.mark.parametrize("places", [(), (3, 2)])
@pytest.mark.parametrize("loss", LOSSES)
def test_classes_are_32_bit_integers(loss, places):
    x, target = torch.randn(4, 5, *places), torch.randint(0, 5, (4, *places))
    here, there = x.clone().requires_grad_(), x.npu().requires_grad_()
    want, got = LOSSES[loss](here, target), LOSSES[loss](there, target.int().npu())
    assert_close(got.detach().cpu(), want.detach())
    want.backward()
    got.backward()
    assert_close(there.grad.cpu(), here.grad)


def test_several_labels_are_32_bit_integers():
    x, target = torch.randn(2, 4), torch.tensor([[3, 0, -1, 1], [0, -1, 1, 2]])
    got = F.multilabel_margin_loss(x.npu(), target.int().npu())
    assert_close(got.cpu(), F.multilabel_margin_loss(x, target))


LENGTHS = (torch.tensor([6, 5]), torch.tensor([3, 2]))
LABELS = torch.tensor([[1, 2, 3], [4, 1, 1]])
SIXTEEN_BITS = {
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2), (1, 2, 4, 4, 4)),
    "cdist": (lambda x: torch.cdist(x, x.flip(0)[:2] + 1), (3, 4)),
    "cdist, p = 1": (lambda x: torch.cdist(x, x.flip(1)[:, :2] + 1, p=1.0), (2, 3, 4)),
    "ctc": (
        lambda x: F.ctc_loss(x.log_softmax(-1), LABELS.to(x.device), *LENGTHS, reduction="none"),
        (6, 2, 5),
    ),
}


def half_against_double(function, x, gradient):
    here, there = x.double().requires_grad_(gradient), x.npu().requires_grad_(gradient)
    want, got = function(here), function(there)
    largest = want.abs().max().item()
    bound = {"rtol": 0, "atol": 8 * torch.finfo(x.dtype).eps * largest}
    assert got.dtype == x.dtype
    assert_close(got.detach().cpu().double(), want.detach(), **bound)
    if not gradient:
        return
    dy = torch.linspace(0.5, 1, want.numel()).reshape(want.shape).to(x.dtype)
    want.backward(dy.double())
    got.backward(dy.npu())
    bound["atol"] = 16 * torch.finfo(x.dtype).eps * max(here.grad.abs().max().item(), 1)
    assert_close(there.grad.cpu().double(), here.grad, **bound)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", SIXTEEN_BITS)
def test_16_bits(name, dtype):
    function, shape = SIXTEEN_BITS[name]
    half_against_double(function, torch.randn(shape).to(dtype), gradient=True)


def multilabel(x):
    return F.multilabel_margin_loss(x, torch.tensor([[2, 0, -1], [0, 1, 2]]).to(x.device))


def factor(x):
    return torch.linalg.qr(x)[1].abs()


# By devices.
REFUSED = {("pdist", torch.bfloat16), ("qr", torch.bfloat16), ("cholesky", torch.half)}
FORWARD = {
    "pdist": (F.pdist, (4, 3)),
    "multilabel_margin_loss": (lambda x: multilabel(x[:2]), (4, 3)),
    "qr": (factor, (4, 3)),
    "cholesky": (lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(3).to(x)), (3, 3)),
}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", marked(FORWARD, cholesky=not_on_2_8("leaves cholesky to the CPU")))
def test_16_bits_forward(name, dtype):
    function, shape = FORWARD[name]
    if (name, dtype) in REFUSED and openaclnn.config()["product"] != "any":
        x = torch.randn(shape).to(dtype).npu()
        with pytest.raises(RuntimeError, match="self must have dtype"):
            # TASK_QUEUE_ENABLE=2 leaves refusals to phase 2
            torch.npu.synchronize(function(x).device)
        return
    half_against_double(function, torch.randn(shape).to(dtype), gradient=False)


@pytest.mark.parametrize("dtype", [torch.float, *HALVES])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode, dtype):
    weight, places = torch.randn(5, 3).to(dtype), torch.tensor([0, 1, 4, 2])
    offsets = torch.tensor([0, 1])

    def bags(w: torch.Tensor) -> torch.Tensor:
        return F.embedding_bag(places.to(w.device), w, offsets.to(w.device), mode=mode)

    half_against_double(bags, weight, gradient=True)


@pytest.mark.parametrize("dtype", [torch.float, *HALVES])
@pytest.mark.parametrize("shape", [(0, 4), (2, 0, 4), (0, 3, 4)])
def test_layer_norm_of_an_empty_batch(shape, dtype):
    layer = torch.nn.LayerNorm(4, device="npu", dtype=dtype)
    x = torch.zeros(shape, device="npu", dtype=dtype, requires_grad=True)
    y = layer(x)
    y.sum().backward()
    assert y.shape == x.grad.shape == shape
    assert layer.weight.grad.tolist() == layer.bias.grad.tolist() == [0, 0, 0, 0]


SEQUENCES = {
    "linspace": lambda out: torch.linspace(0, 5, 6, out=out),
    "arange": lambda out: torch.arange(0, 6, out=out),
    "range": lambda out: torch.range(0, 5, out=out),
    "logspace": lambda out: torch.logspace(0, 5, 6, out=out),
}


@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
@pytest.mark.parametrize(
    "name", marked(SEQUENCES, logspace=not_on_2_8("gives the result of logspace one dim"))
)
def test_sequences_fill_any_shape(name):
    want, got = torch.empty(2, 3, 1), torch.empty(2, 3, 1, device="npu")
    SEQUENCES[name](want)
    SEQUENCES[name](got)
    assert_close(got.cpu(), want)


@pytest.mark.parametrize("log", [False, True])
def test_the_gradient_of_softmax_in_another_dtype(log):
    x, dy = torch.randn(2, 3), torch.randn(2, 3)
    y = x.log_softmax(1) if log else x.softmax(1)
    backward = torch._log_softmax_backward_data if log else torch._softmax_backward_data
    want = backward(dy, y, 1, torch.float)
    got = backward(dy.npu(), y.npu(), 1, torch.half)
    assert_close(got.cpu().float(), want, atol=1e-3, rtol=1e-3)


def test_renorm_by_the_number_of_elements():
    x = torch.randn(3, 4)
    x[0, 1:] = 0
    got = torch.renorm(x.npu(), 0, 0, 2.0)
    assert_close(got.cpu(), x * torch.tensor([[1.0], [0.5], [0.5]]))


@pytest.mark.parametrize("dense", [(), (4,)])
def test_coalesce(dense):
    indices, values = torch.tensor([[0, 1, 1, 0], [2, 0, 0, 1]]), torch.randn(4, *dense)
    want = torch.sparse_coo_tensor(indices, values, (2, 3, *dense)).coalesce()
    got = torch.sparse_coo_tensor(indices.npu(), values.npu(), (2, 3, *dense)).coalesce()
    assert got.indices().cpu().tolist() == want.indices().tolist()
    assert_close(got.values().cpu(), want.values())


@pytest.mark.parametrize("dtype", [torch.quint8, torch.qint8, torch.qint32])
def test_quantise(dtype):
    x = torch.randn(3, 4) * 20
    whole = torch.quantize_per_tensor(x, 0.25, 3, dtype)
    assert torch.equal(
        torch.quantize_per_tensor(x.npu(), 0.25, 3, dtype).int_repr().cpu(), whole.int_repr()
    )
    scales, zeros = torch.tensor([0.25, 0.5, 2.0]), torch.tensor([0, 1, 3])
    if dtype != torch.qint32:  # the CPU has it not by channel
        by_row = torch.quantize_per_channel(x, scales, zeros, 0, dtype)
        got = torch.quantize_per_channel(x.npu(), scales.npu(), zeros.npu(), 0, dtype)
        assert torch.equal(got.int_repr().cpu(), by_row.int_repr())


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_the_gradient_of_gated_gelu(approximate, left):
    """Diffusers' feed-forward layers use it on this device."""
    x, dy = torch.randn(2, 3, 8), torch.randn(2, 3, 4)
    here, there = x.clone().requires_grad_(), x.npu().requires_grad_()
    first, second = here.chunk(2, -1)
    gate, other = (first, second) if left else (second, first)
    want = other * F.gelu(gate, approximate=approximate)
    got, _ = torch_npu.npu_geglu(there, -1, int(approximate == "tanh"), left)
    assert_close(got.detach().cpu(), want.detach())
    want.backward(dy)
    got.backward(dy.npu())
    assert_close(there.grad.cpu(), here.grad)
