# SPDX-License-Identifier: Apache-2.0
"""The operators work under torch.compile, torch.export, vmap, tracing, checkpoints and autocast."""

from __future__ import annotations

import pytest
from tests.support import all_rows, rows
from tests.torch.torch_support import LAYOUTS, arguments, call, operator, same_bits, tensors, torch

import openaclnn.torch as ot

functional = torch.nn.functional
pytestmark = pytest.mark.filterwarnings(
    "ignore:.torch.jit.script. is deprecated",
    "ignore:.torch.jit.trace. is deprecated",
    "ignore:.torch.jit.trace_method. is deprecated",
    "ignore:.isinstance.treespec, LeafSpec.. is deprecated",
)


class Block(torch.nn.Module):
    """Every function of openaclnn.torch, in place too."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(6, 6, 1)
        self.norm = ot.GroupNormSwish(3, 6)

    def forward(self, x):
        h = self.norm(self.conv(x))
        h = ot.elu(h, 1.5, inplace=True)
        h = h + ot.logit(torch.sigmoid(x), 1e-3)
        ot.leaky_relu(h[:, 2:4], 0.2, inplace=True)
        return ot.hardshrink(h, 0.05)


class Plain(Block):
    """The same with torch's own."""

    def forward(self, x):
        n = self.norm
        h = functional.group_norm(self.conv(x), n.num_groups, n.weight, n.bias, n.eps)
        h = functional.elu(functional.silu(h), 1.5)
        h = h + torch.special.logit(torch.sigmoid(x), 1e-3)
        h = torch.cat([h[:, :2], functional.leaky_relu(h[:, 2:4], 0.2), h[:, 4:]], 1)
        return functional.hardshrink(h, 0.05)


def images(n=2, size=5):
    return torch.randn(n, 6, size, 4, generator=torch.Generator().manual_seed(1))


def gradients(function, block, x):
    x = x.clone(memory_format=torch.preserve_format).requires_grad_()
    y = function(x)
    weights = torch.linspace(-1, 1, y.numel()).view(y.shape)
    block.zero_grad()
    (y * weights).sum().backward()
    return y.detach(), x.grad, *(p.grad for p in block.parameters())


def close(found, expected):
    return all(
        torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(found, expected, strict=True)
    )


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()


def test_eager_is_what_torch_computes():
    block, x = Block(), images()
    assert close(gradients(block, block, x), gradients(plain := Plain(), plain, x))


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compile(backend, layout):
    block, x = Block(), LAYOUTS[layout](images())
    expected = gradients(block, block, x)
    found = gradients(torch.compile(block, fullgraph=True, backend=backend), block, x)
    assert all(map(same_bits, found, expected))
    assert [y.stride() for y in found[:2]] == [y.stride() for y in expected[:2]]


def test_compile_for_all_sizes():
    block = Block()
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager", dynamic=True)
    for n, size in ((2, 5), (3, 7), (4, 2)):
        x = images(n, size)
        assert all(map(same_bits, gradients(compiled, block, x), gradients(block, block, x)))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def captured(function, *inputs):
    """Names of what the graph of torch.compile calls, after functionalisation."""
    graphs = []

    def keep(module, _):
        graphs.append(module)
        return module

    from torch._dynamo.backends.common import aot_autograd

    compiled = torch.compile(function, fullgraph=True, backend=aot_autograd(fw_compiler=keep))
    compiled(*inputs)
    return [str(n.target) for g in graphs for n in g.graph.nodes if n.op == "call_function"]


@pytest.mark.parametrize("op", rows(lambda op: op.inplace))
def test_captured_graphs_write_nowhere(op):
    (x,) = tensors(op, "FLOAT")
    names = captured(lambda t: operator(op)(*arguments(op, [t * 1])) + 1, x)
    assert f"openaclnn.{op.python.removesuffix('_')}.default" in names
    assert not any("functionalized" in name or op.python in name for name in names)


def test_captured_graphs_copy_nothing():
    x = images().contiguous(memory_format=torch.channels_last)
    weight = torch.ones(6)
    names = captured(lambda t: ot.leaky_relu(ot.group_norm_swish(t, 3, weight, weight)), x)
    assert not any("clone" in name or "contiguous" in name or "copy" in name for name in names)


@pytest.mark.parametrize("op", all_rows(lambda op: not op.inplace))
def test_compile_with_out(op):
    inputs = [x.clamp(-4, 4) for x in tensors(op, "FLOAT")]
    names = [a.name for a in operator(op, "out")._schema.arguments if a.kwarg_only]

    def function(*inputs):
        outs = [torch.full_like(y, 7.0) for y in expected]
        operator(op, "out")(*arguments(op, inputs), **dict(zip(names, outs, strict=True)))
        return outs

    expected = call(op, inputs)
    found = torch.compile(function, fullgraph=True, backend="aot_eager")(*inputs)
    assert all(map(same_bits, found, expected))


def test_export_for_all_sizes():
    class Net(Block):
        def forward(self, x):
            return ot.leaky_relu(self.norm(self.conv(x)), 0.1)

    net, x = Net(), images()
    sizes = {0: torch.export.Dim("n", min=2, max=64), 2: torch.export.Dim("h", min=2, max=64)}
    exported = torch.export.export(net, (x,), dynamic_shapes=(sizes,))
    names = [str(n.target) for n in exported.graph.nodes if n.op == "call_function"]
    assert "openaclnn.group_norm_swish.default" in names
    assert "openaclnn.leaky_relu.default" in names
    for n, size in ((2, 5), (9, 3)):
        assert same_bits(exported.module()(images(n, size)), net(images(n, size)))
    again = exported.run_decompositions()
    assert same_bits(again.module()(x), net(x))


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints(reentrant):
    block, x = Block(), images()
    found = gradients(
        lambda t: torch.utils.checkpoint.checkpoint(block, t, use_reentrant=reentrant), block, x
    )
    assert all(map(same_bits, found, gradients(block, block, x)))


def test_saved_tensors_may_be_kept_elsewhere():
    block, x = Block(), images()
    with torch.autograd.graph.save_on_cpu():
        found = gradients(block, block, x)
    assert all(map(same_bits, found, gradients(block, block, x)))


# ---- recorders ----


@pytest.mark.parametrize("op", all_rows())
def test_jit_trace_records_the_operator(op):
    inputs = tensors(op, "FLOAT")

    def function(*taken):
        return operator(op)(*arguments(op, taken))

    traced = torch.jit.trace(function, tuple(x.clone() for x in inputs), check_trace=False)
    assert f"openaclnn::{op.python}" in str(traced.graph)
    found = traced(*(x.clone() for x in inputs))
    found = found if isinstance(found, tuple) else (found,)
    assert all(map(same_bits, found, call(op, inputs)))


def test_fx_records_the_operator():
    traced = torch.fx.symbolic_trace(Block())
    assert "openaclnn.group_norm_swish" in traced.code
    assert same_bits(traced(images()), Block()(images()))


def test_autocast_leaves_dtypes_as_they_come():
    """A half x goes with float32 parameters; sums are in float32 inside."""
    block, x = Block(), images()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = block.conv(x)
        assert h.dtype is torch.bfloat16
        assert block.norm(h).dtype is torch.bfloat16
        assert ot.leaky_relu(x).dtype is torch.float32
        loss = block.norm(h).float().square().sum()
    loss.backward()
    assert block.norm.weight.grad.dtype is torch.float32
