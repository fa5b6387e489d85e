# SPDX-License-Identifier: Apache-2.0
"""verify.md: its Python runs, its report is printed, its commands end as the page says. The C and
CUDA functions of own_c_kernel.md."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.verify.kernels_of_the_page import verified

import openaclnn
from openaclnn.commands.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "verify.md"
CASES = PAGE.parents[1] / "reference" / "verify_cases.md"
C_PAGE = PAGE.parents[1] / "tutorials" / "own_c_kernel.md"


def blocks(language: str, page: Path = PAGE) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


@pytest.mark.programs
def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = "\n".join(blocks("python"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == blocks("text")[1]
    assert [main(line.split()[1:]) for line in blocks("bash")[2].splitlines()] == [1, 1, 0]
    assert capsys.readouterr().out.startswith("FAILED aclnnElu")


def judge(folder):
    """What judge.py of the page prints in a folder that has my_elu.so."""
    (folder / "judge.py").write_text(blocks("py", C_PAGE)[0], encoding="utf-8")
    done = subprocess.run([sys.executable, "judge.py"], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.programs
def test_ten_lines_for_a_kernel_in_c(tmp_path, monkeypatch):
    """The lines are ten; the verdicts before and after the change are what the page says."""
    source, commands = blocks("c", C_PAGE)[0], blocks("console", C_PAGE)[0].splitlines()
    assert (
        len(commands) + len(source.splitlines()) + len(blocks("py", C_PAGE)[0].splitlines()) == 10
    )
    if shutil.which("cc") is None:
        pytest.skip("there is no compiler")
    compiler = commands[0].removeprefix("$ ")
    for code, verdict in (
        (source, "FAILED"),
        (re.sub(r"\(expf\((.*?)\) - 1\)", r"expm1(\1)", source), "PASSED"),
    ):
        (tmp_path / "my_elu.c").write_text(code, encoding="utf-8")
        subprocess.run(compiler.split(), cwd=tmp_path, check=True)
        shown = judge(tmp_path)
        assert shown.startswith(f"{verdict} aclnnElu, the accuracy that openaclnn promises\n")
        if verdict == "PASSED":
            (tmp_path / "wrap.py").write_text(blocks("py", C_PAGE)[1], encoding="utf-8")
            monkeypatch.chdir(tmp_path)
            _, (found,) = verified("python:wrap.py:elu", "elu", "--dtype", "fp32")
            assert found["cause"].endswith("elu() has no parameter scale or input_scale")
        if verdict == "FAILED":
            (worst,) = re.findall(r"\[\d+\]  (-?[\d.e-]+) \(0x", shown.splitlines()[-1])
            assert abs(float(worst)) < 0.1


@pytest.mark.programs
def test_a_kernel_in_cuda(tmp_path):
    if shutil.which("nvcc") is None or shutil.which("nvidia-smi") is None:
        pytest.skip("there is no CUDA compiler, or no GPU")
    (tmp_path / "my_elu.cu").write_text(blocks("cuda", C_PAGE)[0], encoding="utf-8")
    (command,) = re.findall(r"`(nvcc .*?)`", C_PAGE.read_text(encoding="utf-8"))[-1:]
    subprocess.run(command.split(), cwd=tmp_path, check=True)
    assert judge(tmp_path).startswith("FAILED aclnnElu")


@pytest.mark.programs
def test_the_promise_of_the_page_about_bfloat16_files(tmp_path):
    """np.save makes raw bits of bfloat16; dtype= says what they are."""
    x = np.linspace(-4, 4, 100).astype(np.float32)
    half = (x.view(np.uint32) >> 16).astype(np.uint16)
    np.save(tmp_path / "x.npy", half)
    again = np.load(tmp_path / "x.npy")
    exact = (half.astype(np.uint32) << 16).view(np.float32)
    y = openaclnn.leaky_relu(exact, 1.0)
    assert openaclnn.compare(y, "leaky_relu", again, 1.0, dtype="bf16")
