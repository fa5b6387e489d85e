# SPDX-License-Identifier: Apache-2.0
"""Collectives of C++ programs: they work with `home --aten`, and say what is missing without it."""

from __future__ import annotations

import subprocess

import pytest
from tests.aten.aten_support import ROOT, alone, command

SOURCE = ROOT / "tests" / "aten" / "programs" / "collectives.cpp"
WORDS = ("-std=c++17", "-Wall", "-Wextra", "-Werror", "-lhccl")

pytestmark = pytest.mark.programs


@pytest.mark.parametrize("what", ["process", "processes"])
def test_collectives(what, tmp_path):
    built = command("cc", "--aten", SOURCE, *WORDS, "-o", tmp_path / "program")
    assert (built.returncode, built.stderr) == (0, "")
    variables = {**alone(), "OPENACLNN_DEVICES": "2"}
    words = [tmp_path / "program", what]
    done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")


# torch warns of each connection that fails, on stderr.
def test_forged_root_infos(tmp_path):
    built = command("cc", "--aten", SOURCE, *WORDS, "-o", tmp_path / "program")
    assert (built.returncode, built.stderr) == (0, "")
    variables = {**alone(), "HCCL_CONNECT_TIMEOUT": "2"}
    words = [tmp_path / "program", "forged"]
    done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


def test_without_the_library_they_are_refused(tmp_path):
    built = command("cc", SOURCE, *WORDS, "-o", tmp_path / "program")
    assert (built.returncode, built.stderr) == (0, "")
    words = [tmp_path / "program", "refused"]
    done = subprocess.run(words, env=alone(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "HCCL backend not loaded; build the program with `openaclnn cc --aten`" in done.stdout
