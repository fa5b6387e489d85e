# SPDX-License-Identifier: Apache-2.0
"""Triton's interpreter, in which kernels run on CPU tensors.

    TRITON_INTERPRET=1 pytest tests/triton

The variable counts when triton is imported, and no kernel is compiled then.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("triton", reason="triton is not installed")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("TRITON_INTERPRET is not 1", allow_module_level=True)

import torch
import triton
import triton.language as tl
from triton.runtime import interpreter

if not hasattr(interpreter._interpreter, "fma_fp32"):
    pytest.skip("this interpreter rounds fma twice; triton 3.9 does not", allow_module_level=True)


def _rounding_to_nearest(convert):
    """Triton 3.9 cuts fp32 to bf16, and makes some subnormal numbers 0."""

    def converted(input, input_dtype, output_dtype, rounding_mode):
        if (input_dtype, output_dtype) == (tl.bfloat16, tl.float32):
            return (input.view(np.uint16).astype(np.uint32) << 16).reshape(input.shape)
        if (input_dtype, output_dtype) == (tl.float32, tl.bfloat16):
            word = np.ascontiguousarray(input).view(np.uint32)
            nearest = (word + 0x7FFF + (word >> 16 & 1)) >> 16
            is_nan = (word & 0x7FFFFFFF) > 0x7F800000
            return np.where(is_nan, 0x7FC0, nearest).astype(np.uint16).reshape(input.shape)
        return convert(input, input_dtype, output_dtype, rounding_mode)

    return converted


if interpreter._convert_float.__name__ != "converted":
    interpreter._convert_float = _rounding_to_nearest(interpreter._convert_float)


@triton.jit
def no_wait(counter, count):
    """In place of one that would wait for programs that come later."""


def to_torch(x: np.ndarray) -> torch.Tensor:
    """The same memory, unless torch does not know its strides, or warns that it is read-only."""
    if any(s < 0 for s in x.strides) or not x.flags.writeable:
        x = x.copy()
    if x.dtype.name == "bfloat16":
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)
