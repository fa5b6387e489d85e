# SPDX-License-Identifier: Apache-2.0
"""Operators by type, by value: convolutions, views, optimisers, recurrent layers, bags. And that
every type has a case or is sent by torch_npu itself.
"""

from __future__ import annotations

import acl
import pytest
import torch
import torch.nn.functional as F
from tests.npu.device import (
    test_types,
    test_types_boxes,
    test_types_dims,
    test_types_images,
    test_types_norms,
    test_types_random,
    test_types_training,
)
from tests.npu.device.typed_calls import check, execute, ints, numbers

from openaclnn.aten import rows

# ---- convolutions: pads before and after, groups, strides, dilations ----

IMAGE, KERNEL, SHIFT = numbers(2, 4, 6, 5), numbers(6, 2, 3, 3), numbers(6, seed=3)
VOLUME, CUBE = numbers(1, 2, 4, 5, 4), numbers(4, 1, 2, 3, 2)
FLAT = {"strides": [1, 1, 2, 1], "pads": [2, 1, 1, 0], "dilations": [1, 1, 1, 1], "groups": 2,
        "data_format": "NCHW"}  # fmt: skip
DEEP = {"strides": [1, 1, 1, 2, 1], "pads": [1, 0, 1, 1, 0, 1], "dilations": [1, 1, 2, 1, 1],
        "groups": 2, "data_format": "NCDHW"}  # fmt: skip


def window(attributes):
    """Padding in the order of F.pad, and what F.conv takes."""
    pads = attributes["pads"]
    edges = [p for i in range(len(pads) - 2, -1, -2) for p in pads[i : i + 2]]
    return edges, {"stride": attributes["strides"][2:], "dilation": attributes["dilations"][2:],
                   "groups": attributes["groups"]}  # fmt: skip


def convolved(x, w, attributes, bias=None):
    edges, form = window(attributes)
    function = F.conv2d if x.dim() == 4 else F.conv3d
    return function(F.pad(x, edges), w, bias, **form)


def gradients(x, w, attributes):
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    y = convolved(x, w, attributes)
    dy = numbers(*y.shape, seed=5)
    return dy, *torch.autograd.grad(y, (x, w), dy)


def of_convolution(dims, x, w, attributes):
    dy, dx, dw = gradients(x, w, attributes)
    sizes, taps = torch.tensor(x.shape).int(), torch.tensor(w.shape).int()
    more = {"output_padding": [0] * len(x.shape)}
    shifted = dx + numbers(x.shape[1], seed=4).reshape(-1, *[1] * dims)
    return [
        (f"Conv{dims}D", [x, w], attributes, [convolved(x, w, attributes)]),
        (f"Conv{dims}D", [x, w, numbers(len(w), seed=3)], attributes,
         [convolved(x, w, attributes, numbers(len(w), seed=3))]),
        (f"Conv{dims}DBackpropInput", [sizes, w, dy], attributes, [dx]),
        (f"Conv{dims}DBackpropFilter", [x, taps, dy], attributes, [dw]),
        (f"Conv{dims}DTranspose", [sizes, dy, w], attributes | more, [dx]),
        (f"Conv{dims}DTranspose", [sizes, dy, w, numbers(x.shape[1], seed=4)], attributes | more,
         [shifted]),
    ]  # fmt: skip


# ---- optimisers: one step of torch's ----

PARAMETER, GRADIENT = numbers(3, 4), numbers(3, 4, seed=8)
MOMENTS = numbers(3, 4, seed=9), numbers(3, 4, seed=10).abs()


def one(value):
    return torch.tensor([value])


def adam(decay, step=3):
    """The parameter and its moments after a step of AdamW, from MOMENTS."""
    p = PARAMETER.clone().requires_grad_()
    p.grad = GRADIENT.clone()
    optimiser = torch.optim.AdamW([p], 0.1, (0.9, 0.99), 1e-3, decay)
    m, v = (t.clone() for t in MOMENTS)
    optimiser.state[p] = {"step": torch.tensor(step - 1.0), "exp_avg": m, "exp_avg_sq": v}
    optimiser.step()
    return [p.detach(), m, v]


# epsilon is added before the correction of v here, after it in torch.
TENSORFLOW_EPS = 1e-3 * (1 - 0.99**3) ** 0.5
POWERS = one(0.9**3), one(0.99**3)
BEFORE = one(0.9**2), one(0.99**2)
BETAS = one(0.9), one(0.99)

# ---- recurrent layers ----

