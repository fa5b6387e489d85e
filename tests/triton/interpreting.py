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
import triton.language as tl  # noqa: F401  (the interpreter looks for it beside each function)
from triton.runtime import interpreter

from openaclnn.torch_npu.triton_kernels import round_to_nearest

if not hasattr(interpreter._interpreter, "fma_fp32"):
    pytest.skip("this interpreter rounds fma twice; triton 3.9 does not", allow_module_level=True)


round_to_nearest(interpreter)


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
