# SPDX-License-Identifier: Apache-2.0
"""What some versions of torch_npu cannot do, as marks of tests."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch_npu

NUMBERS = tuple(int(part) for part in torch_npu.__version__.split(".")[:2])
VERSION = "{}.{}".format(*NUMBERS)

# The allocator then stops every later capture and torch.npu.empty_cache with "captures_underway".
after_failures = pytest.mark.skipif(
    NUMBERS <= (2, 10),
    reason=f"torch_npu {VERSION} captures nothing more in a process after a capture that failed",
)

# transformers 5 packs the heads of a group as rows of q, and leaves the mask one row for all.
mask_of_one_row = pytest.mark.skipif(
    NUMBERS < (2, 10),
    reason=f"torch_npu {VERSION} sends a mask of one row, which aclnnFlashAttentionScore refuses",
)

# The class that gives msPTI's records to torch.profiler.
_library = Path(torch_npu.__file__).with_name("lib") / "libtorch_npu.so"
kernels_in_torch_profiler = pytest.mark.skipif(
    b"MsptiAutoRegister" not in _library.read_bytes(),
    reason=f"torch_npu {VERSION} gives torch.profiler no kernels; torch_npu.profiler has them",
)
