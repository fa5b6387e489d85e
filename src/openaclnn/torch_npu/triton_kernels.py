# SPDX-License-Identifier: Apache-2.0
"""Triton kernels on tensors of device npu: in Triton's interpreter, on the same memory.

The memory of the device is that of the host, so an address is all that the interpreter needs. A
launch waits for the stream before it, and has run when it returns. In check mode, which keeps the
host from that memory, the interpreter copies the tensors there and back.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from . import notices

NOTICE = (
    "openaclnn: Triton kernels on device npu run in Triton's interpreter, which is slow "
    "(OPENACLNN_NPU_NOTICE=0 silences this)"
)


def _print(text: str) -> None:
    print(text, file=sys.stderr)


def _tensors(value: Any) -> list[Any]:
    """The tensors of an argument: itself, those of a tuple, that of a descriptor or a wrapper."""
    if isinstance(value, (tuple, list)):
        return [tensor for part in value for tensor in _tensors(part)]
    base = getattr(value, "base", None)
    if hasattr(base, "data_ptr"):
        return _tensors(base)
    return [value] if hasattr(value, "data_ptr") else []


def _on_npu(values: Sequence[Any]) -> list[Any]:
    return [tensor for tensor in _tensors(values) if tensor.device.type == "npu"]


def _is_checked() -> bool:
    """Whether check mode keeps the host from the memory of the device."""
    return os.environ.get("OPENACLNN_CHECK", "0") not in ("", "0")


def _use_the_same_memory(executor: Any) -> None:
    to_host, to_device = executor._init_args_hst, executor._restore_args_dev

    def init(self: Any, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
        import torch

        if not (found := _on_npu([*given, *named.values()])):
            return to_host(self, given, named)
        notices.once(NOTICE, _print)
        if torch.npu.is_current_stream_capturing():
            raise NotImplementedError(
                f"the Triton kernel {self.fn.__name__} cannot be captured: the interpreter runs it "
                "at once; launch it outside of the graph"
            )
        if _is_checked():
            return to_host(self, given, named)
        for device in {tensor.device for tensor in found}:
            torch.npu.current_stream(device).synchronize()
        return given, named

    def restore(self: Any, given: Any, on_host: Any, named: Any, named_on_host: Any) -> None:
        if on_host is not given:
            to_device(self, given, on_host, named, named_on_host)

    executor._init_args_hst, executor._restore_args_dev = init, restore


def _launch_outside_of_dynamo(executor: Any) -> None:
    """Dynamo would compile functions that a launch calls, with Inductor for the CPU: 4 s."""
    launch = executor.__call__

    @functools.cache
    def untraced() -> Callable[..., Any]:
        import torch

        run: Callable[..., Any] = torch.compiler.disable(launch)
        return run

    def call(self: Any, *given: Any, **named: Any) -> Any:
        run = untraced() if "torch._dynamo" in sys.modules else launch
        return run(self, *given, **named)

    executor.__call__ = call


def _triton_key_for_torch_npu() -> None:
    """torch_npu 2.12 wants it where Triton had it until 3.5, even to compile for the CPU."""
    from triton.compiler import compiler
    from triton.runtime import cache

    if not hasattr(compiler, "triton_key"):
        compiler.triton_key = cache.triton_key


def _index_with_one_element(interpreter: Any) -> None:
    """Bounds of loops: Triton 3.3 to 3.6 call int() on [n], which NumPy 2.4 refuses."""
    patch = interpreter._patch_lang_tensor

    def patch_with_index(tensor: Any, *scope: Any) -> None:
        patch(tensor, *scope)  # notes in scope what tensor had before, and restores it
        tensor.__index__ = lambda self: int(self.handle.data.item())

    interpreter._patch_lang_tensor = patch_with_index


def round_to_nearest(interpreter: Any) -> None:
    """Triton 3.9 cuts fp32 to bf16 and makes some subnormal numbers 0."""
    import numpy as np
    import triton.language as tl

    convert = interpreter._convert_float

    def rounding(values: Any, given: Any, wanted: Any, mode: Any) -> Any:
        if (given, wanted) == (tl.bfloat16, tl.float32):
            return (values.view(np.uint16).astype(np.uint32) << 16).reshape(values.shape)
        if (given, wanted) == (tl.float32, tl.bfloat16):
            word = np.ascontiguousarray(values).view(np.uint32)
            nearest = (word + 0x7FFF + (word >> 16 & 1)) >> 16
            is_nan = (word & 0x7FFFFFFF) > 0x7F800000
            return np.where(is_nan, 0x7FC0, nearest).astype(np.uint16).reshape(values.shape)
        return convert(values, given, wanted, mode)

    if convert.__name__ != "rounding":
        interpreter._convert_float = rounding


class _Properties:
    """What kernels ask of the driver to choose a grid."""

    @staticmethod
    def get_device_properties(device: int) -> dict[str, int]:
        import torch

        found = torch.npu.get_device_properties(device)
        return {
            "max_shared_mem": 1,
            "num_aicore": found.cube_core_num,
            "num_vectorcore": found.vector_core_num,
        }


def _first(kernel_call: Callable[[], Any], *, quantiles: Sequence[float], **_: Any) -> list[float]:
    """In place of a measurement, which says nothing about a device: autotuning takes the first."""
    return [0.0] * len(quantiles)


def _driver() -> type[Any]:
    from triton.backends.compiler import GPUTarget
    from triton.backends.driver import DriverBase

    class NpuDriver(DriverBase):  # type: ignore[misc]
        utils = _Properties()

        def __init__(self) -> None:
            import torch

            self.get_current_device = torch.npu.current_device
            self.set_current_device = torch.npu.set_device

        @classmethod
        def is_active(cls) -> bool:
            return "torch_npu" in sys.modules

        def map_python_to_cpp_type(self, ty: str) -> str:
            raise NotImplementedError("Triton kernels on device npu are interpreted, not compiled")

        def get_current_target(self) -> Any:
            import torch

            return GPUTarget("npu", torch.npu.get_device_name(), 0)

        def get_current_stream(self, device: int) -> int:
            import torch

            return int(torch.npu.current_stream(device).npu_stream)

        def get_active_torch_device(self) -> Any:
            import torch

            return torch.device("npu", torch.npu.current_device())

        def get_device_interface(self) -> Any:
            import torch

            return torch.npu

        def get_benchmarker(self) -> Callable[..., Any]:
            return _first

        def get_empty_cache_for_benchmark(self) -> Any:
            import torch

            return torch.empty(1, dtype=torch.int, device="npu")

        def clear_cache(self, cache: Any) -> None:
            cache.zero_()

    return NpuDriver


class _NoCompiler:
    @staticmethod
    def supports_target(target: Any) -> bool:
        return False


def change(triton: ModuleType) -> None:
    from triton.backends import Backend, backends
    from triton.runtime import interpreter

    from . import triton_modules

    backends.setdefault("ascend", Backend(_NoCompiler, _driver()))
    _use_the_same_memory(interpreter.GridExecutor)
    _launch_outside_of_dynamo(interpreter.GridExecutor)
    round_to_nearest(interpreter)
    _index_with_one_element(interpreter)
    _triton_key_for_torch_npu()
    triton_modules.register()
