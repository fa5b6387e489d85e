# SPDX-License-Identifier: Apache-2.0
"""Operators by type, by value: batch norm, pooling, activations and losses with their gradients,
against autograd on the CPU; and the same as torch_npu sends it under jit_compile.
"""

from __future__ import annotations

import acl
import pytest
import torch
import torch.nn.functional as F
from tests.npu.device.typed_calls import (
    check,
    check_compiled,
    execute,
    gradients,
    ints,
    numbers,
)

X, DY = numbers(2, 3, 6, 4), numbers(2, 3, 6, 4, seed=8)
SCALE, OFFSET, MEAN = numbers(3, seed=1), numbers(3, seed=2), numbers(3, seed=3)
VARIANCE = numbers(3, seed=4).abs() + 0.5
EPS = {"epsilon": 1e-3}


# ---- batch norm: the sums, what is normalised, and the gradient in the same two halves ----


def batch_norm(kind, x, dy):
    dims = [0, *range(2, x.dim())]
    sums = [x.sum(dims), x.square().sum(dims)]
    variance, mean = torch.var_mean(x, dims, correction=0)
    running = [MEAN.clone(), VARIANCE.clone()]
    y = F.batch_norm(x, *running, SCALE, OFFSET, True, 0.3, 1e-3)
    dx, dscale, doffset = gradients(
        lambda x, s, o: F.batch_norm(x, None, None, s, o, True, eps=1e-3), (x, SCALE, OFFSET), dy
    )
    return [
        (f"{kind}Reduce", [x], EPS, sums),
        (f"{kind}Update", [x, *sums, SCALE, OFFSET, MEAN, VARIANCE], EPS | {"factor": 0.3},
         [y, *running, mean, variance]),
        (f"{kind}UpdateGrad", [dy, x, mean, variance], EPS, [dscale, doffset]),
        (f"{kind}ReduceGrad", [dy, x, dscale, doffset, SCALE, mean, variance], EPS, [dx]),
    ]  # fmt: skip


def inference():
    def normal(x):
        return F.batch_norm(x, MEAN, VARIANCE, SCALE, OFFSET, False, eps=1e-3)

    (dx,) = gradients(normal, (X,), DY)
    return [("BNInfer", [X, SCALE, OFFSET, MEAN, VARIANCE], EPS, [normal(X)]),
            ("BNInferGrad", [DY, SCALE, VARIANCE], EPS, [dx])]  # fmt: skip


# ---- pooling ----


def pooling():
    form = {"ksize": [1, 1, 3, 2], "strides": [1, 1, 2, 1], "padding_mode": "CALCULATED",
            "pads": [1, 1, 0, 0], "data_format": "NCHW", "global_pooling": False}  # fmt: skip
    for ceil, exclusive, divide in ((False, False, 0), (True, True, 0), (False, True, 5)):

        def average(x, c=ceil, e=exclusive, d=divide):
            return F.avg_pool2d(x, (3, 2), (2, 1), (1, 0), c, not e, d or None)

        more = {"ceil_mode": ceil, "exclusive": exclusive, "divisor_override": divide}
        dy = numbers(*average(X).shape, seed=5)
        yield "AvgPoolV2", [X], form | more, [average(X)]
        yield ("AvgPoolV2Grad", [ints(*X.shape).int(), dy], form | more,
               list(gradients(average, (X,), dy)))  # fmt: skip

    def highest(x):
        return F.max_pool2d(x, (3, 2), (2, 1), (1, 0))

    form = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 1, 1], "pads": [1, 1, 0, 1],
            "dilation": [1, 1, 1, 1], "ceil_mode": False}  # fmt: skip
    y, mask = highest(X), torch.zeros(2, 3, 6, 32, dtype=torch.uint8)
    dy = numbers(*y.shape, seed=5)
    yield "MaxPoolWithArgmaxV1", [X], form, [y, mask]
    dx = list(gradients(highest, (X,), dy))
    yield "MaxPoolGradWithArgmaxV1", [X, dy, mask], form, dx
    plain = {name: value for name, value in form.items() if name != "dilation"}
    yield "MaxPoolGradWithArgmaxV1", [X, dy, mask], plain, dx

    def adaptive(x):
        return F.adaptive_avg_pool2d(x, (4, 3))

    dy = numbers(2, 3, 4, 3)
    yield "AdaptiveAvgPool2d", [X], {"output_size": [4, 3]}, [adaptive(X)]
    yield ("AdaptiveAvgPool2dGrad", [dy], {"orig_input_shape": list(X.shape)},
           list(gradients(adaptive, (X,), dy)))  # fmt: skip


