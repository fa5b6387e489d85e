# SPDX-License-Identifier: Apache-2.0
"""Programs in the styles of several CANN versions' documentation, built by the lines found there.

styles/*.cpp are written for these tests; the top of each says what it stands for.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import openaclnn

pytestmark = pytest.mark.programs

STYLES = Path(__file__).resolve().parent / "styles"
HOME = openaclnn.home()
RUNTIME_SAMPLES = ["-O2", "-std=c++17", "-D_GLIBCXX_USE_CXX11_ABI=0", "-Wall", "-Werror"]

# Flags and libraries of build lines, old and new.
LINES = {
    "operator pages": ([], "-lopapi_nn -lopapi_math -lascendcl -lnnopbase"),
    "runtime samples": (RUNTIME_SAMPLES, "-lacl_rt -lnnopbase -lopapi"),
    "early releases": (["-std=c++11"], "-lopapi -lnnopbase -lascendcl"),
    "only what is needed": (
        ["-std=c++14", "-Wl,--as-needed"],
        "-lascendcl -lacl_rt -lnnopbase -lopapi -lopapi_nn -lopapi_math",
    ),
    "warnings": (
        ["-std=c++20", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-fsyntax-only"],
        "",
    ),
}
PRINTS = {
    "classic": "".join(
        f"result[{i}] is: {np.float32(1 / (x * (1 - x))):f}\n"
        for i, x in enumerate((0.5, 0.25, 0.75, 0.125))
    ),
    "owners": "A2\n1 4 3\n",  # g * (v + alpha) where v <= 0
    "careless": "-1 -0.5 0 2\n",
}


def build(style: str, line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    flags, libraries = LINES[line]
    include = [f"-I{HOME}/include", f"-I{HOME}/include/aclnnop", f"-I{HOME}/include/aclnn"]
    command = ["g++", str(STYLES / f"{style}.cpp"), *flags, *include, f"-L{HOME}/lib64"]
    return subprocess.run(
        [*command, *libraries.split(), "-o", "program"], cwd=folder, capture_output=True, text=True
    )


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{HOME}/lib64"}
    return subprocess.run(
        ["./program", *words], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip


def test_every_style_is_tested() -> None:
    assert {path.stem for path in STYLES.iterdir()} == set(PRINTS)


@pytest.mark.parametrize("line", [line for line in LINES if line != "warnings"])
@pytest.mark.parametrize("style", PRINTS)
def test_style(style: str, line: str, tmp_path: Path) -> None:
    built = build(style, line, tmp_path)
    assert (built.returncode, built.stderr) == (0, "")
    done = run(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, PRINTS[style], "")


@pytest.mark.parametrize("style", PRINTS)
def test_headers_add_no_warning(style: str, tmp_path: Path) -> None:
    """Warnings that the programs themselves cause are theirs; none may come from a header."""
    built = build(style, "warnings", tmp_path)
    assert built.returncode == 0
    assert str(HOME) not in built.stderr


def test_status_as_exit_code(tmp_path: Path) -> None:
    """An exit code keeps the low eight bits."""
    assert build("classic", "operator pages", tmp_path).returncode == 0
    done = run(tmp_path, "spoil")
    assert done.returncode == 161002 % 256
    assert "aclnnLogitGradGetWorkspaceSize failed: 161002\n" in done.stdout
    assert "aclnnLogitGrad: out must have the shape of x [2, 2], but got [4]\n" in done.stdout


def test_no_status_looks_like_success() -> None:
    """Codes that have 0 in their low bits: the library never returns them."""
    names = ("aclnn/acl_meta.h", "acl/acl_base_rt.h", "acl/error_codes/rt_error_codes.h")
    headers = "".join((HOME / "include" / name).read_text() for name in names)
    codes = {int(code): name for name, code in re.findall(r"(\w+) ?=? ?\b([1-9]\d{5})\b", headers)}
    assert len(codes) > 50
    silent = [name for code, name in codes.items() if code % 256 == 0]
    assert "ACL_ERROR_RT_ADDR_UNALIGNED" in silent
    core = "".join(path.read_text() for path in (STYLES.parents[2] / "core").rglob("*.cpp"))
    assert "ACL_ERROR_RT_PARAM_INVALID" in core
    assert [name for name in silent if name in core] == []
