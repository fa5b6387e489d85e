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
from tests.abi.example_results import LEAKY_RELU, LEAKY_RELU_C, RESULTS

import openaclnn

pytestmark = pytest.mark.programs

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HOME = openaclnn.home()
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def assert_printed(source: str, output: str) -> None:
    name, expected = source.removesuffix(".cpp"), PROGRAMS[source][1]
    if expected is not None:
        assert output == expected
        return
    lines = RESULTS[name]()
    assert len(output.splitlines()) == len(lines), output
    for printed, (title, values) in zip(output.splitlines(), lines, strict=True):
        assert printed.startswith(title), printed
        numbers = [float(word) for word in printed.removeprefix(title).strip(":= ").split()]
        assert numbers == pytest.approx(values, rel=1e-5, abs=1e-6), printed


REPEATABLE = "batch 0: -1 1 0 -0.5\nbatch 1: 8 -4.5 10 -5.5\nbatch 2: 18 -9.5 20 -10.5\n"

# source: compiler and language, what it prints
PROGRAMS = {
    "leaky_relu.cpp": (["g++", "-std=c++11"], LEAKY_RELU),
    "leaky_relu.c": (["gcc", "-std=c11"], LEAKY_RELU_C),
    "repeatable.cpp": (["g++", "-std=c++11"], REPEATABLE),
    **{f"{name}.cpp": (["g++", "-std=c++11"], None) for name in RESULTS},
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
aclnnLeakyRelu: self must not require a gradient, which plans never record, and functions only \
after import openaclnn.torch: call a function of openaclnn.torch, or pass x.detach()
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
    tested = {
        *PROGRAMS,
        "two_phase.py",
        "torch_tensors.py",
        "sharded_training.py",
        "pyacl_leaky_relu.py",
        "CMakeLists.txt",
    }
    assert {path.name for path in EXAMPLES.iterdir() if path.is_file()} == tested


@needs("gcc", "g++")
@pytest.mark.parametrize("source", PROGRAMS)
def test_compiler_line(source: str, tmp_path: Path) -> None:
    compiler, _ = PROGRAMS[source]
    include = [f"-I{HOME}/{folder}" for folder in ("include", "include/aclnn", "include/aclnnop")]
    libraries = ["-lopapi_nn", "-lopapi_math", "-lascendcl", "-lnnopbase"]
    link = [f"-L{HOME}/lib64", *libraries, f"-Wl,-rpath,{HOME}/lib64"]
    command = [*compiler, *STRICT, EXAMPLES / source, *include, *link, "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert_printed(source, output_of(["./program"], tmp_path))


@needs("g++")
@pytest.mark.parametrize("watch", [[], ["check"], ["trace", "--text", "trace.txt"]], ids=" ".join)
def test_two_devices_and_who_watches(watch: list[str], tmp_path: Path) -> None:
    """What ggml's CANN backend does with memory and devices, also in check mode and traced."""
    include = [f"-I{HOME}/{folder}" for folder in ("include", "include/aclnnop")]
    libraries = ["-lopapi", "-lascendcl", "-lnnopbase", "-lacl_op_compiler"]
    link = [f"-L{HOME}/lib64", *libraries, f"-Wl,-rpath,{HOME}/lib64"]
    source = EXAMPLES / "memory_pool.cpp"
    subprocess.run(["g++", source, *include, *link, "-o", "program"], cwd=tmp_path, check=True)
    main = "import sys; from openaclnn.commands.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", main, *watch, "./program"] if watch else ["./program"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "OPENACLNN_DEVICES": "2"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    *lines, there = done.stdout.splitlines()
    assert lines[-1] == "another device: yes"
    lines[-1] = "another device: no"
    assert_printed("memory_pool.cpp", "\n".join(lines))
    assert there == "there: " + " ".join(f"{(i - 9) / 4:g}" for i in range(18))
    if watch == ["check"]:
        assert done.stderr == "openaclnn check: no mistakes\n"
    if watch[:1] == ["trace"]:
        text = (tmp_path / "trace.txt").read_text()
        for call in ("aclrtMallocPhysical", "aclrtMapMem", "aclrtUnmapMem", "aclrtFreePhysical"):
            assert re.search(rf"{call}\(.*\) = 0$", text, re.M), call
        assert "option: ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED, granularity: &2097152)" in text


@needs("cmake", "gcc", "g++")
@pytest.mark.parametrize("way", ["package", "paths"])
def test_cmake(way: str, tmp_path: Path) -> None:
    environment = {**os.environ, "ASCEND_HOME_PATH": str(HOME)}
    option = "-DBY_PATH=ON" if way == "paths" else f"-DCMAKE_PREFIX_PATH={HOME}"
    for step in (["-S", str(EXAMPLES), "-B", str(tmp_path), option], ["--build", str(tmp_path)]):
        subprocess.run(["cmake", *step], check=True, env=environment, capture_output=True)
    for source in PROGRAMS:
        program = source.removesuffix(".cpp").replace(".c", "_c")
        assert_printed(source, output_of([f"./{program}"], tmp_path))


@needs("cmake")
def test_cmake_without_an_installation_says_what_to_do(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "ASCEND_HOME_PATH"}
    command = ["cmake", "-S", str(EXAMPLES), "-B", str(tmp_path), "-DBY_PATH=ON"]
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


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_set_env_in_other_shells(shell: str, tmp_path: Path) -> None:
    """set_env.sh works in every shell, or says why not; CDPATH prints nothing in between."""
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    show = 'echo "$TOOLCHAIN_HOME ${LD_LIBRARY_PATH%%:*} ${PATH%%:*}"'
    expected = f"{HOME} {HOME}/lib64 {HOME}/bin\n"
    environment = {**os.environ, "CDPATH": str(HOME.parent)}

    def run(script: str) -> subprocess.CompletedProcess[str]:
        command = [shell, "-euc", script]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    inside = run(f"CDPATH= cd '{HOME}'; . ./set_env.sh; {show}")
    assert (inside.returncode, inside.stdout, inside.stderr) == (0, expected, "")
    outside = run(f". '{HOME}/bin/setenv.bash'; {show}")
    if shell == "bash":
        assert (outside.returncode, outside.stdout, outside.stderr) == (0, expected, "")
    else:
        assert outside.returncode != 0
        assert outside.stderr.startswith("set_env.sh: this shell does not know where the file lies")


def test_two_phase(tmp_path: Path) -> None:
    assert output_of([sys.executable, EXAMPLES / "two_phase.py"], tmp_path) == TWO_PHASE


HAS_TORCH = importlib.util.find_spec("torch") is not None


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
def test_torch_tensors(tmp_path: Path) -> None:
    assert output_of([sys.executable, EXAMPLES / "torch_tensors.py"], tmp_path) == TORCH_TENSORS


@pytest.mark.skipif(HAS_TORCH, reason="torch is installed")
def test_torch_tensors_without_torch(tmp_path: Path) -> None:
    expected = "skipped: this example needs torch\n"
    assert output_of([sys.executable, EXAMPLES / "torch_tensors.py"], tmp_path) == expected
