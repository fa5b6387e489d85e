# SPDX-License-Identifier: Apache-2.0
"""Functions and modules with torch's names: torch's own samples, numbers, state_dict."""

from __future__ import annotations

import inspect
import subprocess
import sys
import warnings
from fractions import Fraction

import numpy as np
import pytest
from tests.support import all_rows
from tests.torch.torch_support import arguments, operator, same_bits, tensors, torch

import openaclnn
import openaclnn.torch as ot
from openaclnn.rows.gradients import differentiable
from openaclnn.torch import recording

nn, functional = torch.nn, torch.nn.functional


def op_infos():
    pytest.importorskip("expecttest", reason="torch's samples need expecttest")
    from torch.testing._internal.common_methods_invocations import op_db

    return {info.name: info for info in op_db}


PEERS = {
    "nn.functional.leaky_relu": ot.leaky_relu,
    "nn.functional.elu": ot.elu,
    "nn.functional.hardshrink": ot.hardshrink,
    "logit": ot.logit,
}


@pytest.mark.filterwarnings("ignore")  # of torch's test package, about itself
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", PEERS)
def test_samples_of_torch(name, dtype):
    info = op_infos()[name]
    # in half types torch rounds inside logit: near 0 it keeps few digits
    wide = {torch.float32: (2e-6, 1e-6), torch.float16: (2e-3, 1e-3), torch.bfloat16: (2e-2, 1e-2)}
    count = 0
    for sample in info.sample_inputs("cpu", dtype, requires_grad=True):
        ours, theirs = (sample.input.detach().clone().requires_grad_() for _ in range(2))
        y = PEERS[name](ours * 1, *sample.args, **sample.kwargs)
        z = info.op(theirs * 1, *sample.args, **sample.kwargs)
        rtol, atol = wide[dtype]
        torch.testing.assert_close(y, z, rtol=rtol, atol=atol)
        y.sum().backward(), z.sum().backward()
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=rtol, atol=atol)
        count += 1
    assert count > 2


@pytest.mark.parametrize("name", ["leaky_relu", "elu", "hardshrink"])
def test_arguments_are_those_of_torch(name):
    ours = inspect.signature(getattr(ot, name)).parameters
    theirs = getattr(functional, name)
    if name == "hardshrink":  # a builtin: hardshrink(input, lambd=0.5)
        assert list(ours) == ["input", "lambd"]
        return
    theirs = inspect.signature(theirs).parameters
    assert [(p.name, p.default) for p in ours.values()] == [
        (p.name, p.default) for p in theirs.values()
    ]


@pytest.mark.parametrize("function", [ot.leaky_relu, ot.elu])
def test_in_place(function):
    x = torch.randn(5)
    expected = function(x)
    assert function(x, inplace=True) is x
    assert same_bits(x, expected)


MODULES = [
    (ot.ELU, nn.ELU, (1.5,)),
    (ot.LeakyReLU, nn.LeakyReLU, (0.2,)),
    (ot.Hardshrink, nn.Hardshrink, (0.3,)),
]


@pytest.mark.parametrize(("ours", "theirs", "arguments"), MODULES)
def test_activations(ours, theirs, arguments):
    x = torch.randn(3, 4)
    torch.testing.assert_close(ours(*arguments)(x), theirs(*arguments)(x))
    assert repr(ours(*arguments)) == repr(theirs(*arguments))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("affine", [True, False])
def test_group_norm_swish(affine, dtype):
    torch.manual_seed(0)
    theirs = nn.GroupNorm(3, 6, eps=1e-4, affine=affine, dtype=dtype)
    ours = ot.GroupNormSwish(3, 6, eps=1e-4, affine=affine, dtype=dtype)
    if affine:
        nn.init.normal_(theirs.weight), nn.init.normal_(theirs.bias)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 6, 5, 4).to(dtype)
    exact = nn.GroupNorm(3, 6, eps=1e-4, affine=affine, dtype=torch.float64)
    exact.load_state_dict(theirs.state_dict())
    mine, true = x.clone().requires_grad_(), x.double().requires_grad_()
    y, z = ours(mine), functional.silu(exact(true))
    incoming = torch.randn(y.shape).to(dtype)
    y.backward(incoming), z.backward(incoming.double())
    step = {torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}[dtype]
    torch.testing.assert_close(y.double(), z, rtol=step, atol=step / 4)
    torch.testing.assert_close(mine.grad.double(), true.grad, rtol=step, atol=4 * step / 4)
    if affine:
        # statistics in float32: the gradients are rounded once, at the end
        for a, b in zip(ours.parameters(), exact.parameters(), strict=True):
            assert a.grad.dtype is dtype
            torch.testing.assert_close(a.grad.double(), b.grad, rtol=step, atol=step)


