# SPDX-License-Identifier: Apache-2.0
"""Triton's interpreter, in which kernels run on CPU tensors. A process imports this module first:
the variable counts when triton is imported."""

from __future__ import annotations

import os
import sys

assert "triton" not in sys.modules
os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import triton.language as tl
from triton.runtime import interpreter


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


interpreter._convert_float = _rounding_to_nearest(interpreter._convert_float)