# ---- activations: the type, its function, attributes; and of the gradient ----


def activations():
    def both(name, function, form=None, of_gradient=None, dy_first=True):
        dx = list(gradients(function, (X,), DY))
        given = [DY, X] if dy_first else [X, DY]
        yield f"{name}Grad", given, (form if of_gradient is None else of_gradient) or {}, dx

    elu = {"alpha": 1.5, "scale": 1.1, "input_scale": 0.7}
    yield "CeluV2", [X], {"alpha": 0.7}, [F.celu(X, 0.7)]
    yield "Gelu", [X], {}, [F.gelu(X)]
    yield "HardSigmoid", [X], {}, [F.hardsigmoid(X)]
    yield "LogSigmoid", [X], {}, [F.logsigmoid(X)]
    soft = {"beta": 2.0, "threshold": 3.0}
    yield "SoftplusV2", [X], soft, [F.softplus(X, 2, 3)]
    (dx,) = gradients(lambda x: torch.ops.aten.elu(x, 1.5, 1.1, 0.7), (X,), DY)
    yield "EluGradV2", [DY, X], elu | {"is_result": False}, [dx]
    yield ("EluGradV2", [DY, torch.ops.aten.elu(X, 1.5, 1.1, 0.7)], elu | {"is_result": True},
           [dx])  # fmt: skip
    yield "GeluGrad", [DY, X, F.gelu(X)], {}, list(gradients(F.gelu, (X,), DY))
    yield from both("HardSigmoid", F.hardsigmoid)
    yield from both("HardSwish", F.hardswish)
    yield from both("Hardtanh", lambda x: F.hardtanh(x, -0.5, 0.4),
                    {"min_val": -0.5, "max_val": 0.4}, dy_first=False)  # fmt: skip
    yield from both("LeakyRelu", lambda x: F.leaky_relu(x, 0.2), {"negative_slope": 0.2})
    yield from both("LogSigmoid", F.logsigmoid)
    yield from both("Mish", F.mish)
    yield from both("Silu", F.silu)
    yield from both("SoftplusV2", lambda x: F.softplus(x, 2, 3), soft)
    dy = numbers(2, 3, 3, 4)
    yield "GLUGrad", [dy, X], {"dim": 2}, list(gradients(lambda x: F.glu(x, 2), (X,), dy))
    for w in (SCALE, SCALE[:1]):
        dx, da = gradients(F.prelu, (X, w), DY)
        for weight in (w, w.reshape(1, -1, 1, 1)):
            yield "PRelu", [X, weight], {}, [F.prelu(X, w)]
            yield "PReluGrad", [DY, X, weight], {}, [dx, da.reshape(weight.shape)]
    for axis in (1, -1):
        (dx,) = gradients(lambda x, a=axis: F.log_softmax(x, a), (X,), DY)
        yield "LogSoftmaxGrad", [DY, F.log_softmax(X, axis)], {"axis": [axis]}, [dx]


# ---- losses ----

LABEL = numbers(2, 3, 6, 4, seed=9)
SHARE, TRUE = torch.sigmoid(X), torch.sigmoid(LABEL)


