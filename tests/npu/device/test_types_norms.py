# SPDX-License-Identifier: Apache-2.0
"""Operators by type, by value: gradients of norms and losses, an optimiser, indices, and what
counts, sums or measures along dims. And the same as torch_npu sends it under jit_compile.
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

X, DY = numbers(2, 6, 5, 4), numbers(2, 6, 5, 4, seed=8)
GAMMA, BETA = numbers(6, seed=1), numbers(6, seed=2)
one = torch.tensor


def norms():
    for dims in ((4,), (5, 4)):
        gamma = numbers(*dims, seed=3)
        over = tuple(range(-len(dims), 0))
        variance, mean = torch.var_mean(X, over, correction=0, keepdim=True)
        results = gradients(lambda x, g, b, d=dims: F.layer_norm(x, d, g, b), (X, gamma, gamma), DY)
        yield "LayerNormGrad", [DY, X, variance, mean, gamma], {}, results

    y, mean, rstd = torch.native_group_norm(X, GAMMA, BETA, 2, 6, 20, 3, 1e-3)
    form = {"num_groups": 3, "eps": 1e-3}
    yield ("GroupNormSwish", [X, GAMMA, BETA], form | {"activate_swish": False},
           [y, mean, rstd])  # fmt: skip
    yield ("GroupNormSwish", [X, GAMMA, BETA], form | {"activate_swish": True},
           [F.silu(y), mean, rstd])  # fmt: skip

    weight = numbers(4, seed=3)
    rstd = (X.square().mean(-1, keepdim=True) + 1e-3).rsqrt()

    def rms(x, w):
        return F.rms_norm(x, (4,), w, 1e-3)

    yield "RmsNorm", [X, weight], {"epsilon": 1e-3}, [rms(X, weight), rstd]
    yield "RmsNormGrad", [DY, X, rstd, weight], {}, gradients(rms, (X, weight), DY)


def losses():
    label, share = numbers(2, 6, 5, 4, seed=9).sign(), torch.sigmoid(DY)
    for reduction in ("none", "mean", "sum"):
        form = {"reduction": reduction}
        dy = DY if reduction == "none" else one(1.7)

        def margin(x, r=reduction):
            return F.soft_margin_loss(x, label, reduction=r)

        yield "SoftMarginLoss", [X, label], form, [margin(X)]
        yield "SoftMarginLossGrad", [X, label, dy], form, gradients(margin, (X,), dy)
        for logs in (False, True):
            target = share.log() if logs else share

            def divergence(x, r=reduction, t=target, logs=logs):
                return F.kl_div(x, t, reduction=r, log_target=logs)

            yield ("KlDivLossGrad", [dy, X, target], form | {"log_target": logs},
                   gradients(divergence, (X,), dy))  # fmt: skip
    whole = gradients(lambda x: F.kl_div(x, share, reduction="batchmean"), (X,), dy)
    form = {"reduction": "batchmean", "log_target": False}
    yield "KlDivLossGrad", [dy, X, share], form, whole
    logits, target = numbers(5, 3), one([2, -100, 1, 2, 0])
    yield ("NLLLossGrad", [logits, dy, target, None, one(4.0)], {"reduction": "mean"},
           gradients(lambda x: F.nll_loss(x, target), (logits,), dy))  # fmt: skip


def bert_adam(clipped):
    """The formula of torch_npu.optim.NpuFusedBertAdam."""
    p, g = numbers(7), numbers(7, seed=2)
    m, v = numbers(7, seed=3), numbers(7, seed=4).abs()
    norm = g.norm()
    most = norm / 2 if clipped else norm * 2
    given = g * most / norm if clipped else g
    mean, square = 0.9 * m + 0.1 * given, 0.99 * v + 0.01 * given**2
    after = p - 0.1 * (mean / (square.sqrt() + 1e-3) + 0.05 * p)
    values = [one(f) for f in (0.1, 0.9, 0.99, 1e-3)]
    return ("ApplyAdamV2", [p, m, v, *values, g, most, norm, one(0.05)], {"adam_mode": "adam"},
            [after, mean, square])  # fmt: skip


def places():
    rows, columns = ints(1, 0, 1), ints(2, 2, 3)
    yield "Index", [X, ints(1), ints(2, 6, 5, 4), rows], {}, [X[rows]]
    yield "Index", [X, ints(0, 1), ints(3), columns], {}, [X[:, columns]]
    yield "Index", [X, ints(1, 0, 1), ints(3), rows, columns], {}, [X[rows, :, columns]]
    more = numbers(2, 3, 5, 4, seed=9)
    for add in (False, True):
        there = columns if add else ints(2, 1, 3)
        yield ("IndexPutV2", [X, more, ints(0, 1), ints(0, 1), there], {"accumulate": add},
               [X.index_put((torch.arange(2)[:, None], there), more, add)])  # fmt: skip
    yield "ArgMaxV2", [X, one(1).int()], {"keep_dims": False}, [X.argmax(1).int()]
    yield "ArgMin", [X, one(-1).int()], {"keep_dims": True}, [X.argmin(-1, True).int()]
    yield ("Bincount", [one([1, 4, 1]).int(), one(5).int(), one([0.5, 1.0, 2.0])], {},
           [one([0, 2.5, 0, 0, 1])])  # fmt: skip
    edges, values = one([1.0, 2.0, 2.0, 3.0]), one([2.0, 0.5, 9.0])
    for right in (False, True):
        yield ("SearchSorted", [edges, values], {"right": right},
               [torch.searchsorted(edges, values, right=right)])  # fmt: skip
    keep = one([0.0, 1, 1, 0])
    yield "IndexFillD", [X[0, 0, 0], keep, 1 - keep], {"dim": 0}, [X[0, 0, 0] * keep + 1 - keep]


def along_dims():
    positive = X.abs() + 0.5
    for keep in (False, True):
        form = {"keep_dims": keep}
        yield "ReduceProd", [positive, ints(1)], form, [positive.prod(1, keep)]
        both = positive.prod(2, keep).prod(0, keep)
        yield "ReduceProd", [positive, ints(0, -2)], form, [both]
        yield "ReduceLogSumExp", [X, ints(1, 3)], form, [X.logsumexp((1, 3), keep)]
    for p in (1.0, 2.0, float("inf")):
        yield "Cdist", [X, DY], {"p": p}, [torch.linalg.vector_norm(X - DY, p, -1)]
    norm = torch.linalg.vector_norm(X, dim=(0, 2, 3), keepdim=True)
    scale = torch.where(norm > 6, 6 / norm, 1)
    assert 0 < (scale < 1).sum() < 6
    yield "Renorm", [X], {"p": 2.0, "maxnorm": 6.0, "dim": 1}, [scale]
    square = numbers(4, 4)
    yield "Trace", [square], {}, [square.trace()]
    yield "MatrixInverse", [square], {"adjoint": False}, [square.inverse()]
    yield "Eye", [], {"num_rows": 3, "num_columns": 4, "dtype": 0}, [torch.eye(3, 4)]
    yield "LinSpace", [one(1.0), one(3.0), one([5]).int()], {}, [torch.linspace(1, 3, 5)]
    form = {"start": 0.0, "end": 3.0, "steps": 4, "base": 2.0, "dtype": 0}
    yield "LogSpaceD", [torch.arange(4.0)], form, [torch.logspace(0, 3, 4, base=2)]
    one_each, zeros = one([[0.5], [2.0], [0.1]]), one([[0], [3], [-7]]).int()
    wide = numbers(3, 5) * 30
    whole = torch.clamp((wide / one_each).round() + zeros, -128, 127).char()
    form = {"axis": 0, "dtype": "torch.qint8"}
    yield "Quantize", [wide, one_each, zeros], form, [whole]
    u, sigma, vh = torch.linalg.svd(numbers(2, 4, 3), full_matrices=False)
    form = {"compute_uv": True, "full_matrices": False}
    yield "Svd", [numbers(2, 4, 3)], form, [sigma, u, vh.mT]
    yield "LeftShift", [ints(1, 3), ints(2, 1)], {}, [ints(4, 6)]
    yield "RightShift", [ints(9, 3), one(1)], {}, [ints(4, 1)]
    yield "ThresholdV2D", [X], {"threshold": 0.1, "value": 2.0}, [F.threshold(X, 0.1, 2.0)]
    dx = gradients(lambda x: F.threshold(x, 0.1, 2.0), (X,), DY)
    yield "ThresholdGradV2D", [DY, X], {"threshold": 0.1}, dx
    dx = gradients(lambda x: F.hardshrink(x, 0.3), (X,), DY)
    yield "HardShrinkGrad", [DY, X], {"lambd": 0.3}, dx
    dx = gradients(lambda x: F.softshrink(x, 0.3), (X,), DY)
    yield "SoftShrinkGrad", [DY, X], {"lambd": 0.3}, dx


CASES = [*norms(), *losses(), bert_adam(False), bert_adam(True), *places(), *along_dims()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_type_by_value(case):
    check(case)


def at(x, *values):
    return torch.tensor(values, device=x.device)


SENT = {
    "layer norm": lambda x: F.layer_norm(x, (4,), x[0, 0, 0].exp(), x[0, 0, 1]),
    "layer norm of two dims": lambda x: F.layer_norm(x, (5, 4)),
    "group norm": lambda x: F.group_norm(x, 3, GAMMA.to(x.device), BETA.to(x.device)),
    "instance norm": F.instance_norm,
    "kl, mean": lambda x: F.kl_div(x, DY.sigmoid().to(x.device), reduction="mean"),
    "kl, batch": lambda x: F.kl_div(x, DY.sigmoid().to(x.device), reduction="batchmean"),
    "kl, negative": lambda x: F.kl_div(x.exp().log(), -x.detach().abs() * 0, reduction="sum"),
    "classes of pixels": lambda x: F.cross_entropy(x, at(x, *[1, 5, 0, 2] * 10).reshape(2, 5, 4)),
    "classes": lambda x: F.cross_entropy(x[0, :, 0], at(x, 1, 3, 0, 2, 1, 1)),
    "soft margin": lambda x: F.soft_margin_loss(x, x.detach().sign()),
    "index": lambda x: x[:, at(x, 1, 0, 1)],
    "flags": lambda x: x[x > 0],
    "product": lambda x: (x.abs() + 0.5).prod(1),
    "logsumexp": lambda x: x.logsumexp(1),
    "hardshrink": F.hardshrink,
    "softshrink": F.softshrink,
    "threshold": lambda x: F.threshold(x, 0.1, 2.0),
    "distances": lambda x: torch.cdist(x, x.detach() + 1),
    "renorm": lambda x: x.renorm(2, 1, 6.0),
    "inverse": lambda x: torch.inverse(x[0, 0, :4] + 3 * torch.eye(4, device=x.device)),
    "trace": lambda x: x[0, 0].trace(),
    "greatest": lambda x: x.argmax(1).float(),
    "shift": lambda x: (at(x, 1, 3) << 2).float(),
    "steps": lambda x: torch.linspace(0, 1, 5, device=x.device),
    "bins": lambda x: torch.bincount(at(x, 1, 4, 1)).float(),
    "sorted": lambda x: torch.searchsorted(at(x, 1.0, 2.0), at(x, 1.5)).float(),
}


@pytest.mark.parametrize("name", SENT)
def test_what_compiled_operators_send(name):
    check_compiled(SENT[name], X)


@pytest.mark.parametrize(
    ("name", "inputs", "values", "shape", "sentence"),
    [
        ("LayerNormGrad", [DY, X, X, X, X[0, 0, 0]], {}, (2, 6, 5, 4),
         "variance must have an element for each row of x"),
        ("KlDivLossGrad", [DY, X, X], {"reduction": "most", "log_target": False}, (2, 6, 5, 4),
         "reduction must be none, mean or sum"),
        ("GroupNormSwish", [X, GAMMA, BETA], {"num_groups": 4, "eps": 1e-5,
         "activate_swish": False}, (2, 6, 5, 4), "divide the channels, 6"),
        ("ApplyAdamV2", [X, X, X, *[one(0.1)] * 4, X, *[one(0.1)] * 4],
         {"adam_mode": "mbart_adam"}, (2, 6, 5, 4), "adam_mode must be adam, but is mbart_adam"),
        ("Index", [X, ints(1, 1), ints(1), ints(0)], {}, (1,), "as many as indexed_sizes has 1"),
        ("Index", [X, ints(1), ints(1), ints(7)], {}, (1, 6, 5, 4), "out of bounds|out of range"),
        ("Bincount", [ints(7), one(5), one([1.0])], {}, (5,), "array must be in [0, 4]"),
        ("ReduceProd", [X, ints(4)], {}, (1,), "axes must be dims of x"),
        ("MatrixInverse", [X[0, 0]], {"adjoint": True}, (5, 4), "adjoint must be from 0 to 0"),
    ],
)  # fmt: skip
def test_a_refusal(name, inputs, values, shape, sentence):
    outputs = [torch.zeros(shape).npu() for _ in range(3)]
    if name not in ("LayerNormGrad", "GroupNormSwish", "ApplyAdamV2"):
        outputs = outputs[:1]
    status = execute(name, [t.contiguous().npu() for t in inputs], outputs, **values)
    message = acl.get_recent_err_msg()
    assert status == 161002, message
    assert any(part in message for part in sentence.split("|")), message
