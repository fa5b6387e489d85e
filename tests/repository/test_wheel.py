# SPDX-License-Identifier: Apache-2.0
"""A wheel that tools/release/wheels.py built, in an environment without a compiler.

Takes the wheels in $OPENACLNN_WHEELS, a folder, or in dist/; skipped where there are none:

    python tools/release/wheels.py && pytest tests/repository/test_wheel.py
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pytest

from openaclnn.rows.table import OPS

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
TESTS = ROOT / "tests" / "c"
FOLDER = Path(os.environ.get("OPENACLNN_WHEELS", ROOT / "dist"))
WHEELS = sorted(FOLDER.glob("openaclnn-*.whl"), key=lambda wheel: wheel.stat().st_mtime)
ABI = f"-cp3{sys.version_info.minor}-" if sys.version_info < (3, 12) else "-abi3-"
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++")

pytestmark = [pytest.mark.programs, pytest.mark.skipif(not WHEELS, reason=f"no wheels in {FOLDER}")]


def wheel_of(machine: str, abi: str = "") -> Path:
    fitting = [wheel for wheel in WHEELS if abi in wheel.name and f"_{machine}." in wheel.name]
    if not fitting:
        pytest.skip(f"no wheel for {machine} {abi.strip('-')} in {FOLDER}")
    return fitting[-1]


def home_of(wheel: Path, folder: Path) -> Path:
    """The installation directory in an unpacked wheel."""
    shutil.unpack_archive(wheel, folder, "zip")
    return folder / "openaclnn" / "home"


def compile_against(
    home: Path, compiler: str, source: Path, program: Path, *more: str | Path
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    command = [compiler, source, "-o", program, f"-I{home}/include", f"-I{home}/include/aclnn"]
    command += [f"-I{home}/include/aclnnop", *more, f"-L{home}/lib64", "-lopapi_nn", "-lopapi_math"]
    command += ["-lascendcl", "-lnnopbase", f"-Wl,-rpath,{home}/lib64"]
    subprocess.run(command, check=True)


class Installed:
    """A separate environment with the wheel and this process's NumPy, and nothing on its PATH
    that compiles."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, symlinks=True, with_pip=False)
        self.bin = folder / "bin"
        wheel = wheel_of(os.uname().machine, ABI)
        subprocess.run(
            [sys.executable, "-m", "pip", "--python", self.bin / "python", "install", "-q",
             "--no-deps", "--no-index", wheel], check=True,
        )  # fmt: skip
        (site,) = folder.glob("lib/python*/site-packages")
        borrowed = folder / "borrowed"
        borrowed.mkdir()
        installed = Path(np.__file__).parent.parent
        for name in ("numpy", "numpy.libs", "ml_dtypes"):
            if (installed / name).exists():
                (borrowed / name).symlink_to(installed / name)
        (site / "borrowed.pth").write_text(f"{borrowed}\n")
        self.variables = {"PATH": str(self.bin), "LANG": "C.UTF-8", "HOME": str(folder)}
        assert [c for c in COMPILERS if shutil.which(c, path=str(self.bin))] == []
        self.home = Path(self.run("home").stdout.strip())
        assert self.home.is_relative_to(site)

    def run(self, *words: str | Path, status: int = 0) -> subprocess.CompletedProcess[str]:
        """`openaclnn ...`"""
        done = subprocess.run(
            [self.bin / "openaclnn", *words],
            env=self.variables, cwd=self.bin.parent, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed") / "environment")


def test_demo(installed):
    shown = installed.run("demo").stdout
    for op in OPS:
        assert op.name in shown


def test_the_c_example(installed, tmp_path):
    program = tmp_path / "leaky_relu"
    compile_against(installed.home, "cc", EXAMPLES / "leaky_relu.c", program)
    shown = installed.run("run", program).stdout
    assert shown.splitlines()[:3] == ["-1 1", "-0.5 2", "0 3"]
    assert "refused with 161002" in shown


def test_check_mode(installed, tmp_path):
    good, bad = tmp_path / "good", tmp_path / "bad"
    compile_against(installed.home, "c++", EXAMPLES / "leaky_relu.cpp", good)
    compile_against(installed.home, "c++", EXAMPLES / "mistakes" / "read_before_sync.cpp", bad)
    assert installed.run("check", good).stderr.endswith("openaclnn check: no mistakes\n")
    printed = installed.run("check", bad, status=66).stderr
    assert printed.endswith("openaclnn check: 1 mistake\n")
    assert "before" in printed


def test_a_program_is_traced(installed, tmp_path):
    program = tmp_path / "leaky_relu"
    compile_against(installed.home, "cc", EXAMPLES / "leaky_relu.c", program)
    assert "aclnnLeakyRelu" in installed.run("trace", program).stderr


def test_waits_end_in_time(installed, tmp_path):
    """A wait for at most some time needs a function that the glibc of the wheel does not have."""
    program = tmp_path / "waits"
    compile_against(installed.home, "c++", TESTS / "test_event_waits.cpp", program, f"-I{TESTS}")
    installed.run("run", program)


def test_the_pages_are_there(installed):
    pages = {page.name for page in (installed.home / "share" / "docs").rglob("*.md")}
    assert pages == {page.name for page in (ROOT / "docs").rglob("*.md")}
    assert installed.run("docs", "index").stdout.startswith("# openaclnn documentation\n")


def test_a_compiler_that_is_missing_is_named(installed):
    sentence = "openaclnn cc: program cc not found\n"
    assert installed.run("cc", "prog.c", status=127).stderr == sentence


def test_the_version_is_that_of_the_wheel(installed):
    name = wheel_of(os.uname().machine, ABI).name
    assert installed.run("--version").stdout == f"openaclnn {name.split('-')[1]}\n"


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf")
def test_libraries_ask_for_no_more_than_the_tag_says(machine, tmp_path):
    """The glibc of the tag, no C++ library, and no folder of the machine that built them."""
    wheel = wheel_of(machine)
    least = tuple(map(int, re.search(r"manylinux_(\d+)_(\d+)_", wheel.name).groups()))
    shutil.unpack_archive(wheel, tmp_path, "zip")
    libraries = sorted(tmp_path.rglob("*.so"))
    assert len(libraries) > 20
    for library in libraries:
        shown = subprocess.run(
            ["readelf", "-W", "-V", "-d", library], capture_output=True, text=True, check=True
        ).stdout
        versions = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", shown)
        assert all(tuple(map(int, version)) <= least for version in versions), library
        needed = set(re.findall(r"NEEDED.*\[(.*)\]", shown))
        assert not any(name.startswith(("libstdc++", "libc++")) for name in needed), library
        paths = ":".join(re.findall(r"(?:RPATH|RUNPATH).*\[(.*)\]", shown)).split(":")
        assert all(path.startswith("$ORIGIN") for path in paths if path), library


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_c_program_runs_with_the_libraries_of_each_machine(machine, tmp_path):
    """Of another machine's wheel, under the emulator."""
    foreign = machine != os.uname().machine
    home = home_of(wheel_of(machine), tmp_path / "wheel")
    program = tmp_path / "leaky_relu"
    compiler = f"{machine}-linux-gnu-gcc" if foreign else "cc"
    compile_against(home, compiler, EXAMPLES / "leaky_relu.c", program)
    emulator = [f"qemu-{machine}", "-L", f"/usr/{machine}-linux-gnu"] if foreign else []
    if foreign and shutil.which(emulator[0]) is None:
        pytest.skip(f"needs {emulator[0]}")
    done = subprocess.run([*emulator, program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:3] == ["-1 1", "-0.5 2", "0 3"]
