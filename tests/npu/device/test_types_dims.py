# SPDX-License-Identifier: Apache-2.0
"""Operators by type, by value: reductions, running sums, lists, indices, activations. The types
that a step of training under jit_compile sends.
"""

from __future__ import annotations

import acl
import pytest
import torch
import torch.nn.functional as F
from tests.npu.device.typed_calls import check, execute, ints, numbers

X, Y, BLOCK = numbers(3, 4), numbers(3, 4, seed=8), numbers(2, 3, 4, seed=9)
PLACES = torch.tensor([[2, 0, 1, 1], [0, 0, 2, 2], [1, 2, 0, 0]])
WIDE = X.var((1,), False, keepdim=True)


def one(value):
    return torch.tensor(value)


REDUCTIONS = {"Sum": torch.sum, "Mean": torch.mean, "Max": torch.amax, "Min": torch.amin}
CASES = [
    *((f"Reduce{name}", [BLOCK, ints(0, 2)], {"keep_dims": keep}, [f(BLOCK, (0, 2), keep)])
      for name, f in REDUCTIONS.items() for keep in (False, True)),
    ("ReduceSum", [one(3.0), torch.zeros(0, dtype=torch.long)], {"keep_dims": False}, [one(3.0)]),
    ("ReduceAll", [X > -1, ints(1)], {"keep_dims": False}, [(X > -1).all(1)]),
    ("ReduceAny", [X > 1, ints(0)], {"keep_dims": True}, [(X > 1).any(0, keepdim=True)]),
    ("ReduceMeanD", [BLOCK], {"axes": [1], "keep_dims": True}, [BLOCK.mean(1, True)]),
    ("Cumsum", [X, one(1)], {}, [X.cumsum(1)]),
    ("Cumprod", [X, one(0)], {"exclusive": False, "reverse": False}, [X.cumprod(0)]),
    ("Cummax", [X], {"dim": 1}, list(X.cummax(1))),
    ("Cummin", [X], {"axis": 0}, [X.cummin(0)[0], X.cummin(0)[1].int()]),
    ("ConcatD", [X, Y[:1], X], {"N": 3, "concat_dim": 0}, [torch.cat([X, Y[:1], X])]),
    ("Pack", [X, Y], {"N": 2, "axis": 1}, [torch.stack([X, Y], 1)]),
    ("Tile", [X, ints(2, 1, 3)], {}, [X.repeat(2, 1, 3)]),
    ("ReverseV2", [BLOCK, ints(0, -1)], {}, [BLOCK.flip(0, -1)]),
    ("Roll", [X], {"shifts": [1, 2], "dims": [0, 1]}, [X.roll((1, 2), (0, 1))]),
    ("Range", [one(2.0), one(5.0), one(0.5)], {}, [torch.arange(2, 5, 0.5)]),
    ("Range", [one(7), one(0), one(-3)], {}, [torch.arange(7, 0, -3)]),
    ("TopKV2", [X, ints(2)], {"sorted": True, "dim": 1, "largest": False},
     [X.topk(2, 1, False)[0], X.topk(2, 1, False)[1].int()]),
    ("GatherV2", [BLOCK, ints(2, 0), one(1)], {}, [BLOCK[:, [2, 0]]]),
    ("GatherV2", [X, PLACES, one(0)], {}, [X[PLACES]]),
    ("GatherElements", [X, PLACES], {"dim": 0}, [X.gather(0, PLACES)]),
    ("ScatterElements", [X, PLACES.T[:1], Y.T[:1, :3]], {"axis": 0},
     [X.scatter(0, PLACES.T[:1], Y.T[:1, :3])]),
    ("ScatterElements", [X, PLACES, Y], {"axis": 0, "reduction": "add"},
     [X.scatter_add(0, PLACES, Y)]),
    ("MaskedScatter", [X, X > 0, Y], {}, [X.masked_scatter(X > 0, Y)]),
    ("MaskedSelect", [X, X > 0], {}, [X[X > 0]]),
    ("AxpyV2", [X, Y, one(2.5)], {}, [X + 2.5 * Y]),
    ("Addcmul", [X, Y, X, one(0.5)], {}, [torch.addcmul(X, Y, X, value=0.5)]),
    ("Addcdiv", [X, Y, X, one(0.5)], {}, [torch.addcdiv(X, Y, X, value=0.5)]),
    ("Lerp", [X, Y, one(0.25)], {}, [torch.lerp(X, Y, 0.25)]),
    ("ClipByValue", [X, one(-0.5), one(0.5)], {}, [X.clamp(-0.5, 0.5)]),
    ("ClipByValueV2", [X, Y - 1, Y + 1], {}, [X.clamp(Y - 1, Y + 1)]),
    ("FloorDiv", [X, Y], {}, [X // Y]),
    ("Dot", [X[0], Y[0]], {}, [X[0] @ Y[0]]),
    ("Cross", [X, Y], {"dim": 0}, [torch.linalg.cross(X, Y, dim=0)]),
    ("LogAddExp", [X, Y], {"base": -1.0, "scale": 1.0, "shift": 0.0}, [torch.logaddexp(X, Y)]),
    ("LogAddExp", [X, Y], {"base": 2.0}, [torch.logaddexp2(X, Y)]),
    ("Round", [X], {}, [X.round()]),
    ("Round", [X * 9], {"decimals": 1}, [(X * 9).round(decimals=1)]),
    ("IsFinite", [one([1.0, float("inf"), float("nan")])], {}, [one([True, False, False])]),
    ("IsClose", [X, X + 1e-3], {"rtol": 0.0, "atol": 2e-3, "equal_nan": False},
     [torch.ones(3, 4, dtype=torch.bool)]),
    ("TensorEqual", [X, X], {}, [one(True)]),
    ("TensorEqual", [X, Y], {}, [one(False)]),
    ("NanToNum", [X.log()], {"nan": 1.0, "posinf": 2.0, "neginf": 3.0},
     [X.log().nan_to_num(1, 2, 3)]),
    ("Tril", [X], {"diagonal": -1}, [X.tril(-1)]),
    ("Triu", [X], {"diagonal": 1}, [X.triu(1)]),
    ("LeakyRelu", [X], {"negative_slope": 0.2}, [F.leaky_relu(X, 0.2)]),
    ("Elu", [X], {"alpha": 1.5, "scale": 1.0, "input_scale": 1.0}, [F.elu(X, 1.5)]),
    ("HardSwish", [X * 3], {}, [F.hardswish(X * 3)]),
    ("HardShrink", [X], {"lambd": 0.5}, [F.hardshrink(X, 0.5)]),
    ("SoftShrink", [X], {"lambd": 0.5}, [F.softshrink(X, 0.5)]),
    ("GLU", [X], {"dim": 1}, [F.glu(X, 1)]),
    ("ReluGrad", [Y, X], {}, [Y * (X > 0)]),
    ("SigmoidGrad", [X.sigmoid(), Y], {}, [Y * X.sigmoid() * (1 - X.sigmoid())]),
    ("TanhGrad", [X.tanh(), Y], {}, [Y * (1 - X.tanh() ** 2)]),
    ("SoftmaxGrad", [X.softmax(1), Y], {"axes": [1]},
     [torch._softmax_backward_data(Y, X.softmax(1), 1, torch.float)]),
    ("LayerNorm", [X, Y[0], Y[1]], {"begin_norm_axis": 1, "begin_params_axis": 1, "epsilon": 0.1},
     [F.layer_norm(X, [4], Y[0], Y[1], 0.1), X.mean(1, True), WIDE]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_type_by_value(case):
    check(case)


@pytest.mark.parametrize(
    ("name", "inputs", "values", "sentence"),
    [
        ("ConcatD", [X, Y], {"N": 3, "concat_dim": 0}, "N must be the number of inputs"),
        ("GatherV2", [X, ints(3), one(0)], {}, "indices must be in [0, 2], but has 3"),
        ("Cumsum", [X, one(0)], {"exclusive": True}, "exclusive and reverse must be false"),
        ("ScatterElements", [X, PLACES, Y], {"axis": 0, "reduction": "mul"},
         "reduction must be none or add, but is mul"),
        ("LogAddExp", [X, Y], {"base": 10.0}, "base must be -1 for e, or 2"),
    ],
)  # fmt: skip
def test_a_refusal(name, inputs, values, sentence):
    shape = (1, 4) if name == "GatherV2" else (3, 4)
    status = execute(name, [t.contiguous().npu() for t in inputs], [torch.zeros(shape).npu()],
                     **values)  # fmt: skip
    assert status == 161002, acl.get_recent_err_msg()
    assert sentence in acl.get_recent_err_msg()


def test_a_step_of_training_with_compiled_operators():
    """A perceptron: forward, backward and SGD, parts of tensors written, all by type."""
    weights = [numbers(8, 4, seed=1), numbers(3, 8, seed=2)]
    x, target = numbers(5, 4), numbers(5, 3, seed=4)

    def trained(device):
        a, b = (w.clone().to(device).requires_grad_() for w in weights)
        y = torch.relu(x.to(device) @ a.T) @ b.T
        loss = ((y - target.to(device)) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            a -= 0.1 * a.grad
            a[1:, ::2] = b.grad[:1, :7, None].reshape(7, 1)
        return loss.detach().cpu(), a.detach().cpu(), b.grad.cpu()

    torch.npu.set_compile_mode(jit_compile=True)
    try:
        found = trained("npu")
    finally:
        torch.npu.set_compile_mode(jit_compile=False)
    for got, right in zip(found, trained("cpu"), strict=True):
        torch.testing.assert_close(got, right)
