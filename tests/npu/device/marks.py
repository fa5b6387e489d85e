# SPDX-License-Identifier: Apache-2.0
"""What some versions of torch_npu cannot do, as marks of tests."""

from __future__ import annotations

import pytest
import torch_npu

NUMBERS = tuple(int(part) for part in torch_npu.__version__.split(".")[:2])
VERSION = "{}.{}".format(*NUMBERS)

# The allocator then stops every later capture and torch.npu.empty_cache with "captures_underway".
after_failures = pytest.mark.skipif(
    NUMBERS <= (2, 12),
    reason=f"torch_npu {VERSION} captures nothing more in a process after a capture that failed",
)

# transformers 5 packs the heads of a group as rows of q, and leaves the mask one row for all.
mask_of_one_row = pytest.mark.skipif(
    NUMBERS < (2, 10),
    reason=f"torch_npu {VERSION} sends a mask of one row, which aclnnFlashAttentionScore refuses",
)
