# SPDX-License-Identifier: Apache-2.0
"""Errors raise an exception with our sentence, which names the operator, and later operators run.
With torch_npu's queue the exception comes at the next synchronisation.
"""

from __future__ import annotations

import os

import pytest
import torch
import torch.nn.functional as F

QUEUED = os.environ.get("TASK_QUEUE_ENABLE") != "0"


def raised(call) -> str:
    def called():
        call()
        torch.npu.synchronize()

    with pytest.raises(RuntimeError) as caught:
        called()
    # What runs after it is right.
    assert (torch.ones(3, device="npu") * 2).cpu().tolist() == [2, 2, 2]
    return str(caught.value)


@pytest.mark.skipif(
    os.environ.get("TASK_QUEUE_ENABLE") == "2",
    reason="torch_npu runs phase 1 on its queue too, and stops at what is refused there",
)
def test_an_operator_of_ours_refuses_in_phase_1():
    x = torch.ones(3, dtype=torch.int32, device="npu")
    text = raised(lambda: F.hardshrink(x))
    assert "161002" in text
    assert "aclnnHardshrink: self must have dtype FLOAT, FLOAT16 or BFLOAT16" in text
    assert "aclrtGetDevice" not in text  # nothing stale comes with it


def test_a_wrong_shape_names_operator_and_shapes():
    x = torch.ones(2, 3, device="npu")
    text = raised(lambda: torch.matmul(x, x))
    assert "aclnnMatmul: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)" in text


def test_an_index_out_of_range():
    weight, index = torch.ones(4, 2, device="npu"), torch.tensor([1, 9], device="npu")
    assert "aclnnEmbedding: index out of range in self" in raised(
        lambda: F.embedding(index, weight)
    )


def test_packed_gru_which_torch_npu_does_not_know_is_no_garbage():
    layer = torch.nn.GRU(3, 4).npu()
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        torch.ones(3, 2, 3, device="npu"), torch.tensor([3, 1])
    )
    with pytest.raises(RuntimeError, match="invalid for input of size"):
        torch.nn.utils.rnn.pad_packed_sequence(layer(packed)[0])


def test_a_missing_aclnn_operator_is_named():
    text = raised(lambda: torch.stft(torch.ones(64, device="npu"), 16, return_complex=True))
    assert "aclStft" in text


def test_errors_on_a_side_stream_stay_there():
    side = torch.npu.Stream()
    x = torch.ones(2, 3, device="npu")

    def multiply():
        with torch.npu.stream(side):
            torch.matmul(x, x)

    if QUEUED:
        multiply()
        torch.npu.current_stream().synchronize()
        multiply = side.synchronize
    with pytest.raises(RuntimeError, match="aclnnMatmul"):
        multiply()
