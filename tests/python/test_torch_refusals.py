# SPDX-License-Identifier: Apache-2.0
"""Tensors of torch that cannot be used: every kind of torch_refusals.py, at every argument of every
row, gets a sentence, and none computes something."""

from __future__ import annotations

import pytest
from tests.support import arguments, plan

import openaclnn
from openaclnn.rows.table import OPS

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch._subclasses import FakeTensorMode  # noqa: E402
from torch.autograd import forward_ad  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from openaclnn.binding.torch_refusals import KINDS  # noqa: E402


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, given=(), named=None):
        raise AssertionError("asked")


class Overriding(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, given=(), named=None):
        raise AssertionError("asked")


def ones():
    return torch.ones(1)


def given(make):
    """An example that is a tensor, wherever it is used."""
    return lambda use: use(make())


def in_trace(use):
    torch.jit.trace(lambda x: (use(x), x + 1)[1], ones(), check_trace=False)


def in_make_fx(use):
    make_fx(lambda x: (use(x), x + 1)[1])(ones())


def in_fake_mode(use):
    x = ones()
    with FakeTensorMode(allow_non_fake_inputs=True):
        use(x)


def fake():
    with FakeTensorMode():
        return ones()


def in_vmap(use):
    torch.vmap(lambda x: (use(x), x)[1])(torch.ones(2, 1))


def in_grad(use):
    torch.func.grad(lambda x: (use(x), x.sum())[1])(ones())


def in_jvp(use):
    torch.func.jvp(lambda x: (use(x), x)[1], (ones(),), (ones(),))


def in_functionalize(use):
    torch.func.functionalize(lambda x: (use(x), x + 0)[1])(ones())


def dual(use):
    with forward_ad.dual_level():
        use(forward_ad.make_dual(ones(), ones()))


def of_inference():
    with torch.inference_mode():
        return ones()


def emptied():
    x = ones()
    x.untyped_storage().resize_(0)
    return x


def masked():
    return torch.masked.masked_tensor(ones(), torch.tensor([True]))


def nested(layout):
    return lambda: torch.nested.nested_tensor([ones(), torch.ones(2)], layout=layout)


def quantised():
    return torch.quantize_per_tensor(ones(), 0.1, 0, torch.quint8)


OUTSIDE = "which cannot see these functions: call them outside of it"
WRAPPED = "but is one that torch.func wraps for"
EXAMPLES = {
    "traced": [
        (in_trace, f"not be traced by torch.jit.trace, {OUTSIDE}"),
        (in_make_fx, f"not be traced by make_fx or torch.export, {OUTSIDE}"),
        (in_fake_mode, f"not be used under FakeTensorMode, {OUTSIDE}"),
    ],
    "transformed": [
        (in_vmap, f"{WRAPPED} vmap"),
        (in_grad, f"{WRAPPED} grad, jvp or functionalize"),
        (in_jvp, f"{WRAPPED} grad, jvp or functionalize"),
        (in_functionalize, f"{WRAPPED} grad, jvp or functionalize"),
    ],
    "subclass": [
        (given(fake), "but is of class FakeTensor, which has no values: pass a real tensor"),
        (given(masked), "class MaskedTensor, which hides values: pass x.to_tensor(value)"),
        (given(nested(torch.jagged)), "class NestedTensor, which is not one array: pass x.to_padd"),
        (given(lambda: torch.nn.UninitializedParameter(requires_grad=False)), "has no shape yet"),
        (given(lambda: Wrapper(ones())), "class Wrapper, which redefines operations: pass a plain"),
        (given(lambda: ones().as_subclass(Overriding)), "class Overriding, which redefines"),
    ],
    "functional": [
        (given(lambda: torch._to_functional_tensor(ones())), "one that torch functionalises"),
    ],
    "elsewhere": [
        (given(lambda: torch.ones(1, device="meta")), "on device meta: pass a tensor with values"),
    ],
    "meta": [
        (given(lambda: torch.ones(1, device="meta")), "on device meta: pass a tensor with values"),
    ],
    "nested": [
        (given(nested(torch.strided)), "be one array, but is a nested tensor: pass x.to_padded"),
    ],
    "layout": [
        (given(lambda: torch.ones(2, 2).to_sparse()), "has layout torch.sparse_coo: pass x.to_den"),
        (given(lambda: torch.ones(2, 2).to_sparse_csr()), "has layout torch.sparse_csr: pass x.to"),
        (given(lambda: torch.ones(2, 2).to_mkldnn()), "has layout torch._mkldnn: pass x.to_dense"),
    ],
    "quantised": [(given(quantised), "is quantised as torch.quint8: pass x.dequantize()")],
    "recorded": [
        (given(lambda: ones().requires_grad_()), "not require a gradient, which plans never"),
        (given(lambda: ones().requires_grad_() * 2), "or pass x.detach()"),
    ],
    "recorded number": [
        (given(lambda: ones().requires_grad_()), "never recorded of a number: pass x.item()"),
    ],
    "dual": [(dual, "not carry a forward-mode tangent, which these functions do not propagate")],
    "inference": [(given(of_inference), "not be an inference tensor, which may be written inside")],
    "zero": [(given(lambda: torch._efficientzerotensor(1)), "have storage, but is a zero tensor")],
    "negated": [
        (given(lambda: torch.ones(1, dtype=torch.complex64).conj().imag), "is a lazy negation"),
    ],
    "emptied": [(given(emptied), "but its storage was resized to 0 bytes")],
    "dtype": [
        (given(lambda: ones().to(torch.float8_e5m2)), "aclnn API, but got torch.float8_e5m2"),
    ],
    "several": [(given(lambda: torch.ones(2)), "be one number, but has shape [2]")],
}


def check(op, parameter, tensor, phrase):
    with pytest.raises(openaclnn.AclnnError) as caught:
        plan(op, arguments(op) | {parameter.name: tensor})
    assert caught.value.status == 161002
    assert str(caught.value).startswith(f"{op.name}: {parameter.name} must ")
    assert phrase in str(caught.value)


@pytest.mark.filterwarnings("ignore")  # of torch, about kinds that are prototypes
@pytest.mark.parametrize(("kind", "example"), [
    pytest.param(kind, example, id=f"{kind.name}-{i}")
    for kind in KINDS
    for i, example in enumerate(EXAMPLES[kind.name])
])  # fmt: skip
def test_refused_at_every_argument(kind, example):
    make, phrase = example
    used = []

    def use(tensor):
        for op in OPS:
            for p in op.parameters:
                array = p.kind == "tensor" and kind.array
                number = p.kind in ("scalar", "double", "int64") and kind.number
                if not (array or number) or (kind.name == "inference" and p.role == "input"):
                    continue
                check(op, p, tensor, phrase)
                used.append(p)

    make(use)
    assert used


def test_every_kind_has_an_example():
    assert {kind.name for kind in KINDS} == set(EXAMPLES)
