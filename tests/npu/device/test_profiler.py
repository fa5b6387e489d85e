# SPDX-License-Identifier: Apache-2.0
"""torch_npu.profiler: three training steps, recorded, exported and read by the wheel's analyser;
torch.profiler: kernels of the device among the host's operators.
"""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
torch_npu = pytest.importorskip("torch_npu")

STEPS = 3


@pytest.fixture(scope="module")
def output(tmp_path_factory) -> Path:
    from torch_npu import profiler

    folder = tmp_path_factory.mktemp("profile")
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()).npu()
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    x = torch.randn(32, 64, device="npu")
    level = profiler._ExperimentalConfig(profiler_level=profiler.ProfilerLevel.Level1)
    with profiler.profile(
        schedule=profiler.schedule(wait=0, warmup=1, active=STEPS, repeat=1),
        on_trace_ready=profiler.tensorboard_trace_handler(str(folder)),
        record_shapes=True,
        profile_memory=True,
        experimental_config=level,
    ) as recorded:
        for _ in range(STEPS + 1):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            torch.npu.synchronize()  # work still queued would count for the next step
            recorded.step()
    (written,) = folder.glob("*/ASCEND_PROFILER_OUTPUT")
    return written


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_kernels_belong_to_steps_and_are_in_order(output):
    kernels = rows(output / "kernel_details.csv")
    assert {row["Step Id"] for row in kernels} == {"1", "2", "3"}
    addmm = [row for row in kernels if row["Type"] == "Addmm"]
    assert len(addmm) == STEPS
    starts = [float(row["Start Time(us)"]) for row in kernels]
    assert starts == sorted(starts)


def test_times_add_up(output):
    kernels = rows(output / "kernel_details.csv")
    total = sum(float(row["Duration(us)"]) for row in kernels)
    steps = rows(output / "step_trace_time.csv")
    assert sum(float(row["Computing"]) for row in steps) == pytest.approx(total, rel=0.01)
    operators = rows(output / "operator_details.csv")
    own = sum(float(row["Device Self Duration(us)"]) for row in operators)
    assert own == pytest.approx(total, rel=0.01)


def test_timeline_joins_operators_and_kernels(output):
    events = json.loads((output / "trace_view.json").read_text())
    slices = {(e["pid"], e["tid"], e["ts"]): e for e in events if e["ph"] == "X"}
    ends = [e for e in events if e["ph"] == "f" and e["cat"] == "async_npu"]
    assert len(ends) == len(rows(output / "kernel_details.csv"))
    assert all((e["pid"], e["tid"], e["ts"]) in slices for e in ends)


def test_analyser_found_no_error(output):
    logs = [path.read_text() for path in (output.parent / "logs").glob("*.log")]
    assert logs
    assert "[ERROR]" not in "".join(logs)


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


def test_chrome_trace_has_kernels_on_their_stream(recorded, tmp_path):
    recorded.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    assert [k["name"] for k in kernels] == ["aclnnMatmul", "aclnnRelu"] * STEPS
    assert len({(k["pid"], k["tid"]) for k in kernels}) == 1
    ends = [k["ts"] + k["dur"] for k in kernels]
    assert all(end <= k["ts"] for end, k in zip(ends, kernels[1:], strict=False))
    if os.environ.get("TASK_QUEUE_ENABLE") == "0":  # else another thread submits them
        arrows = [e["ts"] for e in events if e.get("cat") == "ac2g" and e["ph"] == "f"]
        assert arrows == [k["ts"] for k in kernels]
