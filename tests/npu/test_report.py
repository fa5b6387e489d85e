# SPDX-License-Identifier: Apache-2.0
"""`openaclnn npu --report` of a program with torch_npu, the limit of memory, and npu-smi.
tests/trace/test_report.py has what needs no PyTorch.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.npu.npu_support import environment

pytestmark = pytest.mark.programs

NPU = (sys.executable, "-m", "openaclnn", "npu")


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*NPU, *words], env=environment(**variables), capture_output=True, text=True, timeout=240
    )


PROGRAM = """
import sys, torch
x = torch.randn(4, 4, device="npu")
half = x.bfloat16()
for _ in range(3):
    half = half @ half
torch._foreach_add([x, x], [x, x])
torch.linalg.eigh(x @ x.t())
for wrong in (lambda: x.int() @ x.int(), lambda: x.gather(0, torch.full((1, 1), 9).npu())):
    try:
        wrong()
        torch.npu.synchronize()
    except RuntimeError:
        pass
sys.exit(7)
"""


@pytest.mark.parametrize("queue", ["0", "2"])
def test_report(queue, tmp_path):
    destination = str(tmp_path / "report.json")
    words = ("--report", destination, "--product", "910,A2", "--", sys.executable, "-c", PROGRAM)
    done = run(*words, TASK_QUEUE_ENABLE=queue, OPENACLNN_PRODUCT="A2")
    assert done.returncode == 7, done.stderr
    found = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert found["status"] == done.returncode
    on_910 = {(row["function"], row["dtypes"]): row["calls"] for row in found["products"]["910"]}
    assert on_910["aclnnMatmul", "BFLOAT16"] == 3
    assert on_910["aclnnForeachAddListV2", "FLOAT"] == 1
    [refused] = found["products"]["A2"]
    assert (refused["function"], refused["dtypes"], refused["calls"]) == ("aclnnMatmul", "INT32", 1)
    assert "self must have dtype FLOAT, FLOAT16 or BFLOAT16" in refused["sentence"]
    if queue == "0":  # the queue takes failures of phase 2 before they are counted
        [late] = found["refused"]  # the other one is A2's
        assert (late["function"], late["refused"]) == ("aclnnGather", 1)
        assert "index 9 is out of bounds" in late["sentence"]
    [fallback] = found["fallbacks"]
    assert fallback["function"].startswith("aten::_linalg_eigh")
    assert fallback["dtypes"] == "FLOAT"
    assert {r["function"] for r in found["nondeterministic"]} == {"aclnnMatmul"}
    assert found["memory"][0]["peak"] >= 2 << 20
    calls = sum(row["calls"] for row in found["products"]["910"])
    functions = len({row["function"] for row in found["products"]["910"]})
    verdicts = (
        f"910 refuses {calls} calls of {functions} functions; A2 refuses 1 call of 1 function"
    )
    assert f"{verdicts}, 1 operator falls back" in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--report", "x.html"), "a command must follow"),
        (("--report",), "--report needs a value: --report FILE"),
        (("--product", "--", "true"), "--product needs a value: --product KEY"),
        (("--chek",), "there is no option --chek; did you mean --check?"),
        (("--check", "x"), "--check takes nothing after it, but got x"),
        (("--product", "910,A2", "--", "true"), "a run has one --product; several need --report"),
        (("--product", "9", "--", "true"), "--product must be one or more of 910, A2"),
        (("--product", "910B", "--", "true"), "but is '910B'; 910B is product A2"),
        (
            ("--report", "-", "--product", "9", "--", "true"),
            "--product must be one or more of 910, A2",
        ),
        (("--report", "/none/x.html", "--", "true"), "--report /none/x.html cannot be written"),
    ],
)
def test_wrong_use(words, sentence):
    done = run(*words)
    assert done.returncode == 2
    assert sentence in done.stderr


LIMITED = """
import subprocess, torch
torch.npu.synchronize()
assert torch.npu.mem_get_info() == (64 << 20, 64 << 20)
assert torch.npu.get_device_properties(0).total_memory == 64 << 20
try:
    torch.empty(100 << 20, dtype=torch.uint8, device="npu")
except torch.OutOfMemoryError as error:
    print(error)
x = torch.empty(30 << 20, dtype=torch.uint8, device="npu")
assert torch.npu.mem_get_info()[0] == (64 << 20) - torch.npu.memory_reserved()
print(torch.empty(1000, device="npu").isnan().all().item())
print(subprocess.run(["npu-smi", "info"], capture_output=True, text=True).stdout)
"""


def test_limit_of_memory_and_its_contents():
    limits = {"OPENACLNN_DEVICE_MEMORY": "64MiB", "OPENACLNN_FILL": "nan"}
    done = run("--", sys.executable, "-c", LIMITED, **limits)
    assert done.returncode == 0, done.stderr
    assert "NPU out of memory. Tried to allocate 102.00 MiB (NPU 0; 64.00 MiB" in done.stdout
    assert "\nTrue\n" in done.stdout
    assert "| 0     910B1" in done.stdout
    assert "0    / 64 " in done.stdout


def test_a_product_has_its_memory(monkeypatch):
    monkeypatch.delenv("OPENACLNN_DEVICE_MEMORY", raising=False)
    show = (
        "import os; print(*map(os.environ.get, ('OPENACLNN_PRODUCT', 'OPENACLNN_DEVICE_MEMORY')))"
    )
    words = ("--", sys.executable, "-c", show)
    assert run("--product", "310P", *words, OPENACLNN_PRODUCT="A2").stdout == "310P 24GiB\n"
    own = run("--product", "310P", *words, OPENACLNN_DEVICE_MEMORY="1GiB")
    assert own.stdout == "310P 1GiB\n"
    judged = run("--report", "/dev/null", "--product=A3", *words, OPENACLNN_PRODUCT="A2")
    assert judged.stdout == "A2 64GiB\n"
    assert run("--report", "/dev/null", *words, OPENACLNN_PRODUCT="A2").stdout == "A2 None\n"


def test_wrong_settings_are_named():
    limits = {"OPENACLNN_DEVICE_MEMORY": "64 megs", "OPENACLNN_FILL": "0"}
    done = run("--", "npu-smi", "info", "-t", "memory", "-i", "0", **limits)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "openaclnn npu: OPENACLNN_DEVICE_MEMORY must be a size such as 64GiB or 512MiB, but is "
        '"64 megs"\nopenaclnn npu: OPENACLNN_FILL must be nan, but is "0"\n'
    )
