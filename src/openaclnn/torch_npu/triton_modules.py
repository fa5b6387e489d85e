# SPDX-License-Identifier: Apache-2.0
"""The modules of triton-ascend that kernels import, for Triton's interpreter.

They are triton.language.extra.cann.extension and .libdevice, and the functions that older versions
have in triton.language. REFUSED and BUFFERS name functions that raise when they are called, so that
a module that imports them loads. Any other name raises AttributeError.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import triton.language as tl

from . import triton_extension as extension

PACKAGE = "triton.language.extra.cann"
# Both names of the module of buffers.
BUFFER_MODULES = (
    "triton.extension.buffer.language",
    "triton.language.extra.extension.buffer.language",
)
BUFFERS = ("alloc", "bind_buffer", "buffer", "subview", "to_buffer", "to_tensor")

FUNCTIONS = (
    "insert_slice", "extract_slice", "get_element", "sort", "flip", "cast", "compile_hint",
    "multibuffer", "sync_block_set", "sync_block_wait", "debug_barrier", "scope", "parallel",
)  # fmt: skip
# They name memories, cores or instructions of the device, or need programs that run side by side.
REFUSED = (
    "copy_from_ub_to_l1", "copy", "fixpipe", "sync_block_all", "sub_vec_id", "sub_vec_num",
    "custom", "custom_semantic", "register_custom_op", "index_put", "gather_out_to_ub",
    "scatter_ub_to_out", "index_select_simd", "_index_select", "SyncEventSlot", "conv1d", "dot",
    "dot_s4",
)  # fmt: skip
ENUMERATIONS = {
    "CORE": ("VECTOR", "CUBE", "CUBE_OR_VECTOR", "CUBE_AND_VECTOR"),
    "MODE": ("SIMD", "SIMT", "MIX"),
    "PIPE": tuple(f"PIPE_{pipe}" for pipe in ("S", "V", "M", "MTE1", "MTE2", "MTE3", "ALL", "FIX")),
    "SYNC_IN_VF": (
        "VV_ALL", "VST_VLD", "VLD_VST", "VST_VST", "VS_ALL", "VST_LD", "VLD_ST", "VST_ST", "SV_ALL",
        "ST_VLD", "LD_VST", "ST_VST",
    ),
    "ascend_address_space": ("UB", "L1", "L0A", "L0B", "L0C"),
    "FixpipeDMAMode": ("NZ2DN", "NZ2ND", "NZ2NZ"),
    "FixpipeDualDstMode": ("NO_DUAL", "COLUMN_SPLIT", "ROW_SPLIT"),
    "FixpipePreQuantMode": ("NO_QUANT", "F322BF16", "F322F16", "S322I8"),
    "FixpipePreReluMode": ("LEAKY_RELU", "NO_RELU", "NORMAL_RELU", "P_RELU"),
}  # fmt: skip


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(*given: Any, **named: Any) -> Any:
        raise NotImplementedError(
            f"{name} of triton-ascend is not supported: Triton's interpreter has no such memory, "
            "core or order of programs; use operations of triton.language"
        )

    return refuse


def _absent(module: ModuleType) -> Callable[[str], Any]:
    def absent(name: str) -> Any:
        raise AttributeError(
            f"{module.__name__}.{name} is not supported: Triton's interpreter lacks it"
        )

    return absent


def _package(name: str) -> ModuleType:
    if name not in sys.modules:
        _add(name, {"__path__": []})
    return sys.modules[name]


def _add(name: str, content: dict[str, Any]) -> None:
    """A module, and the packages around it that do not exist."""
    module = sys.modules[name] = ModuleType(name)
    vars(module).update(content, __getattr__=_absent(module))
    package, _, own = name.rpartition(".")
    setattr(_package(package), own, module)


def register() -> None:
    """Makes the modules importable; a triton-ascend that is installed keeps its own."""
    import importlib.util

    if importlib.util.find_spec(PACKAGE) is not None:
        return
    found: dict[str, Any] = {name: getattr(extension, name) for name in FUNCTIONS}
    found |= {name: _refusing(name) for name in REFUSED}
    maths = {name: extension.function_of(call) for name, call in extension.MATHS.items()}
    found |= {name: maths[name] for name in ("atan2", "isfinited", "finitef")}
    found |= {
        name: enum.Enum(name, {value: value for value in values})
        for name, values in ENUMERATIONS.items()
    }
    maths |= {"flip": extension.flip, "umulhi": tl.math.umulhi}
    _add(f"{PACKAGE}.extension", found)
    _add(f"{PACKAGE}.libdevice", maths)
    for module in BUFFER_MODULES:
        _add(module, {name: _refusing(name) for name in BUFFERS})
    for name in ("insert_slice", "extract_slice", "get_element", "compile_hint", "multibuffer",
                 "parallel"):  # fmt: skip
        if not hasattr(tl, name):
            setattr(tl, name, found[name])