def losses():
    weight, positive = VARIANCE.reshape(3, 1, 1).expand(X.shape), SCALE.abs().reshape(3, 1, 1)
    for reduction in ("none", "mean", "sum"):
        form = {"reduction": reduction}
        dy = DY if reduction == "none" else torch.tensor(1.7)

        def loss(function, *rest, r=reduction, **more):
            return lambda x: function(x, *rest, reduction=r, **more)

        def two(name, gradient, function, x, y, more=None, dy_at=2, dy=dy, form=form, **values):
            given = [x, y]
            given.insert(dy_at, dy)
            f = form | (more or {})
            one = loss(function, y, **values)
            yield name, [x, y], f, [one(x)]
            yield gradient, given, f, list(gradients(one, (x,), dy))

        yield from two("MseLoss", "MseLossGrad", F.mse_loss, X, LABEL)
        yield from two("SmoothL1LossV2", "SmoothL1LossGradV2", F.smooth_l1_loss, X, LABEL,
                       {"sigma": 0.6}, beta=0.6)  # fmt: skip
        yield from two("LpLoss", "L1LossGrad", F.l1_loss, X, LABEL, {"p": 1}, 0)
        for w in (None, weight):
            one = loss(F.binary_cross_entropy, TRUE, w)
            yield "BinaryCrossEntropy", [SHARE, TRUE, w], form, [one(SHARE)]
            yield ("BinaryCrossEntropyGrad", [SHARE, TRUE, dy, w], form,
                   list(gradients(one, (SHARE,), dy)))  # fmt: skip
            q = None if w is None else positive
            name = "SigmoidCrossEntropyWithLogits"
            one = loss(F.binary_cross_entropy_with_logits, TRUE, w, pos_weight=q)
            yield f"{name}V2", [X, TRUE, w, q], form, [one(X)]
            yield f"{name}GradV2", [X, TRUE, dy, w, q], form, list(gradients(one, (X,), dy))
        for logs in (False, True):
            target = TRUE.log() if logs else TRUE
            yield ("KLDiv", [X, target], form | {"log_target": logs},
                   [F.kl_div(X, target, reduction=reduction, log_target=logs)])  # fmt: skip
        logits, target = numbers(5, 3), torch.tensor([2, 0, 1, 2, 2])
        dy = numbers(5, seed=6) if reduction == "none" else torch.tensor(1.7)
        for w in (None, VARIANCE):
            f = form | {"ignore_index": 1}
            one = loss(F.nll_loss, target, w, ignore_index=1)
            total = torch.tensor(4.0) if w is None else w[target].sum() - w[1]
            counted = torch.tensor(0.0) if reduction == "none" else total
            yield "NLLLoss", [logits, target, w], f, [one(logits), counted]
            yield ("NLLLossGrad", [logits, dy, target, w, total], f,
                   list(gradients(one, (logits,), dy)))  # fmt: skip
    yield ("KLDiv", [X, TRUE], {"reduction": "batchmean", "log_target": False},
           [F.kl_div(X, TRUE, reduction="batchmean")])  # fmt: skip


# ---- the rest ----


def others():
    indices, dy = torch.tensor([[1, 2], [1, 4]]), numbers(2, 2, 3)
    (dw,) = gradients(lambda w: F.embedding(indices, w, 4), (numbers(5, 3),), dy)
    yield ("EmbeddingDenseGrad", [dy, indices],
           {"num_weights": 5, "padding_idx": 4, "scale_grad_by_freq": False}, [dw])  # fmt: skip
    for keep in (False, True):
        form = {"dim": [0, 2], "unbiased": True, "keepdim": keep, "correction": 1}
        mean = X.mean((0, 2), keepdim=True).expand(X.shape)
        yield "ReduceStdWithMean", [X, mean], form, [X.std((0, 2), keepdim=keep)]
        yield ("ReduceStdV2Update", [X, mean], form | {"if_std": False},
               [X.var((0, 2), keepdim=keep)])  # fmt: skip
    one = torch.tensor
    for axis in (-1, 0):
        hot = F.one_hot(indices, 6).float() * 2.5 - 0.5
        yield ("OneHot", [indices, one(6).int(), one(2.0), one(-0.5)], {"axis": axis},
               [hot if axis == -1 else hot.permute(2, 0, 1)])  # fmt: skip
    where, updates = torch.tensor([1, 1]).int(), numbers(2, 2, 6, 4)
    yield ("InplaceIndexAdd", [X, where, updates, one(2.0)], {"axis": 1},
           [X.index_add(1, where, updates, alpha=2)])  # fmt: skip
    # Two boxes overlap in class 0; class 1 keeps the second box, since the first is below 0.3.
    boxes = torch.tensor([[[[0.0, 0, 2, 2]], [[0, 0, 2, 1.8]], [[5, 5, 7, 7]]]])
    scores = torch.tensor([[[0.9, 0.1], [0.8, 0.95], [0.4, 0.2]]])
    yield ("BatchMultiClassNonMaxSuppression", [boxes, scores],
           {"score_threshold": 0.3, "iou_threshold": 0.5, "max_size_per_class": 2,
            "max_total_size": 4, "change_coordinate_frame": False, "transpose_box": False},
           [torch.cat([boxes[:, [1, 0, 2], 0], torch.zeros(1, 1, 4)], 1),
            torch.tensor([[0.95, 0.9, 0.4, 0]]), torch.tensor([[1.0, 0, 0, 0]]),
            torch.tensor([3]).int()])  # fmt: skip


