# SPDX-License-Identifier: Apache-2.0
"""A compiled training step does not keep the results of GroupNormSwish: it computes them twice."""

from __future__ import annotations

import operator

import pytest
from tests.torch.replace_support import Residual, images
from tests.torch.torch_support import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

import openaclnn.torch as ot


def compiled(function, fused):
    """Also the graphs of the forward and the backward pass."""
    graphs = []

    def show(module, _):
        graphs.append(module.graph)
        return module

    split = min_cut_rematerialization_partition
    traced = aot_autograd(fw_compiler=show, bw_compiler=show, partition_fn=split)

    def backend(module, inputs):
        if fused:
            ot.fuse_pass(module.graph)
            module.recompile()
        return traced(module, inputs)

    torch._dynamo.reset()
    return torch.compile(function, backend=backend, fullgraph=True), graphs


def ends(function, model):
    model.zero_grad()
    y = function(images())
    y.square().sum().backward()
    return [y.detach(), *(p.grad for p in model.parameters())]


def calls(graph):
    return [n for n in graph.nodes if n.target is torch.ops.openaclnn.group_norm_swish.default]


@pytest.mark.filterwarnings("ignore:Your compiler for AOTAutograd")
@pytest.mark.parametrize("way", ["replaced", "fuse_pass", "in a checkpoint"])
def test_results_are_not_kept(way):
    model = Residual()
    due = ends(model, model)
    if way != "fuse_pass":
        ot.replace(model)
    function = model
    if way == "in a checkpoint":
        function = lambda x: torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False)  # noqa: E731
    function, graphs = compiled(function, way == "fuse_pass")
    for ours, theirs in zip(ends(function, model), due, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    forward, backward = graphs
    assert len(calls(forward)) == len(calls(backward)) == 2
    kept = next(n for n in forward.nodes if n.op == "output").args[0]
    taken = [n for n in kept if getattr(n, "target", None) is operator.getitem]
    assert not [n for n in taken if n.args[0] in calls(forward)]


@pytest.mark.filterwarnings("ignore:Your compiler for AOTAutograd")
def test_no_checkpoint_in_transforms():
    """torch.func.grad refuses checkpoints; without gradients there is nothing to keep."""

    def loss(x):
        return ot.group_norm_swish(x, 2).square().sum()

    torch._dynamo.reset()
    found = torch.compile(torch.func.grad(loss), backend="aot_eager", fullgraph=True)(images())
    torch.testing.assert_close(found, torch.func.grad(loss)(images()))
    with torch.no_grad():
        function, graphs = compiled(loss, False)
        function(images())
    assert [len(calls(g)) for g in graphs] == [1]


def test_fuse_pass_takes_a_graph():
    with pytest.raises(TypeError, match=r"^fuse_pass must be given a torch\.fx\.Graph, but got a "):
        ot.fuse_pass(torch.nn.ReLU())
