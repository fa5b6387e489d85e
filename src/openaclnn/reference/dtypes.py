# SPDX-License-Identifier: Apache-2.0
"""Dtypes and arrays as people have them: np.float16, torch.bfloat16, "bf16", raw bits of a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..rows.dtypes import DTYPES
from .evaluation import dtype_name, numpy_dtype

# What a name may be, in any case, after a prefix such as "torch." or "ACL_".
_BY_SPELLING = {
    word: dtype.name
    for dtype in DTYPES.values()
    for word in (dtype.name.lower(), dtype.python, dtype.short, *dtype.spellings)
}
KNOWN = "np.float16, torch.bfloat16 or a name: fp16, bf16, fp32, fp64"


def dtype_of(given: Any, who: str = "dtype") -> str:
    """FLOAT, FLOAT16, BFLOAT16 or DOUBLE, from any spelling of a dtype."""
    word = given if isinstance(given, str) else _word(given)
    stem = word.lower().removeprefix("acl_").rpartition(".")[2].lstrip("<=|")
    if stem not in _BY_SPELLING:
        raise ValueError(f"{who} must be a float dtype ({KNOWN}), but got {given!r}")
    dtype = _BY_SPELLING[stem]
    if module := missing_module(dtype):
        raise ValueError(f"{who} {dtype} needs {module}: pip install {module}")
    return dtype


def missing_module(dtype: str) -> str:
    """The module without which NumPy has no such dtype; empty where it has it."""
    try:
        numpy_dtype(dtype)
    except ModuleNotFoundError as error:
        return str(error.name)
    return ""


def _word(given: Any) -> str:
    """The name of a dtype that is not a string; torch's are known by their text alone."""
    if type(given).__module__.partition(".")[0] == "torch":
        return str(given)
    try:
        return repr(given) if given is None else np.dtype(given).name
    except TypeError:
        return repr(given)


def array_of(given: Any, who: str, dtype: str | None = None) -> npt.NDArray[Any]:
    """A NumPy array of a float dtype. What holds raw bits of 16, 32 or 64 is read as `dtype`:
    NumPy saves bfloat16 as two bytes without a meaning."""
    if given is None:
        raise TypeError(f"{who} must be an array or a tensor, but got None")
    if isinstance(given, str):
        raise TypeError(
            f"{who} must be an array or a tensor, but is {given!r}; numpy.load reads files"
        )
    array = plain(given)
    if array.dtype.kind in "Vui" and array.dtype.name != "bfloat16":
        return typed(array, who, dtype)
    try:
        dtype_name(array.dtype)
    except KeyError:
        raise ValueError(
            f"{who} must have a float dtype ({KNOWN}), but has {array.dtype}"
        ) from None
    return array


def typed(array: npt.NDArray[Any], who: str, dtype: str | None) -> npt.NDArray[Any]:
    """Raw bits as `dtype`."""
    if dtype is None:
        raise ValueError(
            f"{who} must have a float dtype, but has {array.dtype}; raw bits need a dtype, "
            "such as bf16"
        )
    kind = numpy_dtype(dtype)
    if array.dtype.itemsize != kind.itemsize:
        raise ValueError(
            f"{who} must hold elements of {kind.itemsize} bytes to be read as {dtype}, but "
            f"has {array.dtype}"
        )
    return np.ascontiguousarray(array).view(kind).reshape(array.shape)


def plain(given: Any) -> npt.NDArray[Any]:
    """As NumPy has it, in native byte order; a torch tensor may be on any device, and bfloat16
    passes as bits."""
    if type(given).__module__.partition(".")[0] == "torch" and hasattr(given, "detach"):
        here = given.detach().cpu()
        if str(here.dtype) == "torch.bfloat16":
            import torch

            bits: npt.NDArray[Any] = here.contiguous().view(torch.int16).numpy()
            return bits.view(numpy_dtype(dtype_of("bf16", "the tensor's dtype")))
        found: npt.NDArray[Any] = here.numpy()
        return found
    array = np.asarray(given)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def as_dtype(array: npt.NDArray[Any], dtype: str, who: str) -> npt.NDArray[Any]:
    """The same values in another dtype, which must hold each of them: a kernel's results of 16
    bits often come in an array of float32."""
    with np.errstate(all="ignore"):
        result = array.astype(numpy_dtype(dtype))
        back = result.astype(array.dtype)
    same = (back == array) | (np.isnan(back) & np.isnan(array))
    if not same.all():
        at = tuple(int(i) for i in np.argwhere(~same)[0])
        raise ValueError(
            f"{who} must hold values of {dtype}, but has {float(array[at])!r} at {list(at)}"
        )
    return result
