# SPDX-License-Identifier: Apache-2.0
"""The published torch_npu wheel on openaclnn's libraries: tests/npu, inside `openaclnn npu`, in the
three modes of torch_npu's queue; several devices; and openaclnn.npu, imported.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.npu import wheels
from tests.npu.npu_support import environment

from openaclnn.torch_npu.environment import in_front

pytestmark = pytest.mark.programs

DEVICE = Path(__file__).parent / "device"


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, env=environment(**variables), capture_output=True, text=True, cwd=DEVICE.parents[2]
    )


def on_npu(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "openaclnn", "npu", "--", sys.executable, *words, **variables)


# Mode 1 differs from the others where a test names the modes. Product any: tests/npu/opinfo.
ALL = [DEVICE]
# Graphs after errors: torch_npu names the newest code that the runtime refused.
FILES = sorted(DEVICE.glob("test_*.py"))
# Rows called as C functions and types called through pyACL do not pass through torch_npu, whose
# queue it is; test_types.py stays for the one place of the runtime that reads the mode.
QUEUED = [file for file in FILES if not file.name.startswith(("test_direct_", "test_types_"))]
MODES = [file for file in FILES if "TASK_QUEUE_ENABLE" in file.read_text()]


@pytest.mark.parametrize(("queue", "files"), [("0", ALL), ("1", MODES), ("2", QUEUED)])
def test_in_its_environment(queue, files):
    options = ("-o", "addopts=", "-W", "ignore", "-p", "no:cacheprovider")
    done = on_npu(
        *("-m", "pytest", *options, *map(str, files)),
        TASK_QUEUE_ENABLE=queue, OPENACLNN_PRODUCT="A2",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 50


def test_it_says_that_no_npu_computes_once():
    code = "import torch; print((torch.ones(2, device='npu') + 1).tolist())"
    done = on_npu("-c", code)
    assert done.stdout == "[2.0, 2.0]\n"
    assert done.stderr.count("no NPU computes here") == 1
    assert done.stderr.count("TASK_QUEUE_ENABLE=0, unless you set it") == 1


LATE_THREAD = """
import ctypes, sys, time, torch
class Slow:
    def __del__(self):
        time.sleep(0.5)  # Python finalises, and its lock is free
torch.ones(2).to(sys.argv[2])
ctypes.CDLL(sys.argv[1]).start_late_thread()
slow = Slow()
print("done", flush=True)
"""


def test_a_thread_that_python_ends_does_not_abort_the_process(tmp_path):
    """torch's threads of autograd may still be at work while Python finalises."""
    library = tmp_path / "late_thread.so"
    source = DEVICE / "late_thread.cpp"
    subprocess.run(["g++", "-shared", "-fPIC", "-o", library, source], check=True)
    done = on_npu("-c", LATE_THREAD, str(library), "npu")
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
    if sys.version_info < (3, 14):  # without the device it is still so
        plain = on_npu("-c", LATE_THREAD, str(library), "cpu")
        assert plain.returncode == -signal.SIGABRT, plain.stderr


CHECKED = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
model = model.to("npu")
optimiser = torch.optim.AdamW(model.parameters(), 1e-3)
x, labels = torch.randn(32, 8).to("npu"), torch.randint(0, 4, (32,)).to("npu")
for _ in range(2):
    optimiser.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), labels)
    loss.backward()
    optimiser.step()
columns = torch.empty(4, 6, device="npu")
columns[:, ::2] = 1
columns[:, 1::2] = 2
print(loss.item(), torch.cat([columns, columns + 1]).cpu().sum())
torch.add(torch.empty(2_000_000, device="npu"), 1)  # the mistake
"""


def test_check_mode_knows_what_operators_of_aten_write():
    done = run(
        *(sys.executable, "-m", "openaclnn", "check", "--", sys.executable, "-m", "openaclnn"),
        *("npu", "--", sys.executable, "-c", CHECKED),
    )
    found = re.findall(r"never_written: (.*)", done.stderr)
    assert len(found) == 1, done.stderr
    assert re.match(r"aclnnAdds reads self, 8000000 bytes at 0x\w+, but none", found[0]), found
    # torch_npu's allocator keeps its memory until the process ends: no leak.
    assert done.stderr.splitlines()[-1] == "openaclnn check: 1 mistake", done.stderr


def test_several_devices_without_the_notice():
    code = (
        "import torch; x = [torch.full((3,), float(i), device=f'npu:{i}') for i in range(3)];"
        "print(torch.npu.device_count(), sum(t.to('npu:1') * 2 for t in x).tolist(), x[2].device)"
    )
    done = on_npu("-c", code, OPENACLNN_DEVICES="3", OPENACLNN_NPU_NOTICE="0")
    assert done.stdout == "3 [6.0, 6.0, 6.0] npu:2\n", done.stderr
    assert "openaclnn" not in done.stderr


def test_imported_before_torch():
    code = "import openaclnn.npu, torch; print(torch.ones(2, device='npu').mul(3).tolist())"
    code += "; import acl; print(acl.rt.get_device())"
    code += "; import shutil; print(shutil.which('msprof') is not None)"
    code += "; print(torch.compile(lambda x: x + 1)(torch.ones(2, device='npu')).tolist())"
    done = run(sys.executable, "-c", code)
    assert done.stdout == "[3.0, 3.0]\n(0, 0)\nTrue\n[2.0, 2.0]\n", done.stderr


def test_imported_too_late():
    done = on_npu("-c", "import torch, openaclnn.npu")
    assert done.returncode == 1
    assert "openaclnn.npu must be imported before torch" in done.stderr


def test_the_operators_of_pytorch_say_how_torch_is_imported_beside_torch_npu():
    code = "import openaclnn.torch, torch; print(torch.ops.openaclnn.leaky_relu(torch.ones(2)))"
    alone = run(sys.executable, "-c", code)
    assert alone.returncode == 1
    assert "ImportError: torch loads the torch_npu that is installed beside it" in alone.stderr
    for done in (
        on_npu("-c", code),
        run(sys.executable, "-c", "import openaclnn.npu; " + code),
        run(sys.executable, "-c", code, TORCH_DEVICE_BACKEND_AUTOLOAD="0"),
    ):
        assert done.stdout == "tensor([1., 1.])\n", done.stderr


def test_check_and_demo():
    done = run(sys.executable, "-m", "openaclnn", "npu", "--check")
    assert done.returncode == 0, done.stderr
    assert "1 of Ascend910B1: runs" in done.stdout
    done = run(sys.executable, "-m", "openaclnn", "npu", "--demo")
    assert done.returncode == 0, done.stdout + done.stderr


def test_check_says_why_torch_npu_does_not_load(tmp_path):
    package = tmp_path / "torch_npu"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('libmissing.so: no such file')")
    path = in_front([tmp_path], os.environ.get("PYTHONPATH"))
    done = run(sys.executable, "-m", "openaclnn", "npu", "--check", PYTHONPATH=path)
    assert done.returncode == 1
    assert done.stderr.endswith("openaclnn npu: ImportError: libmissing.so: no such file\n")


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm of binutils is not installed")
def test_the_table_of_wheels_has_what_this_one_links():
    package = importlib.metadata.distribution("torch_npu")
    folder = Path(package.locate_file("torch_npu"))
    files = (*folder.glob("lib/lib*.so"), *folder.glob("_C.*.so"))
    linked = set().union(*map(wheels.linked_by, files))
    listed = {n for n, versions in wheels.table().items() if package.version in versions}
    assert len(listed) >= 65
    assert listed <= linked
