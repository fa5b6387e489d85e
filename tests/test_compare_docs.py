# SPDX-License-Identifier: Apache-2.0
"""docs/verify.md: its Python runs, its report is printed, its commands end as the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np

import openaclnn
from openaclnn.cli import main

PAGE = Path(__file__).resolve().parent.parent / "docs" / "verify.md"


def blocks(language: str) -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = "\n".join(blocks("python"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == blocks("text")[0]
    assert [main(line.split()[1:]) for line in blocks("bash")[0].splitlines()] == [1, 1, 0]
    assert capsys.readouterr().out.startswith("FAILED aclnnElu")


def test_the_promise_of_the_page_about_bfloat16_files(tmp_path):
    """np.save makes raw bits of bfloat16; dtype= says what they are."""
    x = np.linspace(-4, 4, 100).astype(np.float32)
    half = (x.view(np.uint32) >> 16).astype(np.uint16)
    np.save(tmp_path / "x.npy", half)
    again = np.load(tmp_path / "x.npy")
    exact = (half.astype(np.uint32) << 16).view(np.float32)
    y = openaclnn.leaky_relu(exact, 1.0)
    assert openaclnn.compare(y, "leaky_relu", again, 1.0, dtype="bf16")
