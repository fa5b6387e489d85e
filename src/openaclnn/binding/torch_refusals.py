# SPDX-License-Identifier: Apache-2.0
"""The torch tensors that cannot be used, and the sentence for each.

torch sees no call of these functions: it neither records gradients nor traces nor dispatches. So a
tensor whose meaning is more than its memory is refused, in one place: here. The binding asks about
tensors that it has a reason to ask about; torch is loaded by then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def _torch() -> Any:
    return sys.modules["torch"]


@dataclass(frozen=True)
class Kind:
    """`refusal` returns what follows "must" for a tensor of this kind, or None for another."""

    name: str
    refusal: Callable[[Any, bool], str | None]  # of a tensor, and whether it is to be written
    array: bool = True  # whether it cannot be an array
    number: bool = False  # whether it cannot be a number, where an attribute is one


def is_plain(kind: type) -> bool:
    """Whether a class of tensors leaves the meaning of operations to torch.Tensor."""
    tensor, disabled = _torch().Tensor, _torch()._C._disabled_torch_function_impl
    function = getattr(kind.__torch_function__, "__func__", kind.__torch_function__)  # type: ignore[attr-defined]
    dispatch = getattr(kind, "__torch_dispatch__", None)
    return function in (tensor.__torch_function__.__func__, disabled) and (
        dispatch is getattr(tensor, "__torch_dispatch__", None)
    )


def _traced(tensor: Any, written: bool) -> str | None:
    outside = "which cannot see these functions: call them outside of it"
    if _torch().jit.is_tracing():
        return f"not be traced by torch.jit.trace, {outside}"
    mode, keys = _torch()._C._get_dispatch_mode, _torch()._C._TorchDispatchModeKey
    if any(mode(key) is not None for key in (keys.PROXY, keys.FUNCTIONAL)):
        return f"not be traced by make_fx or torch.export, {outside}"
    if mode(keys.FAKE) is not None:
        return f"not be used under FakeTensorMode, {outside}"
    return None


def _transformed(tensor: Any, written: bool) -> str | None:
    functorch = _torch()._C._functorch
    if not functorch.is_functorch_wrapped_tensor(tensor):
        return None
    transforms = "vmap" if functorch.is_batchedtensor(tensor) else "grad, jvp or functionalize"
    return (
        f"be a plain tensor, but is one that torch.func wraps for {transforms}: "
        "call this function outside of the transform"
    )


_OF_SUBCLASS = {
    "FakeTensor": "which has no values: pass a real tensor",
    "FunctionalTensor": "which has no values: pass a real tensor",
    "DTensor": "which is distributed: pass x.to_local()",
    "AsyncCollectiveTensor": "which is yet to arrive: pass x.wait()",
    "MaskedTensor": "which hides values: pass x.to_tensor(value)",
    "NestedTensor": "which is not one array: pass x.to_padded_tensor(value)",
    "UninitializedParameter": "which has no shape yet: run its lazy module once",
    "UninitializedBuffer": "which has no shape yet: run its lazy module once",
}


def _subclass(tensor: Any, written: bool) -> str | None:
    if is_plain(type(tensor)):
        return None
    names = [kind.__name__ for kind in type(tensor).__mro__]
    known = next((_OF_SUBCLASS[name] for name in names if name in _OF_SUBCLASS), None)
    why = known or "which redefines operations: pass a plain tensor of its values"
    return f"be a plain tensor, but is of class {names[0]}, {why}"


def _elsewhere(tensor: Any, written: bool) -> str | None:
    if tensor.device.type == "cpu":
        return None
    other = {"meta": "pass a tensor with values", "cuda": "import openaclnn.torch, or pass x.cpu()"}
    here = other.get(tensor.device.type, "pass x.cpu()")
    return f"be in CPU memory, but is on device {tensor.device}: {here}"


def _no_meta(tensor: Any, written: bool) -> str | None:
    return _elsewhere(tensor, written) if tensor.device.type == "meta" else None


def _nested(tensor: Any, written: bool) -> str | None:
    if not tensor.is_nested:
        return None
    return "be one array, but is a nested tensor: pass x.to_padded_tensor(value)"


def _layout(tensor: Any, written: bool) -> str | None:
    if tensor.layout is _torch().strided:
        return None
    return f"be dense, but has layout {tensor.layout}: pass x.to_dense()"


def _quantised(tensor: Any, written: bool) -> str | None:
    if not tensor.is_quantized:
        return None
    return f"hold its values, but is quantised as {tensor.dtype}: pass x.dequantize()"


def _recorded(tensor: Any, written: bool) -> str | None:
    if not (tensor.requires_grad and _torch().is_grad_enabled()):
        return None
    return (
        "not require a gradient, which plans never record, and functions only after import "
        "openaclnn.torch: call a function of openaclnn.torch, or pass x.detach()"
    )


def _recorded_number(tensor: Any, written: bool) -> str | None:
    if _recorded(tensor, written) is None:
        return None
    return "not require a gradient, which is never recorded of a number: pass x.item()"


def _dual(tensor: Any, written: bool) -> str | None:
    if _torch().autograd.forward_ad.unpack_dual(tensor).tangent is None:
        return None
    return (
        "not carry a forward-mode tangent, which these functions do not propagate: "
        "pass torch.autograd.forward_ad.unpack_dual(x).primal"
    )


def _of_inference(tensor: Any, written: bool) -> str | None:
    if not (written and tensor.is_inference()) or _torch().is_inference_mode_enabled():
        return None
    return (
        "not be an inference tensor, which may be written inside torch.inference_mode() only: "
        "pass x.clone()"
    )


def _zero(tensor: Any, written: bool) -> str | None:
    if not tensor._is_zerotensor():
        return None
    return "have storage, but is a zero tensor: pass x.clone()"


def _negated(tensor: Any, written: bool) -> str | None:
    if not tensor.is_neg():
        return None
    return "be its memory, but is a lazy negation: pass x.resolve_neg()"


def _functional(tensor: Any, written: bool) -> str | None:
    if not _torch()._is_functional_tensor(tensor):
        return None
    return "be a plain tensor, but is one that torch functionalises: call this function outside"


def _emptied(tensor: Any, written: bool) -> str | None:
    bytes_ = tensor.untyped_storage().nbytes()
    if tensor.numel() == 0 or bytes_ > 0:
        return None
    return "have memory, but its storage was resized to 0 bytes: pass it while it has values"


_DTYPES = [
    *("float32", "float16", "bfloat16", "float64", "bool", "complex64", "complex128"),
    *("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"),
]


def _dtype(tensor: Any, written: bool) -> str | None:
    if any(tensor.dtype is getattr(_torch(), name, None) for name in _DTYPES):
        return None
    return f"have a dtype of the aclnn API, but got {tensor.dtype}"


def _several(tensor: Any, written: bool) -> str | None:
    return None if tensor.numel() == 1 else f"be one number, but has shape {list(tensor.shape)}"


# The first that refuses speaks; from what forbids further questions to what is only memory.
KINDS = (
    Kind("traced", _traced, number=True),
    Kind("transformed", _transformed, number=True),
    Kind("subclass", _subclass, number=True),
    Kind("functional", _functional, number=True),
    Kind("elsewhere", _elsewhere),
    Kind("meta", _no_meta, array=False, number=True),
    Kind("nested", _nested),
    Kind("layout", _layout),
    Kind("quantised", _quantised),
    Kind("recorded", _recorded),
    Kind("recorded number", _recorded_number, array=False, number=True),
    Kind("dual", _dual, number=True),
    Kind("inference", _of_inference),
    Kind("zero", _zero),
    Kind("negated", _negated),
    Kind("emptied", _emptied),
    Kind("dtype", _dtype),
    Kind("several", _several, array=False, number=True),
)


def refusal(tensor: Any, written: bool) -> str | None:
    """What must hold of a tensor, and does not; None for one that can be used."""
    found = (kind.refusal(tensor, written) for kind in KINDS if kind.array)
    return next((must for must in found if must is not None), None)


def number_refusal(tensor: Any) -> str | None:
    """The same for a tensor in the place of a number."""
    found = (kind.refusal(tensor, False) for kind in KINDS if kind.number)
    return next((must for must in found if must is not None), None)