SEQUENCE, STATE = numbers(4, 2, 3), numbers(2, 5, seed=6)
GRU = torch.nn.GRU(3, 5)
WEIGHTS = [numbers(*p.shape, seed=20 + i) / 3 for i, p in enumerate(GRU.parameters())]
with torch.no_grad():
    for parameter, weight in zip(GRU.parameters(), WEIGHTS, strict=True):
        parameter.copy_(weight)
GRU_FORM = {"gate_order": "rzh", "reset_after": True, "direction": "UNIDIRECTIONAL"}


def gru_steps():
    """All states, and z, r, n and h W + b of the candidate, by the formulas of the layer."""
    wi, wh, bi, bh = WEIGHTS
    h, steps = STATE, []
    for x in SEQUENCE:
        a, b = (x @ wi.T + bi).chunk(3, 1), (h @ wh.T + bh).chunk(3, 1)
        r, z = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
        n = torch.tanh(a[2] + r * b[2])
        h = (1 - z) * n + z * h
        steps.append((h, z, r, n, b[2]))
    return [torch.stack(parts) for parts in zip(*steps, strict=True)]


H, Z, R, N, M = gru_steps()
torch.testing.assert_close(H, GRU(SEQUENCE, STATE[None])[0].detach())


def gru_gradients(dy, dh):
    x, h = SEQUENCE.clone().requires_grad_(), STATE[None].clone().requires_grad_()
    y, last = GRU(x, h)
    wanted = (*GRU.parameters(), x, h)
    wi, wh, bi, bh, dx, dh0 = torch.autograd.grad((y, last), wanted, (dy, dh[None]))
    return [wi.T, wh.T, bi, bh, dx, dh0[0]]


DY, DH = numbers(4, 2, 5, seed=11), numbers(2, 5, seed=12)
BAGS = torch.embedding_bag(numbers(7, 3), ints(1, 5, 2, 2), ints(0, 3), False, 0)

