# SPDX-License-Identifier: Apache-2.0
"""The ways into the kernels for CUDA tensors, in Triton's interpreter: they stand in for those of
the CPU, below autograd, modules, torch.compile and plans."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from tests.support import SEED
from tests.triton.interpreting import torch
from torch.utils._python_dispatch import TorchDispatchMode

import openaclnn
import openaclnn.torch as ot
from openaclnn import triton as kernels
from openaclnn.reference.evaluation import REFERENCES, sample
from openaclnn.rows.gradients import differentiable
from openaclnn.rows.table import OPS
from openaclnn.torch import cuda
from openaclnn.triton import elementwise

POINTWISE = [op for op in OPS if op.pointwise]
by_name = {op.python: op for op in OPS}


class _OnTheDevice(TorchDispatchMode):
    """Calls the kernels for CUDA tensors where the dispatcher would: below autograd."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.namespace != "openaclnn":
            return function(*args, **(kwargs or {}))
        return cuda.kernel(by_name[function._opname])(*args, **(kwargs or {}))


@pytest.fixture
def launches(monkeypatch):
    """The rows that were computed."""
    seen = []

    def launcher(op, named):
        seen.append(op.python)
        return elementwise.launcher(op, named)

    monkeypatch.setitem(kernels.FAMILIES, "elementwise", launcher)
    cuda.forget()
    with np.errstate(all="ignore"), _OnTheDevice():
        yield seen
    cuda.forget()


def inputs_of(op, dtype="FLOAT", shape=(3, 41)):
    arrays = sample(op, shape, dtype, SEED, REFERENCES[op.kernel].attributes[0])
    return [torch.from_numpy(np.nan_to_num(x)) for x in arrays]


def values(op, tensors):
    named = {p.name: x for p, x in zip(op.input_tensors, tensors, strict=True)}
    attributes = REFERENCES[op.kernel].attributes[0]
    named |= {p.name: attributes[p.python_name] for p in op.attributes}
    return [named[p.name] for p in op.parameters if p.role != "output"]


@pytest.mark.parametrize("op", POINTWISE, ids=lambda op: op.name)
def test_operators(op, launches):
    tensors = inputs_of(op)
    expected = getattr(openaclnn, op.python)(*values(op, [x.clone() for x in tensors]))
    operator = getattr(torch.ops.openaclnn, op.python)
    result = operator(*values(op, [x.clone() for x in tensors]))
    torch.testing.assert_close(result, expected, rtol=3e-7, atol=0, equal_nan=True)
    if not op.inplace:
        out = torch.empty(result.shape)
        assert operator.out(*values(op, tensors), out=out) is out
        assert torch.equal(out.view(torch.int32), result.view(torch.int32))
    assert set(launches) == {op.python}


@pytest.mark.parametrize("op", [op for op in POINTWISE if op.gradient], ids=lambda op: op.name)
def test_gradients(op, launches):
    tensors = inputs_of(op)
    for p, x in zip(op.input_tensors, tensors, strict=True):
        x.requires_grad_(p in differentiable(op))
    given = [x * 1 for x in tensors] if op.inplace else tensors
    getattr(torch.ops.openaclnn, op.python)(*values(op, given)).sum().backward()
    rows = {row.python for row in OPS if row.name == op.gradient.row}
    assert rows <= set(launches)
    assert any(x.grad is not None for x in tensors)


def test_modules_that_are_replaced(launches):
    torch.manual_seed(SEED)
    model = torch.nn.Sequential(
        torch.nn.Linear(8, 8), torch.nn.ELU(), torch.nn.Linear(8, 8), torch.nn.LeakyReLU(0.1)
    )
    x = torch.randn(5, 8)
    expected = model(x)
    ot.replace(model)
    torch.testing.assert_close(model(x), expected)
    model(x).sum().backward()
    assert {"elu", "leaky_relu", "elu_backward", "leaky_relu_backward"} <= set(launches)


