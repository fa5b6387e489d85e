# SPDX-License-Identifier: Apache-2.0
"""GroupNorm and SiLU in the graphs of torch.compile and torch.export."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files
from torch.fx import Graph, Node
from torch.nn import functional
from torch.utils.checkpoint import CheckpointPolicy

from ..settings import config
from .dtypes import NAMES
from .functions import group_norm_swish
from .fused_call import DEVICES

aten = torch.ops.aten
GROUP_NORM = {functional.group_norm, torch.group_norm, aten.group_norm.default}
SILU = {functional.silu, torch._C._nn.silu, aten.silu.default, aten.silu_.default}
SIGMOID = {torch.sigmoid, functional.sigmoid, torch.special.expit, aten.sigmoid.default}
TIMES = {operator.mul, operator.imul, torch.mul, torch.multiply, aten.mul.Tensor}


class FusePass(CustomGraphPass):
    """Each group norm that only a SiLU uses becomes one call with it, in the graph itself.

        torch.compile(model, options={"pre_grad_custom_pass": openaclnn.torch.fuse_pass})

    The graphs are those before autograd: what Dynamo gives a backend, and torch.export.export.
    """

    def __call__(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise TypeError(
                f"fuse_pass must be given a torch.fx.Graph, but got a {type(graph).__name__}; "
                'torch.compile(model, options={"pre_grad_custom_pass": ot.fuse_pass}) applies it'
            )
        pairs = [(node, norm) for node in graph.nodes if (norm := _norm_before(node)) is not None]
        for node, norm in pairs:
            with graph.inserting_before(norm):
                made = graph.call_function(group_norm_swish, _arguments(norm))
            # Not kept for the next layer, as `group_norm_swish` in a compiled function.
            made.meta = node.meta | {"recompute": CheckpointPolicy.PREFER_RECOMPUTE}
            node.replace_all_uses_with(made)
            for old in (node, *(u for u in list(norm.users) if u is not node), norm):
                graph.erase_node(old)
        graph.lint()

    def uuid(self) -> bytes:
        """What compiled graphs in torch's cache depend on."""
        found: bytes = get_hash_for_files((__file__,), str(config()["version"]))
        return found


fuse_pass = FusePass()


def _is_call(node: Any, functions: set[Any]) -> bool:
    return isinstance(node, Node) and node.op == "call_function" and node.target in functions


def _norm_before(node: Node) -> Node | None:
    """The group norm of which this node makes the SiLU and which nothing else uses."""
    norm: Any = None
    users = 1
    if _is_call(node, SILU):
        norm = node.args[0] if node.args else None
    elif _is_call(node, TIMES) and len(node.args) == 2:
        for x, gate in (node.args, node.args[::-1]):
            is_method = isinstance(gate, Node) and (gate.op, gate.target) == (
                "call_method",
                "sigmoid",
            )
            if (is_method or _is_call(gate, SIGMOID)) and gate.args == (x,):
                norm, users = x, 2
                if len(gate.users) != 1:
                    return None
    if not _is_call(norm, GROUP_NORM) or len(norm.users) != users:
        return None
    return norm if _fits(norm) else None


def _arguments(norm: Node) -> tuple[Any, Any, Any, Any, Any]:
    names = ("input", "num_groups", "weight", "bias", "eps")
    given = {"weight": None, "bias": None, "eps": 1e-5} | dict(zip(names, norm.args, strict=False))
    given |= norm.kwargs
    x, groups, weight, bias, eps = (given[name] for name in names)
    return x, groups, weight, bias, eps


def _fits(norm: Node) -> bool:
    """Whether openaclnn computes it, as far as the graph knows the tensors."""
    x, groups, *_ = _arguments(norm)
    value = x.meta.get("example_value", x.meta.get("val")) if isinstance(x, Node) else None
    if not isinstance(value, torch.Tensor) or not isinstance(groups, int):
        return False
    if value.dtype not in NAMES or value.dtype == torch.float64:
        return False
    if value.device.type not in DEVICES:
        return False
    try:
        like = torch.empty(1, value.shape[1], device="meta")
        torch.ops.openaclnn.group_norm_swish(like, like[0], like[0], groups)
    except ValueError:
        return False
    return True