CASES = [
    *of_convolution(2, IMAGE, KERNEL, FLAT),
    *of_convolution(3, VOLUME, CUBE, DEEP),
    ("BiasAddGrad", [IMAGE], {"data_format": "NCHW"}, [IMAGE.sum((0, 2, 3))]),
    ("BatchMatMulV2", [IMAGE, IMAGE, SHIFT], {"adj_x1": False, "adj_x2": True},
     [IMAGE @ IMAGE.mT + SHIFT]),
    ("ViewCopy", [PARAMETER, ints(2, 2), ints(4, 2), ints(1), GRADIENT, ints(2, 2), ints(1, 4),
                  ints(3)], {}, [torch.as_strided_scatter(
                      PARAMETER, GRADIENT.as_strided((2, 2), (1, 4), 3), (2, 2), (4, 2), 1)]),
    ("ConfusionTransposeD", [IMAGE], {"perm": [1, 0, 2, 3], "shape": [4, 60],
                                      "transpose_first": True},
     [IMAGE.transpose(0, 1).reshape(4, 60)]),
    ("ConfusionTransposeD", [PARAMETER], {"perm": [1, 0], "shape": [2, 6],
                                          "transpose_first": False}, [PARAMETER.reshape(2, 6).T]),
    ("MaskedFillRange", [PARAMETER, ints([0, 1], [2, 3]).int(), ints([2, 2], [3, 9]).int(),
                         torch.tensor([7.0, 8.0])], {"axis": 1}, [torch.stack([
                             torch.tensor([7, 7, 8, PARAMETER[0, 3]]),
                             torch.tensor([PARAMETER[1, 0], 7, PARAMETER[1, 2], 8]),
                             PARAMETER[2]])]),
    ("ApplyAdamD", [PARAMETER, *MOMENTS, *POWERS, one(0.1), *BETAS, one(TENSORFLOW_EPS), GRADIENT],
     {"use_locking": False}, adam(0)),
    ("ApplyAdamW", [PARAMETER, *MOMENTS, *BEFORE, one(0.1), one(0.5), *BETAS, one(1e-3), GRADIENT,
                    None], {"amsgrad": False, "maximize": False}, adam(0.5)),
    ("DynamicGRUV2", [SEQUENCE, WEIGHTS[0].T, WEIGHTS[1].T, WEIGHTS[2], WEIGHTS[3], None, STATE],
     GRU_FORM, [H, H, Z, R, N, M]),
    ("DynamicGRUV2Grad", [SEQUENCE, WEIGHTS[0].T, WEIGHTS[1].T, H, STATE, H, DY, DH, Z, R, N, M],
     GRU_FORM, gru_gradients(DY, DH)),
    ("EmbeddingBag", [numbers(7, 3), ints(1, 5, 2, 2), ints(0, 3)],
     {"mode": "sum", "scale_grad_by_freq": False, "sparse": False, "include_last_offset": False,
      "padding_idx": -1}, list(BAGS)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_type_by_value(case):
    check(case)


def test_a_view_is_written_in_place_as_torch_npu_describes_it():
    """The result has the memory of dst and the shape of the view."""
    x = torch.zeros(3, 4).npu()
    view = x[1:, 1:3]
    given = [x.flatten()[5:].reshape(7), ints(2, 2), ints(4, 1), ints(0), numbers(2, 2), ints(2, 2),
             ints(2, 1), ints(0)]  # fmt: skip
    given = [t if t.is_npu else t.npu() for t in given]
    assert given[0].data_ptr() == view.data_ptr()
    assert execute("ViewCopy", given, [given[0][:4].reshape(2, 2)]) == 0, acl.get_recent_err_msg()
    right = torch.zeros(3, 4)
    right[1:, 1:3] = numbers(2, 2)
    assert torch.equal(x.cpu(), right)


def test_bytes_of_dropout():
    """A byte for each element, with about the asked share of ones, the same for the same seed."""
    drawn = [torch.full((3 * 500,), 9, dtype=torch.uint8).npu() for _ in range(3)]
    for seed, mask in zip((1, 1, 2), drawn, strict=True):
        given = [ints(3, 400).npu(), torch.tensor(0.75).npu()]
        assert execute("DropOutGenMaskV3", given, [mask], seed=seed, seed2=0) == 0
    first, again, other = (mask.cpu() for mask in drawn)
    assert 850 < first[:1200].sum() < 950
    assert set(first.tolist()) == {0, 1}
    assert first[1200:].sum() == 0
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(
    ("name", "inputs", "values", "shape", "sentence"),
    [
        ("Conv2D", [IMAGE, KERNEL], FLAT | {"data_format": "NHWC"}, (1,), "must be NCHW"),
        ("Conv2D", [IMAGE, KERNEL], FLAT | {"pads": [1, 1]}, (1,), "pads 4, but have 4, 4 and 2"),
        ("Conv2D", [IMAGE, KERNEL], FLAT | {"pads": [-1, 0, 0, 0]}, (1,), "must be at least 0"),
        ("Conv2DBackpropInput", [ints(2, 4, 6, 9), KERNEL, numbers(2, 6, 4, 4)], FLAT,
         (2, 4, 6, 9), "dim 3 of y must fit 4 elements of x, but is 9"),
        ("Conv2DBackpropFilter", [IMAGE, ints(6, 2, 3, 3), numbers(2, 6, 9, 9)], FLAT,
         (6, 2, 3, 3), "out_backprop must have shape [2, 6, 4, 4]"),
        ("ViewCopy", [PARAMETER, ints(9), ints(2), ints(0), GRADIENT, ints(9), ints(1), ints(0)],
         {}, (3, 4), "its view reaches from 0 to 16"),
        ("MaskedFillRange", [PARAMETER, ints([0] * 5), ints([1] * 5), one(1.0)], {"axis": 1},
         (3, 4), "must have at most 3 columns"),
        ("DropOutGenMaskV3", [ints(2, 9), torch.tensor(1.5)], {"seed": 0, "seed2": 0}, (18,),
         "prob must be in [0, 1], but is 1.5"),
    ],
)  # fmt: skip
def test_a_refusal(name, inputs, values, shape, sentence):
    status = execute(name, [t.contiguous().npu() for t in inputs], [torch.zeros(shape).npu()],
                     **values)  # fmt: skip
    message = acl.get_recent_err_msg()
    assert status == 161002, message
    assert sentence in message
    assert f"{name}: " in message


# What torch_npu sends without being asked for compiled operators; tests/npu/opinfo checks that.
SENT = {"CdistGrad", "DynamicRNN", "DynamicRNNGrad", "DynamicRNNV2", "DynamicRNNV2Grad",
        "LpNormReduceV2", "LpNormUpdateV2", "NonZero"}  # fmt: skip


def test_every_type_has_a_case():
    modules = (test_types, test_types_boxes, test_types_dims, test_types_images, test_types_norms,
               test_types_training)  # fmt: skip
    tables = (*(module.CASES for module in modules), CASES)
    tested = {name for table in tables for name, *_ in table} | {"DropOutGenMaskV3"}
    tested |= test_types_random.DIRECT
    assert {row.name for row in rows() if row.is_type} - tested - SENT == set()