def test_torch_compile(monkeypatch):
    """The graph calls the kernel of the device, for which that of the CPU stands in."""

    def function(x):
        return ot.elu(ot.leaky_relu(x, 0.1), 0.5) * 2

    x = torch.randn(4, 33, requires_grad=True)
    expected = function(x)
    seen = []
    library = torch.library.Library("openaclnn", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of each kernel that is replaced
        for name in ("elu", "leaky_relu"):
            kernel = cuda.kernel(by_name[name])
            library.impl(name, lambda *a, k=kernel, n=name: (seen.append(n), k(*a))[1], "CPU")
    try:
        found = torch.compile(function, backend="aot_eager", fullgraph=True)(x)
    finally:
        library._destroy()
    torch.testing.assert_close(found, expected, rtol=3e-7, atol=0)
    assert seen == ["leaky_relu", "elu"]


def test_vmap(launches):
    x = torch.randn(3, 5)
    found = torch.vmap(lambda row: torch.ops.openaclnn.elu(row))(x)
    assert torch.equal(found, torch.ops.openaclnn.elu(x))
    assert launches


def test_empty_tensors():
    assert torch.ops.openaclnn.elu(torch.empty(0, 3)).shape == (0, 3)


def test_a_plan_runs_on_what_its_tensors_hold(launches):
    op = by_name["leaky_relu"]
    x, out = torch.tensor([-1.0, 2.0]), torch.empty(2)
    plan = cuda.Plan(OPS.index(op), x, 0.5, out)
    assert (plan.name, plan.workspace_size) == ("aclnnLeakyRelu", 0)
    assert launches == ["leaky_relu"]  # prepared once
    plan.run()
    assert out.tolist() == [-0.5, 2.0]
    x.copy_(torch.tensor([-4.0, -8.0]))
    plan.run()
    assert out.tolist() == [-2.0, -4.0]
    assert launches == ["leaky_relu"]
    with pytest.raises(TypeError, match=r"stream must be a torch.cuda.Stream .* but got Stream"):
        plan.run(openaclnn.Stream())


def test_calls_are_prepared_once(launches):
    """For all tensors of one kind, and checked once."""
    x = torch.randn(5, 3)
    for i in range(3):
        y = torch.ops.openaclnn.leaky_relu(x + i, 0.5)
        assert torch.equal(y, torch.where(x + i > 0, x + i, (x + i) * 0.5))
    out = torch.empty(5, 3)
    for i in range(2):
        torch.ops.openaclnn.leaky_relu.out(x + i, 0.5, out=out)
        assert torch.equal(out, torch.ops.openaclnn.leaky_relu(x + i, 0.5))
    assert launches == ["leaky_relu"] * 2  # with out= and without


NORM = (torch.randn(2, 8, 4, 4), torch.rand(8), torch.rand(8), 4, None, 1e-5, True, 1.0)
KINDS = {  # which argument of NORM makes another kind of call
    "shape": (0, torch.randn(3, 8, 4, 4)),
    "strides": (0, torch.randn(2, 8, 4, 4).to(memory_format=torch.channels_last)),
    "dtype": (0, torch.randn(2, 8, 4, 4).half()),
    "alignment": (0, torch.randn(257)[1:].view(2, 8, 4, 4)),
    "dtype of gamma": (1, torch.rand(8).half()),
    "strides of gamma": (1, torch.rand(16)[::2]),
    "alignment of beta": (2, torch.rand(9)[1:]),
    "groups": (3, 2),
    "eps": (5, 2e-5),
    "activation": (6, False),
    "scale": (7, -0.0),
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_calls(name):
    """Each is prepared by itself; a call that follows another kind has its own results."""
    place, other = KINDS[name]
    changed = [*NORM]
    changed[place] = other
    if name == "dtype of gamma":
        changed[2] = changed[2].half()
        changed[0] = changed[0].half()
    norm = cuda.kernel(by_name["group_norm_swish"])
    cuda.forget()
    with np.errstate(all="ignore"):
        expected = norm(*changed)
        cuda.forget()
        norm(*NORM)
        found = norm(*changed)
        for _ in range(2):
            norm(*changed)
    assert len(cuda._calls) == 2
    for a, b in zip(found, expected, strict=True):
        assert torch.equal(a.nan_to_num(7.0), b.nan_to_num(7.0))
        assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())


def test_numbers_are_known_by_their_bits():
    x = torch.tensor([-1.0])
    cuda.forget()
    for slope, sign in ((0.0, True), (-0.0, False)):
        y = cuda.kernel(by_name["leaky_relu"])(x, slope)
        assert torch.signbit(y).item() is sign
    known = len(cuda._calls)
    for _ in range(3):
        cuda.kernel(by_name["leaky_relu"])(x, float("nan"))
    assert len(cuda._calls) == known + 1


def test_products_refuse_what_another_accepted():
    x, kernel = torch.ones(3, dtype=torch.bfloat16), cuda.kernel(by_name["hardshrink"])
    before = openaclnn.config()["product"]
    openaclnn.set_product("any")
    try:
        kernel(x, 0.5)
        openaclnn.set_product("310P")
        for _ in range(2):
            with pytest.raises(ValueError, match="bfloat16"):
                kernel(x, 0.5)
    finally:
        openaclnn.set_product(before)


def test_outputs_are_checked_each_time():
    """Whether they overlap an input depends on addresses, which are no part of a kind."""
    kernel, memory = cuda.kernel(by_name["leaky_relu_backward"]), torch.zeros(256)
    g, x, out = memory[:64], memory[64:128], memory[128:192]
    kernel(g, x, 0.5, False, out=out)
    with pytest.raises(ValueError, match="out must be the same view as x or share no memory"):
        kernel(g, x, 0.5, False, out=memory[96:160])
    assert kernel(g, x, 0.5, False, out=x) is x


def test_calls_are_forgotten(monkeypatch):
    monkeypatch.setattr(cuda, "_MOST", 3)
    cuda.forget()
    for n in range(1, 9):
        cuda.kernel(by_name["hardshrink"])(torch.ones(n), 0.5)
        assert len(cuda._calls) <= 3


def test_launches_are_of_one_alignment():
    """A kernel is compiled for the addresses that are multiples of 16, each by itself."""
    memory = torch.randn(80)
    on, off = memory[:64], memory[1:65]
    pairs = (on, off), (off, on), (off, off)
    cuda.forget()
    for pair in pairs:
        cuda.kernel(by_name["leaky_relu_backward"])(*pair, 0.1, False)
    assert len(cuda._calls) == len(pairs)


def test_large_operands_take_64_bits(monkeypatch):
    """The same bits with indices of 64 bits, flat and strided."""
    from openaclnn.triton import launch

    op = by_name["leaky_relu_backward"]
    g, x = torch.randn(7, 33), torch.randn(7, 33)
    cases = [(g, x), (g.mT, x.mT.contiguous()), (g[:1], x)]
    kernel = cuda.kernel(op)
    expected = [kernel(*pair, 0.1, False) for pair in cases]
    monkeypatch.setattr(launch, "LARGE", 1)
    cuda.forget()
    for pair, want in zip(cases, expected, strict=True):
        assert torch.equal(kernel(*pair, 0.1, False), want)
    cuda.forget()
