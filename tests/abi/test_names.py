# SPDX-License-Identifier: Apache-2.0
"""The names that CANN programs include and link: each header compiles alone as C11 and C++11, each
library links and loads alone, official link lines work, and the functions of the public runtime
interface are there, refused, or listed as missing.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.abi.abi import LIB, library
from tests.abi.test_symbols import exports, prototypes

import openaclnn
from openaclnn.rows import refused
from openaclnn.rows.libraries import LIBRARIES, OPERATORS
from openaclnn.rows.table import OPS

HOME = openaclnn.home()
INCLUDE = [f"-I{HOME}/include", f"-I{HOME}/include/aclnn", f"-I{HOME}/include/aclnnop"]
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
LANGUAGES = {"c11": ["gcc", "-x", "c", "-std=c11"], "c++11": ["g++", "-x", "c++", "-std=c++11"]}
HEADERS = sorted(str(path.relative_to(HOME / "include")) for path in HOME.glob("include/**/*.h"))
MOST_PARAMETERS = 24  # of a function that is refused
LINES = [
    "-lopapi_nn -lopapi_math -lascendcl -lnnopbase",
    "-lopapi_cv -lascendcl -lnnopbase",
    "-lopapi -lopapi_transformer -lascendcl -lnnopbase -lpthread -lhccl",
    "-lopapi -lop_common -lnnopbase -lascendcl",
    "-lacl_rt -lnnopbase -lopapi -lacl_tdt_channel -lacl_tdt_queue",
    "-lacl_rt -lascend_dump -lc_sec",
    "-lascendcl -lmsprofiler -lprofapi",
    "-lascendcl -lacl_op_compiler -lplatform -lascend_hal -lruntime",
]

pytestmark = [
    pytest.mark.programs,
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs gcc and g++"),
]


def build(language: str, text: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    source = folder / "program.txt"
    source.write_text(text)
    command = [*LANGUAGES[language], *STRICT, *INCLUDE, str(source), "-x", "none", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def link(language: str, text: str, folder: Path, libraries: str) -> None:
    """Builds with these libraries alone, and runs."""
    words = [f"-L{LIB}", f"-Wl,-rpath,{LIB}", "-Wl,--no-as-needed", *libraries.split()]
    built = build(language, text, folder, *words, "-o", "program")
    assert (built.returncode, built.stderr) == (0, "")
    alone = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    done = subprocess.run([folder / "program"], env=alone, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("header", HEADERS)
def test_each_header_compiles_alone_and_twice(header, language, tmp_path):
    text = f'#include "{header}"\n#include "{header}"\nint main(void) {{ return 0; }}\n'
    built = build(language, text, tmp_path, "-fsyntax-only")
    assert (built.returncode, built.stderr) == (0, "")


@pytest.mark.parametrize("language", LANGUAGES)
def test_headers_of_operators_under_both_names(language, tmp_path):
    names = [h for h in HEADERS if h.startswith("aclnnop/level2/")]
    assert {h.replace("level2/", "") for h in names} <= set(HEADERS)
    assert {f"aclnnop/{op.header}" for op in OPS} <= set(HEADERS)
    text = "".join(f'#include "{h}"\n' for h in names) + "int main(void) { return 0; }\n"
    built = build(language, text, tmp_path, "-fsyntax-only")
    assert (built.returncode, built.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "language"), [*((name, "c11") for name in LIBRARIES), (OPERATORS[0], "c++11")]
)
def test_each_library_links_alone(name, language, tmp_path):
    declared = [f for f in exports(name) if f in prototypes()]
    assert bool(declared) == bool(LIBRARIES[name])
    linkage = 'extern "C" ' if language == "c++11" else "extern "
    chosen = declared[:3]
    texts = "".join(f"{linkage}void {f}(void);\n" for f in chosen)
    table = f"void (*volatile used[])(void) = {{{', '.join(chosen)}}};\n" if chosen else ""
    body = "return used[0] == 0;" if chosen else "return 0;"
    link(language, f"{texts}{table}int main(void) {{ {body} }}\n", tmp_path, f"-l{name}")


@pytest.mark.parametrize("line", LINES)
def test_official_link_lines(line, tmp_path):
    text = """
