# SPDX-License-Identifier: Apache-2.0
"""docs/pytorch.md: its Python runs from top to bottom and prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import torch_support  # noqa: F401  # skips without torch or a compiler

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "pytorch.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.M | re.S)


def test_the_page_runs():
    code = "import torch\n" + "\n".join(blocks("python"))
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (shown,) = blocks("text")
    assert done.stdout == shown + "torch.Size([7, 64, 32, 32])\n"


def test_the_benchmark_of_the_page_runs():
    """Its bars depend on the machine; that it ends and names them does not."""
    script = ROOT / "benchmarks" / "torch_ops.py"
    command = [sys.executable, str(script), "--rounds", "2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    lines = done.stdout.splitlines()
    assert "compiled operators" in lines[0]
    assert len(lines) == 5
    assert all(line.endswith(("met", "NOT MET")) for line in lines[1:])
