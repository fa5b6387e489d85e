# SPDX-License-Identifier: Apache-2.0
"""C and C++ programs against the installation directory.

The official build line and its variants, the headers in both languages, every library by dlopen.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.abi.abi import LIB, NAMES
from tests.abi.test_symbols import exports

import openaclnn
from openaclnn.rows.table import OPS

pytestmark = pytest.mark.programs

HOME = openaclnn.home()
SOURCES = sorted(
    p for p in (Path(__file__).parents[1] / "c").iterdir() if p.suffix in (".c", ".cpp")
)
INCLUDES = [f"-I{HOME}/include", f"-I{HOME}/include/aclnn", f"-I{HOME}/include/aclnnop"]
LINKS = {
    "official": "-lopapi_nn -lopapi_math -lascendcl -lnnopbase",
    "acl_rt": "-lopapi_nn -lopapi_math -lacl_rt -lnnopbase",
    "opapi": "-lopapi -lacl_rt -lnnopbase",
}
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]

OPEN = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char** words) {
  void* handle = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) return puts(dlerror()), 1;
  for (int i = 2; i < count; ++i) {
    if (dlsym(handle, words[i]) == NULL) return puts(words[i]), 2;
  }
  return 0;
}
"""
CLOSE = """
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#define GET(handle, type, name) type name = (type)dlsym(handle, #name)
typedef int (*Set)(int);
typedef int (*Malloc)(void**, size_t, int);
typedef int (*Memset)(void*, size_t, int, size_t);
int main(void) {
  void* acl = dlopen("libascendcl.so", RTLD_NOW | RTLD_LOCAL);
  if (acl == NULL) return puts(dlerror()), 1;
  GET(acl, Set, aclrtSetDevice);
  GET(acl, Malloc, aclrtMalloc);
  GET(acl, Memset, aclrtMemset);
  void* data;
  if (aclrtSetDevice(0) || aclrtMalloc(&data, 1 << 20, 0) || aclrtMemset(data, 1 << 20, 1, 1 << 20))
    return 2;
  dlclose(acl);
  usleep(1000);
  return 0;
}
"""
FIRST_CALL = """
#include <stdio.h>
#include "acl/acl.h"
#include "aclnnop/aclnn_ops_nn.h"
int main(void) {
  uint64_t size = 1;
  aclOpExecutor* executor = 0;
  if (aclrtSetDevice(0) != ACL_SUCCESS) return 1;
  if (PHASE1(NULL_ARGUMENTS &size, &executor) != ACLNN_ERR_PARAM_NULLPTR) return 2;
  printf("%s", aclGetRecentErrMsg());
  return aclrtResetDevice(0);
}
"""


def compiler(language: str) -> str:
    names = ("gcc", "cc", "clang") if language == "c" else ("g++", "c++", "clang++")
    found = next(filter(None, map(shutil.which, names)), None)
    assert found, f"no compiler for {language}: install one of {', '.join(names)}"
    return found


def build(source: Path, *options: str) -> None:
    command = [compiler("c" if source.suffix == ".c" else "c++"), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"


def run(program: Path, *words: str) -> str:
    environment = os.environ | {"LD_LIBRARY_PATH": str(LIB)}
    done = subprocess.run(
        [program, *words], env=environment, capture_output=True, text=True, timeout=120
    )
    report = f"{program.name} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    assert done.returncode == 0, report
    return done.stdout


@pytest.fixture(scope="module")
def first_call(tmp_path_factory):
    """A program that fails phase 1 of the first row and prints the message."""
    op = OPS[0]
    values = {"tensor": "0, ", "scalar": "0, ", "text": "0, ", "double": "0.0, ", "bool": "0, "}
    arguments = "".join(values.get(p.kind, "0, ") for p in op.parameters)
    text = FIRST_CALL.replace("PHASE1", op.name + "GetWorkspaceSize")
    folder = tmp_path_factory.mktemp("programs")
    for suffix in (".c", ".cpp"):
        (folder / f"first{suffix}").write_text(text.replace("NULL_ARGUMENTS ", arguments))
    return folder


def assert_refused(output: str) -> None:
    assert output.endswith(f"{OPS[0].name}: {OPS[0].parameters[0].name} must not be NULL\n"), output


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_program(source, tmp_path):
    program = tmp_path / source.stem
    standard = "-std=c11" if source.suffix == ".c" else "-std=c++17"
    links = [*LINKS["official"].split(), "-lhccl", "-ldl", "-pthread"]
    build(source, standard, str(source), "-o", str(program), *INCLUDES, f"-L{LIB}", *links)
    run(program)


@pytest.mark.parametrize("links", LINKS)
def test_build_lines(first_call, links, tmp_path):
    source, program = first_call / "first.cpp", tmp_path / "program"
    options = [str(source), *INCLUDES, f"-L{LIB}", *LINKS[links].split(), "-o", str(program)]
    build(source, *options)
    assert_refused(run(program))


def test_absolute_paths(first_call, tmp_path):
    source, program = first_call / "first.cpp", tmp_path / "program"
    names = ("ascendcl", "nnopbase", "opapi_math", "opapi_nn")
    libraries = [str(LIB / f"lib{name}.so") for name in names]
    build(source, "-std=c++11", str(source), *INCLUDES, *libraries, "-o", str(program))
    assert_refused(run(program))


@pytest.mark.parametrize("suffix", [".c", ".cpp"])
def test_calls_without_warnings(first_call, suffix, tmp_path):
    source = first_call / f"first{suffix}"
    standard = "-std=c11" if suffix == ".c" else "-std=c++11"
    build(source, standard, *WARNINGS, "-fsyntax-only", *INCLUDES, str(source))


def test_dlopen_of_each_name_alone(tmp_path):
    source, program = tmp_path / "open.c", tmp_path / "open"
    source.write_text(OPEN)
    build(source, "-std=c11", *WARNINGS, str(source), "-o", str(program), "-ldl")
    for name in NAMES:
        run(program, f"lib{name}.so", *exports(name))


def test_dlclose_leaves_the_library_to_its_threads(tmp_path):
    source, program = tmp_path / "close.c", tmp_path / "close"
    source.write_text(CLOSE)
    build(source, str(source), "-o", str(program), "-ldl")
    run(program)
    assert subprocess.run(
        ["readelf", "-d", LIB / "libopenaclnn.so"], capture_output=True, text=True, check=True
    ).stdout.count("NODELETE")
