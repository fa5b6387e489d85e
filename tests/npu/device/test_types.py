# SPDX-License-Identifier: Apache-2.0
"""Operators of the interface before aclnn, called by their type through pyACL, by value; and those
that torch_npu sends if a program asks for compiled operators.
"""

from __future__ import annotations

import math

import acl
import pytest
import torch
import torch.nn.functional as F
from tests.npu.device.typed_calls import check, execute, ints, numbers

X, Y, POSITIVE = numbers(3, 4), numbers(3, 4, seed=8), numbers(3, 4).abs() + 0.5
WHOLE = torch.arange(6, dtype=torch.int32)
MASK = torch.rand(2, 1, 4, 4, generator=torch.Generator().manual_seed(3)) > 0.5
SCORES = numbers(2, 3, 4, 4)
MASKED = (SCORES * 0.5).masked_fill(MASK, -1e4).softmax(-1)
NORMED = torch.native_layer_norm(X, (4,), Y[0], Y[1], 1e-5)
UNARY = ("abs", "asinh", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor",
         "log1p", "neg", "reciprocal", "relu", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt",
         "square", "tan", "tanh", "trunc")  # fmt: skip
OF_SHARES = ("acos", "asin", "atanh", "erfinv")
BINARY = {
    "Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "RealDiv": torch.div,
    "Maximum": torch.maximum, "Minimum": torch.minimum, "Equal": torch.eq, "NotEqual": torch.ne,
    "Greater": torch.gt, "GreaterEqual": torch.ge, "Less": torch.lt, "LessEqual": torch.le,
    "Atan2": torch.atan2, "FloorMod": torch.remainder, "Mod": torch.fmod,
}  # fmt: skip
# A type, its inputs, its attributes, its results.
CASES = [
    *((name.capitalize(), [POSITIVE], {}, [getattr(torch, name)(POSITIVE)]) for name in UNARY),
    *((name.capitalize(), [X / 5], {}, [getattr(torch, name)(X / 5)]) for name in OF_SHARES),
    ("Acosh", [POSITIVE + 1], {}, [torch.acosh(POSITIVE + 1)]),
    *((name, [X, Y], {}, [function(X, Y)]) for name, function in BINARY.items()),
    ("Pow", [POSITIVE, Y], {}, [POSITIVE**Y]),
    ("Xlogy", [X, POSITIVE], {}, [torch.xlogy(X, POSITIVE)]),
    ("Log", [POSITIVE], {}, [POSITIVE.log()]),
    ("Log", [POSITIVE], {"base": 10.0, "scale": 2.0, "shift": 1.0}, [(2 * POSITIVE + 1).log10()]),
    ("Log", [POSITIVE], {"base": 3.0}, [POSITIVE.log() / math.log(3)]),
    *((f"Bitwise{name}", [WHOLE, WHOLE + 3], {}, [getattr(torch, f"bitwise_{name.lower()}")(
        WHOLE, WHOLE + 3)]) for name in ("And", "Or", "Xor")),
    ("Invert", [WHOLE], {}, [~WHOLE]),
    ("Select", [X > Y, X, Y], {}, [torch.where(X > Y, X, Y)]),
    ("MaskedFill", [X, X > Y, torch.tensor(2.0)], {}, [X.masked_fill(X > Y, 2)]),
    ("Add", [X, Y[0]], {}, [X + Y[0]]),
    ("Mish", [X], {}, [F.mish(X)]),
    ("Swish", [X], {"scale": 1.5}, [X * torch.sigmoid(1.5 * X)]),
    ("LogicalAnd", [X > 0, Y > 0], {}, [(X > 0) & (Y > 0)]),
    ("LogicalOr", [X > 0, Y > 0], {}, [(X > 0) | (Y > 0)]),
    ("LogicalNot", [X > 0], {}, [X <= 0]),
    ("Cast", [X * 9], {"dst_type": 3}, [(X * 9).int()]),
    ("Fill", [ints(2, 3), torch.tensor(5.0)], {}, [torch.full((2, 3), 5.0)]),
    ("Transpose", [SCORES], {}, [SCORES.permute(2, 0, 3, 1)]),
    ("BroadcastTo", [X[:1], ints(2, 5, 4)], {}, [X[:1].expand(2, 5, 4)]),
    ("Slice", [X, ints(1, 0), ints(-1, 3)], {}, [X[1:, :3]]),
    ("StridedSlice", [X, ints(0, 3), ints(3, 0), ints(2, -1)],
     {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0,
      "shrink_axis_mask": 0}, [X[::2].flip(1)[:, :3]]),
    ("Pad", [X, ints(1, 2, 0, 3)], {}, [F.pad(X, (0, 3, 1, 2))]),
    ("PadV3", [X, ints(0, 1, 2, 0), torch.tensor([1.5])],
     {"mode": "constant", "paddings_contiguous": True}, [F.pad(X, (2, 0, 0, 1), value=1.5)]),
    ("OnesLike", [X], {}, [torch.ones(3, 4)]),
    ("ZerosLike", [X], {}, [torch.zeros(3, 4)]),
    ("AsStrided", [X, ints(2, 2), ints(4, 2), ints(5)], {}, [X[1:, 1::2]]),
    ("MatMul", [X, Y], {"transpose_x1": False, "transpose_x2": True}, [X @ Y.T]),
    ("MatMulV2", [X, Y, X[0]], {"transpose_x1": True, "transpose_x2": False}, [X.T @ Y + X[0]]),
    ("BatchMatMul", [SCORES, SCORES], {"adj_x1": False, "adj_x2": True}, [SCORES @ SCORES.mT]),
    ("ArgMaxWithValue", [X], {"dimension": 1, "keep_dims": True},
     [X.argmax(1, keepdim=True).int(), X.amax(1, keepdim=True)]),
    ("ArgMinWithValue", [X], {"dimension": 0, "keep_dims": False}, [X.argmin(0), X.amin(0)]),
    ("Sort", [X], {"axis": 0, "descending": True},
     [X.sort(0, True)[0], X.sort(0, True)[1].int()]),
    ("SortV2", [X], {"axis": -1}, [X.sort(-1)[0]]),
    ("SoftmaxV2", [X], {"axes": [-1]}, [X.softmax(-1)]),
    ("LogSoftmaxV2", [X], {"axes": [0]}, [X.log_softmax(0)]),
    ("LayerNormV3", [X, Y[0], Y[1]], {"begin_norm_axis": 1, "epsilon": 1e-5}, list(NORMED)),
    ("ScaledMaskedSoftmax", [SCORES, MASK], {"scale": 0.5, "fixed_triu_mask": False}, [MASKED]),
    ("ScaledMaskedSoftmaxGrad", [SCORES, MASKED, MASK], {"scale": 0.5, "fixed_triu_mask": False},
     [(torch._softmax_backward_data(SCORES, MASKED, -1, torch.float) * 0.5)
      .masked_fill(MASK, 0)]),
    ("NPUAllocFloatStatus", [], {}, [torch.zeros(8)]),
    ("NPUGetFloatStatus", [torch.ones(8)], {}, [torch.zeros(8)]),
    ("NPUClearFloatStatus", [torch.ones(8)], {}, [torch.zeros(8)]),
]  # fmt: skip
CASES = [(n, [*i, ints(2, 0, 3, 1)] if n == "Transpose" else i, a, o) for n, i, a, o in CASES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_type_by_value(case):
    check(case)


@pytest.mark.parametrize(
    ("name", "inputs", "values", "shape", "sentence"),
    [
        ("Slice", [X, ints(1, 0), ints(3, 3)], {}, (3, 3), "must stay within dim 0 of x"),
        ("Slice", [X, ints(1), ints(1)], {}, (3, 3), "must have a number for each dim of x"),
        ("Pad", [X, ints(1, 2)], {}, (3, 4), "must have a pair for each dim of x"),
        ("PadV3", [X, ints(0, 0, 0, 0)], {"mode": "wrap", "paddings_contiguous": True}, (3, 4),
         "mode must be edge or reflect, but is wrap"),
        ("AsStrided", [X, ints(2, 2), ints(4, 2), ints(9)], {}, (2, 2), "must stay within"),
        ("Transpose", [X, ints(0, 2)], {}, (3, 4), "perm|dims|Dimension"),
        ("BroadcastTo", [X, ints(5, 4)], {}, (5, 4), "expand"),
        ("SoftmaxV2", [X], {"axes": [0, 1]}, (3, 4), "axes must have one number"),
        ("SoftmaxV2", [X], {}, (3, 4), "the attribute axes is missing"),
        ("MatMul", [X[0], Y], {"transpose_x1": False, "transpose_x2": False}, (1,), "2 to 8 dims"),
        ("LayerNormV3", [X, Y[0], Y[1]], {"begin_norm_axis": 2, "epsilon": 1e-5}, (3, 4),
         "begin_norm_axis must be a dim of x"),
    ],
)  # fmt: skip
def test_a_refusal(name, inputs, values, shape, sentence):
    count = 3 if name == "LayerNormV3" else 1
    outputs = [torch.zeros(shape).npu() for _ in range(count)]
    status = execute(name, [t.contiguous().npu() for t in inputs], outputs, **values)
    message = acl.get_recent_err_msg()
    assert status == 161002, message
    assert any(part in message for part in sentence.split("|")), message
    assert f"{name}: " in message


# ---- what torch_npu sends ----

COMPILED = {
    "abs": lambda x, y: x.abs(),
    "add": lambda x, y: x + y,
    "compare": lambda x, y: x > y,
    "silu": lambda x, y: F.silu(x),
    "mish": lambda x, y: F.mish(x),
    "softmax": lambda x, y: x.softmax(-1),
    "log_softmax": lambda x, y: x.log_softmax(-1),
    "matmul": lambda x, y: x @ y.T,
    "max": lambda x, y: x.max(1),
    "slice": lambda x, y: x[1:, ::2].contiguous(),
    "transpose": lambda x, y: x.T.contiguous(),
    "pad": lambda x, y: F.pad(x, (1, 2)),
    "cast": lambda x, y: (x * 9).int(),
    "nonzero": lambda x, y: (x > 0).nonzero(),
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_operators(name):
    function = COMPILED[name]
    x, y = X.npu(), Y.npu()
    torch.npu.set_compile_mode(jit_compile=True)
    try:
        found = function(x, y)
        torch.npu.synchronize()
    finally:
        torch.npu.set_compile_mode(jit_compile=False)
    right = function(X, Y)
    pairs = zip(found, right, strict=True) if isinstance(right, tuple) else [(found, right)]
    for a, b in pairs:
        torch.testing.assert_close(a.cpu(), b.to(a.dtype))