def test_what_group_norm_swish_keeps():
    """x, gamma, beta, mean and rstd, and no intermediate result of the size of x."""
    kept = []

    def pack(tensor):
        kept.append(tensor)
        return tensor

    module, x = ot.GroupNormSiLU(3, 6), torch.randn(2, 6, 5, 4, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        module(x)
    assert sorted(tuple(t.shape) for t in kept) == [(2, 3), (2, 3), (2, 6, 5, 4), (6,), (6,)]
    assert sum(t.data_ptr() == x.data_ptr() for t in kept) == 1


def test_swish_scale():
    module, x = ot.GroupNormSwish(3, 6, swish_scale=1.702), torch.randn(2, 6, 5)
    v = functional.group_norm(x, 3)
    torch.testing.assert_close(module(x), v * torch.sigmoid(1.702 * v), rtol=1e-5, atol=1e-6)
    assert "swish_scale=1.702" in repr(module)


NUMBERS = [np.float32(0.5), np.float16(0.5), Fraction(1, 2), np.int64(1), np.uint8(1)]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: type(n).__name__)
def test_numbers_of_other_types(number):
    """torch's functions take whatever has __float__ or __index__; its dispatcher does not."""
    x, plain = torch.randn(5), float(number)
    for function in (ot.leaky_relu, ot.elu, ot.hardshrink, ot.logit):
        assert same_bits(function(x, number), function(x, plain))
    assert same_bits(nn.Sequential(ot.LeakyReLU(number))(x), ot.leaky_relu(x, plain))
    images = torch.randn(2, 4, 5)
    found = ot.group_norm_swish(images, np.int64(2), eps=number, swish_scale=number)
    assert same_bits(found, ot.group_norm_swish(images, 2, eps=plain, swish_scale=plain))


@pytest.mark.parametrize("shape", [(0, 6, 5), (0, 6), (2, 6, 0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_empty_batches(shape, dtype):
    """The operator refuses them, and the module takes what torch.nn's does."""
    module, x = ot.GroupNormSwish(3, 6), torch.zeros(shape, dtype=dtype, requires_grad=True)
    y = module(x)
    assert (y.shape, y.dtype) == (x.shape, dtype)
    y.sum().backward()
    assert x.grad.shape == x.shape
    assert module.weight.grad.shape == module.bias.grad.shape == (6,)
    assert ot.group_norm_swish(x, 3).shape == x.shape
    with pytest.raises(ValueError, match="x must not be empty"):
        torch.ops.openaclnn.group_norm_swish(x, module.weight, module.bias, 3)


def test_empty_batches_of_compiled_modules():
    module = torch.compile(ot.GroupNormSwish(3, 6), fullgraph=True, backend="aot_eager")
    for count in (3, 0, 4):
        assert module(torch.ones(count, 6, 5)).shape == (count, 6, 5)


def test_batches_whose_size_the_data_give():
    class Chosen(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = ot.GroupNormSwish(3, 6)

        def forward(self, x, mask):
            return self.norm(x[mask])

    x, mask = torch.randn(4, 6, 5), torch.tensor([True, False, True, True])
    program = torch.export.export(Chosen(), (x, mask)).module()
    assert same_bits(program(x, ~mask), ot.group_norm_swish(x[~mask], 3))


def test_jit_traces_modules():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit.trace", DeprecationWarning)
        traced = torch.jit.trace(ot.GroupNormSwish(3, 6), torch.randn(2, 6, 5))
    assert traced(torch.randn(4, 6, 5)).shape == (4, 6, 5)


# ---- openaclnn's own functions ----


@pytest.fixture
def recorded():
    recording.start()
    yield
    recording.stop()


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("op", all_rows())
def test_functions_of_openaclnn_record(op):
    inputs = tensors(op, "FLOAT")
    grads = []
    for function in (operator(op), getattr(openaclnn, op.python)):
        leaves = [x.clone() for x in inputs]
        for p, x in zip(op.input_tensors, leaves, strict=True):
            x.requires_grad_(p in differentiable(op))
        taken = [x * 1 for x in leaves] if op.inplace else leaves
        found = function(*arguments(op, taken))
        found = found if isinstance(found, tuple) else (found,)
        if any(x.requires_grad for x in leaves):
            found[0].sum().backward()
        grads.append([x.grad for x in leaves] + [y.detach() for y in found])
    assert all(map(same_bits, *grads))


@pytest.mark.usefixtures("recorded")
def test_functions_of_openaclnn_refuse_what_they_did():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(ValueError, match="a call with out= must not require a gradient"):
        openaclnn.leaky_relu(x, out=torch.empty(3))
    images, w = torch.ones(2, 4, 5, requires_grad=True), torch.ones(4)
    with pytest.raises(ValueError, match="a call with out= must not require a gradient"):
        openaclnn.group_norm_swish(images, w, w, 2, out=(torch.zeros(2, 4, 5), None, None))
    with pytest.raises(openaclnn.AclnnError, match="aclnnElu: self must have dtype"):
        openaclnn.elu(torch.ones(3, dtype=torch.int32))
    assert isinstance(openaclnn.elu(np.ones(3, np.float32)), np.ndarray)


@pytest.mark.usefixtures("recorded")
def test_functions_of_openaclnn_record_with_numbers_of_other_types():
    x = torch.tensor([-2.0, 3.0], requires_grad=True)
    openaclnn.leaky_relu(x, np.float32(0.5)).sum().backward()
    assert x.grad.tolist() == [0.5, 1.0]
    images, w = torch.ones(2, 4, 5, requires_grad=True), torch.ones(4)
    assert openaclnn.group_norm_swish(images, w, w, np.int64(2))[0].requires_grad


IMPORTED = """
import torch, openaclnn
x = torch.tensor([-2.0, 3.0], requires_grad=True)
try:
    openaclnn.leaky_relu(x)
except openaclnn.AclnnError:
    print("refused")
import openaclnn.torch
openaclnn.leaky_relu(x, 0.5).sum().backward()
print(x.grad.tolist())
"""


@pytest.mark.programs
def test_the_import_makes_the_difference():
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("refused\n[0.5, 1.0]\n", "")
