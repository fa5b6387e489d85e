# SPDX-License-Identifier: Apache-2.0
"""torch.profiler: kernels of the device among the host's operators."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
import torch_npu
from tests.npu.device.marks import VERSION
from tests.trace_format import check_trace

STEPS = 3
# The class that gives msPTI's records to torch.profiler.
_library = Path(torch_npu.__file__).with_name("lib") / "libtorch_npu.so"
kernels_in_torch_profiler = pytest.mark.skipif(
    b"MsptiAutoRegister" not in _library.read_bytes(),
    reason=f"torch_npu {VERSION} gives torch.profiler no kernels; torch_npu.profiler has them",
)


@pytest.fixture(scope="module")
def recorded():
    from torch.profiler import ProfilerActivity, profile

    x = torch.randn(64, 64, device="npu")
    torch.npu.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as found:
        for _ in range(STEPS):
            (x @ x).relu()
        torch.npu.synchronize()
    return found


@kernels_in_torch_profiler
def test_averages_have_the_time_of_kernels(recorded):
    on_device = {
        row.key: (row.count, row.self_device_time_total)
        for row in recorded.key_averages()
        if row.self_device_time_total > 0
    }
    assert {key: count for key, (count, _) in on_device.items()} == {
        "aclnnMatmul": STEPS,
        "aclnnRelu": STEPS,
    }


@kernels_in_torch_profiler
def test_chrome_trace_has_kernels_on_their_stream(recorded, tmp_path):
    recorded.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    assert [k["name"] for k in kernels] == ["aclnnMatmul", "aclnnRelu"] * STEPS
    assert len({(k["pid"], k["tid"]) for k in kernels}) == 1
    ends = [k["ts"] + k["dur"] for k in kernels]
    assert all(end <= k["ts"] for end, k in zip(ends, kernels[1:], strict=False))
    # torch_npu begins an arrow where the caller is when the kernel starts: elsewhere, with a queue.
    queued = os.environ.get("TASK_QUEUE_ENABLE") != "0"
    arrows = [e["ts"] for e in events if e.get("cat") == "ac2g" and e["ph"] == "f"]
    assert arrows == ([] if queued else [k["ts"] for k in kernels])
    assert check_trace(events, rounding=2) == len(arrows)


def test_schedule_and_stacks(tmp_path):
    from torch.profiler import ProfilerActivity, profile, schedule

    ready = []
    x = torch.randn(64, 64, device="npu")
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1],
        schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=ready.append,
        with_stack=True,
        experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True),
    ) as found:
        for _ in range(5):
            (x @ x).relu()
            torch.npu.synchronize()
            found.step()
    assert ready == [found]
    averages = found.key_averages(group_by_stack_n=5)  # a row for each stack
    assert sum(row.count for row in averages if row.key == "aclnnMatmul") >= 2
    stacks = [row.stack for row in averages if row.key == "aten::matmul"]
    assert "test_torch_profiler.py" in str(stacks)
