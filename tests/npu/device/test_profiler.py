# SPDX-License-Identifier: Apache-2.0
"""torch_npu.profiler: three training steps, recorded, exported and read by the wheel's analyser."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest
from tests.trace_format import check_nesting, check_trace

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
        with_stack=True,
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


def test_timeline_is_a_trace_whose_arrows_lead_to_kernels(output):
    events = json.loads((output / "trace_view.json").read_text())
    # A function of Python that enters a step begins before it and ends in it.
    assert check_trace([e for e in events if e.get("cat") != "python_function"]) > 0
    slices = {(e["pid"], e["tid"], e["ts"]): e for e in events if e["ph"] == "X"}

    def ends(category: str, phase: str) -> list[dict]:
        found = [e for e in events if e["ph"] == phase and e["cat"] == category]
        return [slices[e["pid"], e["tid"], e["ts"]] for e in found]

    kernels = ends("async_npu", "f")
    assert len(kernels) == len(rows(output / "kernel_details.csv"))
    assert {"Addmm", "Relu"} <= {e["name"] for e in kernels}
    assert {"aclnnAddmm", "aten::addmm"} & {e["name"] for e in ends("async_npu", "s")}
    queued = ends("async_task_queue", "f")  # with a queue, the way of an operator leads through it
    assert len(queued) == len(ends("async_task_queue", "s"))
    assert (len(queued) >= len(kernels)) == (os.environ.get("TASK_QUEUE_ENABLE") != "0")


def test_memory(output):
    """profile_memory: what operators allocate, and the total after each."""
    operators = rows(output / "operator_memory.csv")
    assert "aten::addmm" in {row["Name"] for row in operators}
    assert all(float(row["Size(KB)"]) > 0 for row in operators)
    totals = [float(row["Total Allocated(MB)"]) for row in rows(output / "memory_record.csv")]
    assert max(totals) > min(totals) >= 0


def test_stacks(output):
    """with_stack: where an operator was called."""
    stacks = {row["Name"]: row["Call Stack"] for row in rows(output / "operator_details.csv")}
    assert "test_profiler.py" in stacks["aten::addmm"]


def test_export_without_a_handler(tmp_path, monkeypatch):
    """The analyser runs few tasks then, and msprof is the last of those that it waits for."""
    from torch_npu import profiler

    monkeypatch.chdir(tmp_path)  # the records go into the working directory
    x = torch.randn(32, 64, device="npu")
    with profiler.profile() as recorded:
        (x @ x.T).relu()
        torch.npu.synchronize()
    path = tmp_path / "trace.json"
    recorded.export_chrome_trace(str(path))
    events = json.loads(path.read_text())
    check_nesting(events)
    assert {"Matmul", "Relu"} <= {e["name"] for e in events}


def test_analyser_found_no_error(output):
    logs = [path.read_text() for path in (output.parent / "logs").glob("*.log")]
    assert logs
    assert "[ERROR]" not in "".join(logs)
