# SPDX-License-Identifier: Apache-2.0
"""What some versions of torch_npu cannot do, as marks of tests."""

from __future__ import annotations

from collections.abc import Iterable

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


def not_on_2_8(what: str) -> pytest.MarkDecorator:
    """2.8.0.post2 is older than 2.7.1.post4, so it says less about 2.8 than about itself."""
    return pytest.mark.skipif(
        torch_npu.__version__ == "2.8.0.post2", reason=f"torch_npu 2.8.0.post2 {what}"
    )


def marked(names: Iterable[str], **marks: pytest.MarkDecorator) -> list[object]:
    """Parameters, some with a mark."""
    return [pytest.param(name, marks=marks.get(name, ())) for name in names]
