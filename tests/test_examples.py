# SPDX-License-Identifier: Apache-2.0
"""Every example builds, by a plain compiler line and by CMake, runs, and prints what it should."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import openaclnn

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
HOME = openaclnn.home()
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]

LEAKY_RELU = """\
result[0] = -0.3
result[1] = -0.2
result[2] = -0.1
result[3] = 0
result[4] = 1
result[5] = 2
result[6] = 3
result[7] = 4
"""
LEAKY_RELU_C = (
    "-1 1\n-0.5 2\n0 3\n"
    "refused with 161002: [PID:_] _ AclNN_Parameter_Error(EZ1001): "
    "aclnnLeakyRelu: out must have the shape of self [3, 2], but got [2, 3]\n"
)
REPEATABLE = "batch 0: -1 1 0 -0.5\nbatch 1: 8 -4.5 10 -5.5\nbatch 2: 18 -9.5 20 -10.5\n"

# source: compiler and language, what it prints
PROGRAMS = {
    "leaky_relu.cpp": (["g++", "-std=c++11"], LEAKY_RELU),
    "leaky_relu.c": (["gcc", "-std=c11"], LEAKY_RELU_C),
    "repeatable.cpp": (["g++", "-std=c++11"], REPEATABLE),
}
TWO_PHASE = """\
aclnnLeakyRelu asks for 0 bytes of workspace
step 0: [-1.  -0.5  0.   1.   2. ]
step 1: [-1.5 -1.  -0.5  0.   1. ]
step 2: [-2.  -1.5 -1.  -0.5  0. ]
stream: [-2.5 -2.  -1.5 -1.  -0.5]
in place: [-2.5 -2.  -1.5 -1.  -0.5]
161002 ACLNN_ERR_PARAM_INVALID
aclnnLeakyRelu: out must have the shape of self [5], but got [2, 3]
"""
TORCH_TENSORS = """\
torch.bfloat16 True
[[-1.0, -0.4296875], [0.2890625, 1.4296875]]
in place: True
aclnnLeakyRelu: self must not require a gradient, which these functions do not record: \
pass it detached
[1.0, 1.0, 1.0]
"""


def output_of(command: Sequence[str | Path], cwd: Path) -> str:
    """What the command prints, without the process and the time in a message."""
    done = subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True, timeout=120)
    return re.sub(r"\[PID:\d+\] \S+ ", "[PID:_] _ ", done.stdout)


def needs(*tools: str) -> pytest.MarkDecorator:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


def test_every_example_is_tested() -> None:
    tested = {*PROGRAMS, "two_phase.py", "torch_tensors.py", "CMakeLists.txt"}
    assert {path.name for path in EXAMPLES.iterdir() if path.is_file()} == tested


@needs("gcc", "g++")
@pytest.mark.parametrize("source", PROGRAMS)
def test_compiler_line(source: str, tmp_path: Path) -> None:
    compiler, expected = PROGRAMS[source]
    include = [f"-I{HOME}/{folder}" for folder in ("include", "include/aclnn", "include/aclnnop")]
    libraries = ["-lopapi_nn", "-lopapi_math", "-lascendcl", "-lnnopbase"]
    link = [f"-L{HOME}/lib64", *libraries, f"-Wl,-rpath,{HOME}/lib64"]
    command = [*compiler, *STRICT, EXAMPLES / source, *include, *link, "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert output_of(["./program"], tmp_path) == expected


@needs("cmake", "gcc", "g++")
def test_cmake(tmp_path: Path) -> None:
    environment = {**os.environ, "ASCEND_HOME_PATH": str(HOME)}
    for step in (["-S", str(EXAMPLES), "-B", str(tmp_path)], ["--build", str(tmp_path)]):
        subprocess.run(["cmake", *step], check=True, env=environment, capture_output=True)
    assert output_of(["./leaky_relu"], tmp_path) == LEAKY_RELU
    assert output_of(["./leaky_relu_c"], tmp_path) == LEAKY_RELU_C
    assert output_of(["./repeatable"], tmp_path) == REPEATABLE


@needs("cmake")
def test_cmake_without_an_installation_says_what_to_do(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "ASCEND_HOME_PATH"}
    command = ["cmake", "-S", str(EXAMPLES), "-B", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode != 0
    assert "export ASCEND_HOME_PATH=$(openaclnn home)" in " ".join(done.stderr.split())


@needs("bash", "g++")
def test_set_env(tmp_path: Path) -> None:
    """With set_env.sh sourced, programs need neither an rpath nor -L."""
    script = f"""
        source '{HOME}/set_env.sh'
        cp '{EXAMPLES}/leaky_relu.cpp' .
        g++ leaky_relu.cpp -I$ASCEND_HOME_PATH/include -lopapi -lacl_rt -lnnopbase -o program
        ./program
    """
    assert output_of(["bash", "-ec", script], tmp_path) == LEAKY_RELU


def test_two_phase(tmp_path: Path) -> None:
    assert output_of([sys.executable, EXAMPLES / "two_phase.py"], tmp_path) == TWO_PHASE


def test_torch_tensors(tmp_path: Path) -> None:
    has_torch = importlib.util.find_spec("torch") is not None
    expected = TORCH_TENSORS if has_torch else "skipped: this example needs torch\n"
    assert output_of([sys.executable, EXAMPLES / "torch_tensors.py"], tmp_path) == expected
