# SPDX-License-Identifier: Apache-2.0
"""The public surface: the exports of libraries and the declarations of headers equal
tests/abi/snapshot.txt.

`python -m tests.abi.test_symbols` rewrites the snapshot; its diff is the change of the contract.
Whichever of the names a program loads, there is one state behind them, shared with Python.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.abi.abi import LIB, NAMES, acl, library, objects, ops, phase1, synchronize
from tests.aten.aten_support import command
from tests.support import arguments

import openaclnn
from openaclnn.rows.table import OPS

SNAPSHOT = Path(__file__).parent / "snapshot.txt"
DECLARATION = re.compile(r"^(?:ACL_FUNC_VISIBILITY|ACLNN_API)\s+([^;{]*?\b(\w+)\([^;]*\));", re.M)


def exports(name: str, folder: str = "") -> list[str]:
    nm = shutil.which("nm")
    assert nm, "nm is not installed: the exported symbols cannot be compared (install binutils)"
    command = [nm, "-D", "--defined-only", "--format=posix", str(LIB / folder / f"lib{name}.so")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted(line.split()[0] for line in lines)


def prototypes() -> dict[str, str]:
    """Function name -> prototype on one line, from the installed headers."""
    found: dict[str, str] = {}
    for header in sorted((openaclnn.home() / "include").rglob("*.h")):
        for prototype, name in DECLARATION.findall(header.read_text()):
            found[name] = " ".join(prototype.split())
    return found


def snapshot() -> str:
    """Libraries with the same exports share a section."""
    declared = prototypes()
    sections: dict[tuple[str, ...], list[str]] = {}
    for name in NAMES:
        sections.setdefault(tuple(exports(name)), []).append(f"lib{name}.so")
    text = ""
    for symbols, libraries in sections.items():
        text += f"# {' '.join(libraries)}\n"
        text += "".join(f"{declared.get(symbol, symbol + ' (undeclared)')}\n" for symbol in symbols)
        text += "\n"
    return text


def test_the_surface_is_as_it_was():
    assert snapshot() == SNAPSHOT.read_text(), "see the first lines of tests/abi/test_symbols.py"


def test_every_declared_function_is_exported():
    exported = {symbol for name in NAMES for symbol in exports(name)}
    assert set(prototypes()) == exported


# ---- one state per process ----


def test_every_name_is_there():
    for name in NAMES:
        assert (LIB / f"lib{name}.so").is_file(), f"lib{name}.so is missing from {LIB}"


@pytest.mark.usefixtures("device")
def test_memory_of_one_name_is_freed_by_another():
    address = ctypes.c_void_p()
    assert library("acl_rt").aclrtMalloc(ctypes.byref(address), ctypes.c_size_t(100), 0) == 0
    assert library("ascendcl").aclrtFree(address) == 0
    assert library("acl_rt").aclrtFree(address) != 0
    assert b"aclrtFree" in acl.aclGetRecentErrMsg()


def test_a_failure_of_one_name_is_told_by_another():
    reader = library("acl_rt").aclGetRecentErrMsg
    reader.restype = ctypes.c_char_p
    for name in ("opapi", "opapi_nn"):
        function = getattr(library(name), OPS[0].name)
        assert function(None, ctypes.c_uint64(0), None, None) == 161001
        assert reader().decode().endswith(f"{OPS[0].name}: executor must not be NULL\n")
        assert reader() == b""


def test_python_and_c_share_the_product():
    for product in openaclnn.products():
        openaclnn.set_product(product.key)
        assert acl.aclrtGetSocName().decode() == product.soc_name


def test_python_takes_its_own_messages():
    refused = arguments(OPS[0]) | {"out": np.ones(1, np.int8)}
    with pytest.raises(openaclnn.AclnnError):
        openaclnn.plan(OPS[0].name, **refused)
    assert acl.aclGetRecentErrMsg() == b""


@pytest.mark.usefixtures("device")
def test_an_executor_of_one_name_runs_through_another():
    op = OPS[0]
    with objects() as made:
        _, _, executor = phase1(op, made.values(op, arguments(op)))
        assert ops._name != library("opapi")._name
        run_there = getattr(library("opapi"), op.name)
        assert run_there(None, ctypes.c_uint64(0), ctypes.c_void_p(executor), None) == 0
        synchronize()


@pytest.mark.programs
@pytest.mark.skipif(shutil.which("nm") is None, reason="nm of binutils is not installed")
def test_the_library_of_aten_has_no_local_static_with_a_guard():
    """A child of fork could wait for it for ever (core/support/no_destructor.h). Other libraries:
    tests/c/local_statics.cmake."""
    home = Path(command("home", "--aten").stdout.strip())
    library = home / "lib64" / "libaclnn_math.so"
    done = subprocess.run(["nm", "-C", library], capture_output=True, text=True, check=True)
    assert " openaclnn::aten::" in done.stdout
    assert re.findall("guard variable for (openaclnn::.*)", done.stdout) == []


if __name__ == "__main__":
    SNAPSHOT.write_text(snapshot())
