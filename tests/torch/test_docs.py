# SPDX-License-Identifier: Apache-2.0
"""docs/howto/pytorch.md: its Python runs from top to bottom and prints what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.torch import torch_support  # noqa: F401  # skips without torch or a compiler

pytestmark = pytest.mark.programs

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "howto" / "pytorch.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.M | re.S)


def test_the_page_runs():
    code = "import torch\n" + "\n".join(blocks("python"))
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (shown,) = blocks("text")
    assert done.stdout == shown + "torch.Size([7, 64, 32, 32])\n"


@pytest.mark.parametrize("name", ["train_a_unet.md", "train_a_unet.zh-CN.md"])
def test_the_tutorial_of_the_unet_runs(name, tmp_path):
    text = (ROOT / "docs" / "tutorials" / name).read_text(encoding="utf-8")
    code, shown = (
        re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)
        for language in ("python", "text")
    )
    program = tmp_path / "train.py"
    program.write_text("\n".join(code), encoding="utf-8")
    command = [sys.executable, "-W", "ignore", program]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "".join(shown)), done.stderr


def test_the_sharded_training_of_the_page():
    """FSDP2 over tensor parallel learns what one process learns."""
    script = ROOT / "examples" / "sharded_training.py"
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [*launch, "--nproc-per-node", "4", str(script)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    held, messages, loss, same = done.stdout.splitlines()
    assert held.startswith("each of 4 processes holds ")
    assert int(held.split()[-4].rstrip("%")) <= 25 + 3  # the last layer has no columns
    assert messages == "messages of the norm: 0"
    first, last = loss.removeprefix("loss ").split(" -> ")
    assert float(last) < float(first) / 2
    assert same == "as one process: True"
    assert done.stdout in TEXT


def test_the_benchmark_of_the_page_runs():
    """Its targets depend on the machine; that it ends and names them does not."""
    script = ROOT / "benchmarks" / "overhead.py"
    command = [sys.executable, str(script), "--rounds", "2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    lines = done.stdout.splitlines()
    assert any(line.startswith("both phases in C: ") for line in lines)
    ratios = [line for line in lines if ", compiled: " in line]
    assert len(ratios) == 4
    assert all(line.endswith(("met", "MISSED")) for line in ratios)
