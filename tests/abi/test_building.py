# SPDX-License-Identifier: Apache-2.0
"""`openaclnn cc`, the CMake package, pkg-config; every block of the page about them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import openaclnn
from openaclnn.commands.cc import compile_command
from openaclnn.commands.cli import main
from openaclnn.commands.programs import needs_aten

pytestmark = pytest.mark.programs

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PAGES = [ROOT / "docs" / name for name in ("howto/building_programs.md", "tutorials/porting.md")]
HOME = openaclnn.home()
LIB = HOME / "lib64"
LINK = [f"-L{LIB}", "-lopapi_nn", "-lopapi_math", "-lascendcl", "-lnnopbase", f"-Wl,-rpath,{LIB}"]
INCLUDE = [f"-I{HOME}/include", f"-I{HOME}/include/aclnn", f"-I{HOME}/include/aclnnop"]
COMMAND = [sys.executable, "-m", "openaclnn"]


def run(*words: object, cwd: Path, **options) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, **options)


def needs(*tools: str) -> pytest.MarkDecorator:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


# ---- openaclnn cc ----


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        (["prog.c"], "cc"),
        (["a.c", "-o", "a", "b.c"], "cc"),
        (["prog.cpp"], "c++"),
        (["prog.cc", "helper.c"], "c++"),
        (["prog.cxx"], "c++"),
        (["prog.C"], "c++"),
        (["prog.o"], "c++"),
        (["-c", "prog.S"], "cc"),
    ],
)
def test_compiler_by_file(words, chosen) -> None:
    assert compile_command(words, {})[0] == chosen


def test_compiler_by_variable() -> None:
    variables = {"CC": "ccache gcc-12", "CXX": "clang++"}
    assert compile_command(["a.c"], variables)[:2] == ["ccache", "gcc-12"]
    assert compile_command(["a.cpp"], variables)[0] == "clang++"


def test_everything_else_is_forwarded() -> None:
    words = ["-O2", "-DNAME=a b", "prog.cpp", "-o", "prog", "--", "-lm", "--show-nothing"]
    assert compile_command(words, {}) == ["c++", *INCLUDE, *words, *LINK]


@pytest.mark.parametrize("option", ["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"])
def test_nothing_is_linked(option) -> None:
    assert compile_command([option, "prog.c"], {}) == ["cc", *INCLUDE, option, "prog.c"]


def test_show(capsys, monkeypatch) -> None:
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    assert main(["cc", "-O2", "--show", "a b.cpp", "--", "-h"]) == 0
    shown = shlex.split(capsys.readouterr().out)
    assert shown == ["c++", *INCLUDE, "-O2", "a b.cpp", "--", "-h", *LINK]


@pytest.mark.parametrize("name", ["cc", "run"])
def test_help(name, capsys) -> None:
    assert main([name, "--help"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"usage: openaclnn {name} ")
    assert main([name]) == 2
    assert capsys.readouterr().out == printed


def test_compiler_that_is_not_there(tmp_path) -> None:
    done = run("cc", "a.c", cwd=tmp_path, env={**os.environ, "CC": "no-such-compiler"})
    assert done.returncode == 127
    sentence = "openaclnn cc: program no-such-compiler not found\n"
    assert done.stderr == sentence


@needs("cc")
def test_the_status_of_the_compiler(tmp_path) -> None:
    (tmp_path / "wrong.c").write_text("int main(void) { return missing; }\n")
    done = run("cc", "wrong.c", cwd=tmp_path)
    assert done.returncode == 1
    assert "missing" in done.stderr


STANDARDS = [
    ("leaky_relu.c", "-std=c11"),
    ("leaky_relu.c", "-std=c17"),
    *(("leaky_relu.cpp", f"-std=c++{year}") for year in (11, 14, 17, 20)),
]


@needs("cc", "c++")
@pytest.mark.parametrize(("source", "standard"), STANDARDS)
@pytest.mark.parametrize("abi", [0, 1])
def test_standards(source, standard, abi, tmp_path) -> None:
    """Every standard, and both settings of the C++ library, without a warning."""
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-D_GLIBCXX_USE_CXX11_ABI={abi}"]
    built = run("cc", standard, *strict, EXAMPLES / source, "-o", "program", cwd=tmp_path)
    assert (built.returncode, built.stderr) == (0, "")
    alone = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}  # the rpath suffices
    done = subprocess.run(["./program"], cwd=tmp_path, env=alone, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith("-1 1\n" if source.endswith(".c") else "result[0] = -0.3\n")


# ---- CMake and pkg-config ----

PROJECT = """
cmake_minimum_required(VERSION 3.14)
project(prog LANGUAGES CXX)
find_package(openaclnn 0.1 REQUIRED)
find_package(openaclnn REQUIRED)  # a second time, as subprojects do
foreach(name ascendcl acl_rt nnopbase opapi opapi_nn opapi_math acl_op_compiler)
  if(NOT TARGET openaclnn::${name})
    message(FATAL_ERROR "no openaclnn::${name}")
  endif()
