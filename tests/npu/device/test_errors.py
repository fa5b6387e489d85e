# SPDX-License-Identifier: Apache-2.0
"""Errors raise an exception with our sentence, which names the operator, and later operators run.
With torch_npu's queue the exception comes at the next synchronisation.
"""

from __future__ import annotations

import os
import re

import pytest
import torch
import torch.nn.functional as F
import torch_npu

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


def test_an_operator_of_ours_refuses_in_phase_1():
    """Later operators run in every mode of the queue, also in mode 2, which runs phase 1 too."""
    x = torch.ones(3, dtype=torch.int32, device="npu")
    text = raised(lambda: F.hardshrink(x))
    assert "161002" in text or os.environ.get("TASK_QUEUE_ENABLE") == "2"
    assert "aclnnHardshrink: self must have dtype FLOAT, FLOAT16" in text
    assert "aclrtGetDevice" not in text  # nothing stale comes with it


def test_a_wrong_shape_names_operator_and_shapes():
    x = torch.ones(2, 3, device="npu")
    text = raised(lambda: torch.matmul(x, x))
    # Phase 1 has the sentence of the form without data, phase 2 that of the computation.
    assert re.search(r"aclnnMatmul: .*(\(2x3 and 2x3\)|got \[2, 3\] X \[2, 3\])", text)


WRONG = {
    "InplaceAdd": lambda x: x.add_(torch.ones(4, device="npu")),
    "Cat": lambda x: torch.cat([x, torch.ones(4, 3, device="npu")], dim=1),
    "Matmul": lambda x: torch.matmul(x, x),
    "Gather": lambda x: torch.gather(x, 0, torch.ones(4, 5, dtype=torch.long, device="npu")),
}


@pytest.mark.skipif(
    os.environ.get("TASK_QUEUE_ENABLE") == "2",
    reason="torch_npu runs phase 1 on its queue too; there phase 2 finds what is wrong",
)
@pytest.mark.parametrize("name", WRONG)
def test_phase_1_finds_shapes_that_do_not_fit(name):
    """Also of shapes that fitted along another dim before; and no stream has failed."""
    x = torch.ones(2, 3, device="npu")
    assert torch.cat([x, torch.ones(4, 3, device="npu")], dim=0).sum().item() == 18
    for _ in range(2):
        with pytest.raises(RuntimeError, match="161002") as caught:
            WRONG[name](x)
        torch.npu.synchronize()
        assert f"aclnn{name}: " in str(caught.value)


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
    x = torch.ones(2, 64, dtype=torch.float16, device="npu")
    assert "aclnnDynamicBlockQuant" in raised(lambda: torch_npu.npu_dynamic_block_quant(x))


def test_errors_on_a_side_stream_stay_there():
    side = torch.npu.Stream()
    weight, index = torch.ones(4, 2, device="npu"), torch.tensor([1, 9], device="npu")

    def look_up():
        with torch.npu.stream(side):
            F.embedding(index, weight)

    if QUEUED:
        look_up()
        torch.npu.current_stream().synchronize()
        look_up = side.synchronize
    with pytest.raises(RuntimeError, match="aclnnEmbedding"):
        look_up()
