# SPDX-License-Identifier: Apache-2.0
"""Whole programs with torch_npu: what they say, what a trace shows, and how they end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.npu.npu_support import environment


def openaclnn(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "openaclnn", *words],
        env=environment(OPENACLNN_NPU_NOTICE="0", **variables), capture_output=True, text=True,
    )  # fmt: skip


def program(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return openaclnn("npu", "--", sys.executable, "-c", code, **variables)


TRACED = """
import torch
x = torch.ones(2, 3, device="npu")
y = torch.nn.functional.leaky_relu(x @ x.t())
print(y.sum().item(), (y[y > 0]).numel())
"""


@pytest.mark.parametrize("queue", ["0", "1"])
def test_a_trace_shows_the_calls_of_torch_npu(tmp_path: Path, queue: str):
    file = tmp_path / "trace.json"
    done = openaclnn(
        "trace", "-o", str(file), "--", sys.executable, "-m", "openaclnn", "npu", "--",
        sys.executable, "-c", TRACED, TASK_QUEUE_ENABLE=queue,
    )  # fmt: skip
    assert done.stdout.startswith("12.0 4\n"), done.stderr
    trace = json.loads(file.read_text())
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    calls = {e["name"]: e["args"] for e in events if e.get("ph") == "X" and e["pid"] == 1}
    work = {e["name"]: e["args"] for e in events if e.get("ph") == "X" and e["pid"] == 2}
    # One that ATen computes, one of our own; both phases, with what went in.
    assert calls["aclnnMatmulGetWorkspaceSize"]["other"].startswith("FLOAT [3, 2] strides [1, 3]")
    assert calls["aclnnLeakyReluGetWorkspaceSize"]["negativeSlope"] == "DOUBLE 0.01"
    assert calls["aclnnMatmul"]["stream"] == calls["aclnnLeakyRelu"]["stream"] == "stream 1"
    for name in ("aclnnMatmul", "aclnnLeakyRelu", "aclnnIndex"):
        assert work[name]["self"].startswith("FLOAT [2, "), work
    assert "aclnnNonzeroV2" in work


JIT = """
import torch, torch_npu
x = torch.ones(2, 3).npu()
torch.npu.set_compile_mode(jit_compile=True)
x[0] = 3.0
try:
    torch_npu.npu_stride_add(x.view(1, 2, 1, 3), x.view(1, 2, 1, 3), 0, 0, 1)
except RuntimeError as error:
    print("StrideAdd" in str(error))
torch.npu.set_compile_mode(jit_compile=False)
x[0] = 3.0
print(x.sum().item())
"""


def test_a_refusal_by_type_is_an_exception():
    """After an assignment, whose number the type Fill makes a tensor under Python's lock."""
    done = program(JIT)
    assert (done.stdout, done.returncode) == ("True\n12.0\n", 0), done.stderr


REFUSED = """
import torch, torch_npu
{before}
try:
    torch.ones(3, dtype=torch.uint16).npu() + 1
except RuntimeError as error:
    print(error)
"""


DUMP = "torch.ones(1, device='npu'); torch.npu.init_dump(); torch.npu.init_dump()"


def test_what_torch_npu_ignores_is_said_once_and_not_with_a_later_refusal():
    done = program(REFUSED.format(before=DUMP))
    assert done.stderr.count("aclmdlInitDump: not supported by openaclnn") == 1
    assert "aclnnAdd" in done.stdout, done.stderr
    assert "aclmdlInitDump" not in done.stdout
    assert done.returncode == 0


def test_a_refusal_does_not_name_the_settings_at_the_start():
    done = program(REFUSED.format(before=""), INF_NAN_MODE_FORCE_DISABLE="1")
    assert "aclnnAdd" in done.stdout, done.stderr
    assert "aclrtSetDeviceSatMode" not in done.stdout


def test_the_stack_of_a_process_can_be_walked():
    """torch says which libraries have no table for unwinding."""
    code = (
        "import torch; torch.npu.memory._record_memory_history();"
        "x = torch.ones(3, device='npu'); torch.npu.memory._snapshot(); print('done')"
    )
    done = program(code)
    assert done.stdout == "done\n", done.stderr
    assert "PT_GNU_EH_FRAME" not in done.stderr


def test_with_the_queue_the_first_refusal_is_said():
    """The exception of .cpu() has only a code; torch_npu prints the sentence as a warning."""
    code = (
        "import torch\n"
        "w = torch.ones(4, 2, device='npu')\n"
        "y = torch.nn.functional.embedding(torch.tensor([9], device='npu'), w)\n"
        "w[torch.tensor([7], device='npu')] = 0\n"
        "y.cpu()"
    )
    done = program(code, TASK_QUEUE_ENABLE="1")
    assert done.returncode == 1
    assert "aclnnEmbedding: index out of range" in done.stderr, done.stderr
    assert "aclnnIndexPutImpl" not in done.stderr


EXPANDABLE = """
import torch
kept = [torch.full((1 << k,), 1.0, device="npu") for k in range(4, 22)]
segments = torch.npu.memory_snapshot()
print(sum(float(x.sum().cpu()) for x in kept), any(s.get("is_expandable") for s in segments))
del kept
torch.npu.empty_cache()
print(float(torch.ones(3 << 20, device="npu").sum().cpu()))
"""


def test_segments_expand():
    """What launch scripts set: torch_npu then reserves addresses and maps memory to them."""
    done = program(EXPANDABLE, PYTORCH_NPU_ALLOC_CONF="expandable_segments:True")
    assert done.stdout == "4194288.0 True\n3145728.0\n", done.stderr