endforeach()
message(STATUS "found: ${ASCEND_HOME_PATH} ${ASCEND_PATH} ${openaclnn_VERSION}")
add_executable(whole prog.cpp)
target_link_libraries(whole PRIVATE ${openaclnn_LIBRARIES})
add_executable(parts prog.cpp)
target_link_libraries(parts PRIVATE openaclnn::opapi openaclnn::acl_rt openaclnn::nnopbase)
"""


@pytest.fixture
def moved(tmp_path) -> Path:
    """The installation directory at another place, with a space in its name."""
    place = tmp_path / "another place"
    shutil.copytree(HOME, place)
    return place


@needs("cmake", "c++")
def test_cmake_package(moved, tmp_path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    shutil.copy(EXAMPLES / "leaky_relu.cpp", tmp_path / "prog.cpp")
    configure = ["cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={moved}"]
    printed = subprocess.run(configure, cwd=tmp_path, capture_output=True, text=True, check=True)
    version = openaclnn.config()["version"]
    assert f"found: {moved} {moved} {version}\n" in printed.stdout
    subprocess.run(
        ["cmake", "--build", "build"], cwd=tmp_path, capture_output=True, check=True, timeout=300
    )
    for program in ("whole", "parts"):
        done = subprocess.run([tmp_path / "build" / program], capture_output=True, text=True)
        assert done.stdout.startswith("result[0] = -0.3\n")


@needs("cmake")
def test_cmake_package_of_another_version(tmp_path) -> None:
    project = "cmake_minimum_required(VERSION 3.14)\nproject(p LANGUAGES NONE)\n"
    (tmp_path / "CMakeLists.txt").write_text(project + "find_package(openaclnn 99 REQUIRED)\n")
    configure = ["cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={HOME}"]
    printed = subprocess.run(configure, cwd=tmp_path, capture_output=True, text=True)
    assert printed.returncode != 0
    assert f"version: {openaclnn.config()['version']}" in printed.stderr


@needs("pkg-config", "c++")
def test_pkg_config(moved, tmp_path) -> None:
    variables = {**os.environ, "PKG_CONFIG_PATH": str(moved / "share" / "pkgconfig")}

    def ask(*words: str) -> str:
        command = ["pkg-config", *words, "openaclnn"]
        return subprocess.run(
            command, env=variables, check=True, capture_output=True, text=True
        ).stdout.strip()

    assert ask("--modversion") == openaclnn.config()["version"]
    flags = shlex.split(ask("--cflags", "--libs"))
    source = EXAMPLES / "leaky_relu.cpp"
    subprocess.run(["c++", source, *flags, "-o", "program"], cwd=tmp_path, check=True)
    alone = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    lost = subprocess.run([tmp_path / "program"], env=alone, capture_output=True, text=True)
    assert lost.returncode == 127
    assert "libopapi_nn.so" in lost.stderr  # as the page says, and the ways out that it names
    (libdir,) = shlex.split(ask("--variable=libdir"))
    subprocess.run(
        ["c++", source, *flags, f"-Wl,-rpath,{libdir}", "-o", "found"],
        cwd=tmp_path,
        check=True,
    )
    subprocess.run([tmp_path / "found"], env=alone, check=True, capture_output=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(moved / "lib64")}
    done = subprocess.run(
        [tmp_path / "program"], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("result[0] = -0.3\n")


# ---- the pages ----


@needs("bash", "cmake", "pkg-config", "g++")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page, tmp_path) -> None:
    """The blocks in order: CMake files are written down, commands run, programs print. Of the steps
    of CI, those that call openaclnn run."""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    assert [kind for kind, _ in blocks].count("cmake") == 2
    shutil.copy(EXAMPLES / "leaky_relu.cpp", tmp_path / "prog.cpp")
    shutil.copy(EXAMPLES / "leaky_relu.c", tmp_path / "prog.c")
    (tmp_path / "CMakeLists.txt").write_text(next(text for kind, text in blocks if kind == "cmake"))
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "openaclnn").write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    (tools / "openaclnn").chmod(0o755)
    variables = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    variables.pop("LD_LIBRARY_PATH", None)
    for kind, text in blocks:
        if kind == "cmake":
            (tmp_path / "CMakeLists.txt").write_text(text)
            shutil.rmtree(tmp_path / "build", ignore_errors=True)
            continue
        if kind == "yaml":
            kind, text = "bash", "".join(re.findall(r"- run: (openaclnn .*\n)", text))
        assert kind == "bash"
        assert text
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        runs = re.findall(r"^(?:openaclnn (?:run|check) )?(?:\./|build/)prog$", text, re.M)
        assert done.stdout.count("result[7] = 4\n") == len(runs), f"{text}\n{done.stdout}"
        tests = text.count("ctest")
        assert done.stdout.count("100% tests passed") == tests, f"{text}\n{done.stdout}"


def test_a_program_of_atens_operators_is_recognised(tmp_path):
    """By the names in its file, which end where the next begins, unless its rpath has them."""
    names = b"\0aclnnLeakyReluGetWorkspaceSize\0aclnnAddGetWorkspaceSize\0"
    folder = tmp_path / "lib64"
    folder.mkdir()
    program = tmp_path / "prog"
    program.write_bytes(b"\x7fELF" + names + bytes(folder) + b"\0")
    program.chmod(0o755)
    assert needs_aten(str(program), {}) == "aclnnAdd"
    (folder / "libaclnn_math.so").touch()
    assert needs_aten(str(program), {}) == ""
    program.write_bytes(b"#!/bin/sh\n" + names)
    assert needs_aten(str(program), {}) == ""
