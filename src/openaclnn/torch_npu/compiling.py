# SPDX-License-Identifier: Apache-2.0
"""`torch.compile` on device npu: Inductor's graphs run eagerly, after AOTAutograd.

torch_npu generates code for Inductor with triton-ascend and the compilers of CANN. Here the graph
that AOTAutograd makes calls the same operators of the device as without `torch.compile`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any

from . import metas, notices

NOTICE = (
    "torch.compile: graphs on device npu run operator by operator after AOTAutograd, because "
    "openaclnn has no code generator for them (OPENACLNN_NPU_NOTICE=0 silences this)"
)

TORCHAIR = (
    "torch.compile: the backend npu (torchair) builds graphs of CANN's graph engine, which "
    "openaclnn does not have; torch.compile works without `backend`, and with npugraph_ex and "
    "npugraphs"
)

OWN_METAS = "torch_npu.op_plugin.meta._meta_registrations"


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=3)  # at the caller of notices.once


def _is_on_npu(value: Any) -> bool:
    import torch

    if isinstance(value, (tuple, list)):
        return any(map(_is_on_npu, value))
    if isinstance(value, torch.fx.GraphModule):
        return any(map(_is_on_npu, _values(value)))
    return isinstance(value, torch.Tensor) and value.device.type == "npu"


def _values(graph: Any) -> Iterable[Any]:
    """Everything that a graph holds or computes, as far as tracing noted it."""
    yield from graph.parameters()
    yield from graph.buffers()
    yield from graph.children()
    for node in graph.graph.nodes:
        yield node.meta.get("example_value", node.meta.get("val"))


def _falling_back(compile_fx: Callable[..., Any]) -> Callable[..., Any]:
    def compile_on_npu(model: Any, inputs: Sequence[Any], *rest: Any, **named: Any) -> Any:
        if not (_is_on_npu(list(inputs)) or _is_on_npu(model)):
            return compile_fx(model, inputs, *rest, **named)
        from torch._dynamo.backends.debugging import aot_eager
        from torch._inductor.virtualized import V

        if V.aot_compilation:
            raise NotImplementedError(
                "AOTInductor cannot compile for device npu here: openaclnn has no code generator; "
                "use torch.compile, or compile for device cpu"
            )
        notices.once(NOTICE, _warn)
        return aot_eager(model, list(inputs))

    return compile_on_npu


def _without_torchair(dynamo: Any) -> None:
    def backend(name: str, config: Any = None) -> Any:
        raise NotImplementedError(TORCHAIR)

    def attribute(self: Any, name: str) -> Any:
        raise AttributeError(f"torchair.{name}: {TORCHAIR}")

    dynamo._get_global_npu_backend = backend
    dynamo._LazyTorchair.__getattr__ = attribute


def _without_generators(dynamo: Any) -> None:
    """torch_npu's generators of code need triton-ascend, torch_mlir or other compilers."""
    dynamo.disable_register_inductor_npu()
    dynamo.has_triton = lambda *, include_cpu=False: False
    if hasattr(dynamo, "_NpuBackendScope"):
        return
    patch = dynamo.patch_inductor_wrapper

    def patch_all_but_init() -> None:  # 2.7 to 2.9 import the generators when a wrapper is made
        import torch

        wrapper: Any = torch._TorchCompileInductorWrapper
        init = wrapper.__init__
        patch()
        wrapper.__init__ = init

    dynamo.patch_inductor_wrapper = patch_all_but_init


_imported: set[str] = set()


def _register_metas_after(module: Any) -> None:
    """Only Dynamo needs them, and torch_npu's own must come first, which follow Dynamo until 2.9
    and precede it since."""
    _imported.add(module.__name__)
    if {"torch._dynamo.trace_rules", OWN_METAS} <= _imported:
        metas.register()


def change(module: ModuleType) -> None:
    found: Any = module
    if module.__name__ == "torch._inductor.compile_fx":
        found.compile_fx = _falling_back(found.compile_fx)
    elif module.__name__ == "torch_npu.dynamo":
        _without_torchair(found)
    elif module.__name__ == "torch._dynamo.trace_rules":
        for name in ("triton", "openaclnn.torch_npu.triton_kernels"):
            found.add(name)  # the interpreter runs between graphs; Dynamo cannot trace it
        _register_metas_after(found)
    elif module.__name__ == OWN_METAS:
        _register_metas_after(found)
    else:
        _without_generators(found)