CASES = [
    *batch_norm("BNTraining", X, DY),
    *batch_norm("BN3DTraining", numbers(2, 3, 2, 3, 4), numbers(2, 3, 2, 3, 4, seed=8)),
    *inference(),
    *pooling(),
    *activations(),
    *losses(),
    *others(),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_type_by_value(case):
    check(case)


SENT = {
    "batch norm": lambda x: F.batch_norm(x, None, None, x.new_ones(3), x.new_zeros(3), True),
    "batch norm in use": lambda x: F.batch_norm(x, x.new_ones(3), x.new_ones(3)),
    "average pool": lambda x: F.avg_pool2d(x, 2),
    "maximum pool": lambda x: F.max_pool2d(x, 2),
    "adaptive pool": lambda x: F.adaptive_avg_pool2d(x, 2),
    "deviation": lambda x: x.std(),
    "variance": lambda x: x.var((0, 1)),
    "embedding": lambda x: F.embedding(torch.tensor([[1, 0]], device=x.device), x[0, 0]),
    "classes": lambda x: F.nll_loss(x[:, :, 0, 0], torch.tensor([2, 0], device=x.device)),
    "columns": lambda x: x.index_select(1, torch.tensor([2, 0], device=x.device)),
    "binary": lambda x: F.binary_cross_entropy(x.sigmoid(), x.detach().sigmoid() * 0.5),
    "logits": lambda x: F.binary_cross_entropy_with_logits(x, x.detach().sigmoid() * 0.5),
    "glu": lambda x: F.glu(x, 2),
    "prelu": lambda x: F.prelu(x, SCALE.to(x.device)),
    "logs": lambda x: F.log_softmax(x, 1),
    "relu6": F.relu6,
    **{
        f.__name__: lambda x, f=f: f(x, x.detach() * 0.5 + 0.25)
        for f in (F.l1_loss, F.mse_loss, F.smooth_l1_loss)
    },
    **{
        name: getattr(F, name)
        for name in ("gelu", "silu", "mish", "elu", "selu", "celu", "softplus", "hardsigmoid",
                     "hardswish", "logsigmoid", "leaky_relu")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SENT)
def test_what_compiled_operators_send(name):
    """Result and gradient, without a type that is refused."""
    check_compiled(SENT[name], X)


@pytest.mark.parametrize(
    ("name", "inputs", "values", "sentence"),
    [
        ("MseLoss", [X, X], {"reduction": "most"}, "reduction must be none, mean or sum"),
        ("BNInfer", [X, SCALE[:2], OFFSET, MEAN, VARIANCE], EPS, "scale must have 3 elements"),
        ("MaxPoolWithArgmaxV1", [X], {"ksize": [2, 2], "strides": [1, 1, 1, 1],
         "pads": [1, 0, 0, 1], "dilation": [1, 1, 1, 1], "ceil_mode": False},
         "ksize must have 4 numbers, but has 2"),
        ("EmbeddingDenseGrad", [numbers(1, 3), torch.tensor([7])], {"num_weights": 5,
         "padding_idx": -1, "scale_grad_by_freq": False}, "indices"),
    ],
)  # fmt: skip
def test_a_refusal(name, inputs, values, sentence):
    outputs = [torch.zeros(X.shape).npu()]
    if name == "MaxPoolWithArgmaxV1":
        outputs.append(torch.zeros(2, 3, 4, 32, dtype=torch.uint8).npu())
    if name == "EmbeddingDenseGrad":
        outputs = [torch.zeros(5, 3).npu()]
    status = execute(name, [t.contiguous().npu() for t in inputs], outputs, **values)
    assert status == 161002, acl.get_recent_err_msg()
    assert sentence in acl.get_recent_err_msg()
