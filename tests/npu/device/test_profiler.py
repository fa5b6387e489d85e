# SPDX-License-Identifier: Apache-2.0
"""torch_npu.profiler: three training steps, recorded, exported and read by the wheel's analyser."""

from __future__ import annotations

import csv
import json
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
