# SPDX-License-Identifier: Apache-2.0
"""Tensors of torch that cannot be used: every kind of torch_refusals.py, at every argument of every
row, gets a sentence, and none computes something."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
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


# ---- what may be used ----


class Derived(torch.Tensor):
    """Overrides nothing."""


@pytest.mark.parametrize("make", [
    lambda: torch.nn.Parameter(torch.full((4,), -4.0), requires_grad=False),
    lambda: torch.nn.Buffer(torch.full((4,), -4.0)),
    lambda: torch.full((4,), -4.0).as_subclass(Derived),
])  # fmt: skip
def test_tensors_that_are_plain(make):
    result = openaclnn.leaky_relu(make(), 0.25)
    assert (result == -1).all()
    assert (openaclnn.leaky_relu_(make(), torch.tensor(0.25)) == -1).all()


def test_modes_that_only_watch():
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False):
        assert (openaclnn.leaky_relu(torch.full((4,), -4.0), 0.25) == -1).all()


@pytest.mark.filterwarnings("ignore:Dynamo does not know")  # it breaks the graph and says so
def test_graph_breaks_of_compile():
    f = torch.compile(lambda x: openaclnn.leaky_relu(x * 2, 0.25) + 1, backend="eager")
    assert (f(torch.full((4,), -4.0)) == -1).all()


def test_no_gradient_where_none_is_recorded():
    class Function(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            context.save_for_backward(x)
            return openaclnn.leaky_relu(x, 0.25)

        @staticmethod
        def backward(context, gradient):
            (x,) = context.saved_tensors
            return openaclnn.leaky_relu_backward(gradient.contiguous(), x, 0.25, False)

    x = torch.tensor([-4.0, 4.0], requires_grad=True)
    Function.apply(x).sum().backward()
    assert x.grad.tolist() == [0.25, 1]


@pytest.mark.filterwarnings("ignore")
def test_plans_that_run_where_they_must_not():
    x, y = torch.ones(1), torch.ones(1)
    plain = openaclnn.plan("aclnnLeakyRelu", x, 0.25, y)
    for context in (in_trace, in_make_fx):

        def use(_):
            with pytest.raises(openaclnn.AclnnError, match="aclnnLeakyRelu: self must not be trac"):
                plain.run()

        context(use)
    with torch.inference_mode():
        made = openaclnn.plan("aclnnInplaceLeakyRelu", ones(), 0.25)
        made.run()
    with pytest.raises(openaclnn.AclnnError, match="selfRef must not be an inference tensor"):
        made.run()


# A torch from before 2.9 has no exchange table: its memory is lent by __dlpack__.
OLDER = """
import sys, ctypes, torch, openaclnn, numpy as np
if "exchange" in sys.argv:
    del torch.Tensor.__dlpack_c_exchange_api__
x, y = torch.full((4,), -4.0), torch.zeros(4)
assert openaclnn.leaky_relu(x, 0.25, out=y) is y and (y == -1).all()
assert (openaclnn.leaky_relu(torch.nn.Parameter(x).detach(), 0.25) == -1).all()
with torch.no_grad():
    assert (openaclnn.leaky_relu(torch.nn.Parameter(x), 0.25) == -1).all()
plan = openaclnn.plan("aclnnLeakyRelu", x, 0.25, y)
plan.run()
x.resize_(1000000)
for refused in (plan.run, lambda: openaclnn.leaky_relu(torch.ones(2).to_sparse())):
    try:
        refused()
    except openaclnn.AclnnError as error:
        print(error)
"""


def test_an_older_torch():
    done = subprocess.run([sys.executable, "-c", OLDER, "exchange"], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "aclnnLeakyRelu: self must keep its memory while a plan uses it, but was resized or given "
        "other data: plan again",
        "aclnnLeakyRelu: self must be dense, but has layout torch.sparse_coo: pass x.to_dense()",
    ]


def test_a_mode_that_moves_what_it_is_asked_about():
    """torch asks a mode about every property; its code runs before an address is read."""
    from torch.overrides import TorchFunctionMode

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, given=(), named=None):
            x.data, y.data = x.data.clone(), y.data.clone()
            asked.append(function)
            return function(*given, **(named or {}))

    for shape in ((1 << 16,), (1, 1 << 16)):
        asked, x, y = [], torch.full(shape, -4.0), torch.zeros(shape)
        with Mode():
            assert openaclnn.leaky_relu(x, 0.25, out=y) is y
            made = openaclnn.leaky_relu(x, 0.25)
        assert asked
        assert (y == -1).all()
        assert (made == -1).all()


def test_warnings_of_torch_stay_where_they_are():
    """To convert a tensor to a number warns of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert openaclnn.leaky_relu(np.full(1, -4.0), torch.tensor(0.25)).item() == -1
