# SPDX-License-Identifier: Apache-2.0
"""The comparison of builds (bits/): it computes what Python does, and a difference shows."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.bits import compare
from tests.support import bits, plan

import openaclnn
from openaclnn.rows.table import OPS

pytestmark = pytest.mark.programs

HOME = openaclnn.home()


@pytest.fixture(scope="module")
def made():
    return list(compare.calls())


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_c_symbols_compute_what_python_does(made, tmp_path: Path):
    (tmp_path / "generated").mkdir()
    names = "".join(f"OPERATOR({op.name})\n" for op in OPS)
    (tmp_path / "generated" / "names.inc").write_text(names)
    command = ["g++", "-std=c++17", Path(compare.__file__).with_name("run_calls.cpp")]
    command += [f"-I{HOME}/include", f"-I{tmp_path}", f"-L{HOME}/lib64", "-o", tmp_path / "run"]
    command += ["-lopapi_nn", "-lascendcl", "-lnnopbase", f"-Wl,-rpath,{HOME}/lib64"]
    subprocess.run(command, check=True)
    file = tmp_path / "calls"
    file.write_bytes(b"".join(one.encoded() for one in made))
    written = compare.by_call(made, compare.results([str(tmp_path / "run")], {}, file))
    here = []
    for one in made:
        plan(one.op, one.arguments).run()
        here.append([bits(compare.storage(x)) for x in one.written])
    assert compare.differences(made, here, written) == []
    assert any(x.any() for tensors in written for x in tensors)


def test_every_row_dtype_and_attribute_set_is_called(made):
    assert {(one.op.name, one.dtype) for one in made} == {
        (op.name, d) for op in OPS for d in op.dtypes
    }


def test_one_other_bit_is_reported_with_the_operator(made):
    last = made[-1]
    size = compare.storage(last.written[0]).size
    good = [[bits(np.zeros_like(compare.storage(x))) for x in one.written] for one in made]
    bad = [[x.copy() for x in tensors] for tensors in good]
    bad[-1][0][size // 2] ^= 1
    (sentence,) = compare.differences(made, good, bad)
    head = f"{last.op.name} {last.dtype} ({last.what}): {last.op.outputs[0].name} has other bits"
    assert sentence == f"{head} in 1 of {size} places, first [{size // 2}]: 0x0 and 0x1"
    unequal = {
        key
        for key, digest in compare.digests(made, good).items()
        if compare.digests(made, bad)[key] != digest
    }
    assert unequal == {(last.op.name, last.dtype)}