#include "acl/acl.h"
#include "aclnnop/aclnn_leaky_relu.h"
int main(void) { return aclInit(0) == 0 && aclFinalize() == 0 ? 0 : 1; }
"""
    link("c11", text, tmp_path, line)


def test_libraries_of_operators_have_them_all():
    assert len({tuple(exports(name)) for name in OPERATORS}) == 1
    assert "aclnnLeakyRelu" in exports("opapi_cv")


# ---- half floats of C++ programs ----


def test_fp16(tmp_path):
    text = """
#include "aclnn/opdev/fp16_t.h"
#include <cmath>
int main() {
  const float values[] = {0.0f, -1.5f, 65504.0f, 65519.0f, 65520.0f, 1e-8f, 6e-8f, 1.0009766f};
  const unsigned bits[] = {0, 0xbe00, 0x7bff, 0x7bff, 0x7c00, 0, 1, 0x3c01};
  for (int i = 0; i < 8; ++i)
    if (op::fp16_t(values[i]).val != bits[i]) return 1 + i;
  for (unsigned i = 0; i < 65536; ++i) {
    const op::fp16_t x = op::fp16_t::from_bits(static_cast<uint16_t>(i));
    if (!std::isnan(x.toFloat()) && op::fp16_t(x.toFloat()).val != i) return 20;
  }
  return (op::fp16_t(1.5f) + op::fp16_t(2)).toFloat() == 3.5f ? 0 : 21;
}
"""
    link("c++11", text, tmp_path, "")


# ---- the functions of the interface ----

# What is not here yet, by the beginning of the name.
MISSING = {
    "aclmdlInitDump": "only torch_npu calls it (lib64/npu)",
    "aclmdlSetDump": "only torch_npu calls it (lib64/npu)",
    "aclmdlFinalizeDump": "only torch_npu calls it (lib64/npu)",
}


def interface() -> dict[str, str]:
    text = (Path(__file__).parent / "runtime_functions.txt").read_text(encoding="utf-8")
    return {name: rank for rank, name in re.findall(r"^([A-DR]) (\w+)$", text, re.M)}


def test_the_interface_is_there_or_listed():
    declared = prototypes()
    needed = {name for name, rank in interface().items() if rank in "ABDR"}
    lacking = {name for name in needed - set(declared) if not name.startswith(tuple(MISSING))}
    assert lacking == set()
    unused = [start for start in MISSING if not any(n.startswith(start) for n in needed)]
    assert unused == []


def test_what_is_refused_is_declared():
    declared = prototypes()
    names = [name for name in declared if refused.group(name)]
    assert len(names) > 100
    assert {rank for name, rank in interface().items() if rank == "R" and name in declared} == {"R"}
    works = [
        n for n, rank in interface().items() if rank == "R" and n in declared and n not in names
    ]
    assert works == []


def test_what_is_refused_says_so():
    """Called with nothing: a status, and a sentence with the function's name."""
    acl = library("ascendcl")
    acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
    checked = 0
    for name, prototype in prototypes().items():
        if not refused.group(name):
            continue
        function = getattr(acl, name)
        function.restype = ctypes.c_void_p if "*" in prototype.partition(name)[0] else ctypes.c_int
        acl.aclGetRecentErrMsg()
        returned = function(*[ctypes.c_void_p(0)] * MOST_PARAMETERS)
        sentence = acl.aclGetRecentErrMsg()
        assert sentence, name
        assert f" {name}: " in sentence.decode(), sentence
        if prototype.startswith(("aclError", "HcclResult")):
            assert returned != 0, name
        checked += 1
    assert checked > 100


def test_the_page_lists_the_functions():
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, root / "tools" / "docs" / "runtime_functions.py"]
    page = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert page == (root / "docs" / "reference" / "runtime_functions.md").read_text(
        encoding="utf-8"
    ), "run python tools/docs/refresh.py"
    assert all(f"`{name}`" in page for name in prototypes() if name.startswith(("aclrt", "Hccl")))
