# SPDX-License-Identifier: Apache-2.0
"""Every command says in one sentence that its output was lost, and its exit status is 74."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from openaclnn.commands.cli import parser
from openaclnn.report.output import NOT_WRITTEN, guarded

FULL = "/dev/full"
pytestmark = [
    pytest.mark.programs,
    pytest.mark.skipif(not Path(FULL).exists(), reason="needs /dev/full"),
]

# A call of each command that prints to standard output.
WORDS = {
    "demo": ["--op", "elu"],
    "home": [],
    "info": [],
    "ops": ["aclnnElu"],
    "plot": ["elu"],
    "compare": ["x.npy", "x.npy", "--op", "hardshrink"],
    "verify": ["--op", "elu", "--list"],
    "bench": ["elu", "--shape", "8", "--baseline", "none", "--rounds", "1"],
    "cc": ["--show", "a.c"],
    "run": ["--help"],
    "check": ["--exit-code", "0", "--json", "-", "true"],
    "trace": ["--help"],
    "npu": ["--help"],
    "completion": ["bash"],
    "docs": [],
}


def commands():
    (found,) = (action.choices for action in parser()._actions if action.dest == "==SUPPRESS==")
    return found


def test_each_command_has_words():
    assert set(WORDS) == set(commands())


def run(folder, words, before, after, buffered=True):
    """In a shell, which can close a stream: its redirections are `before` the words and `after`."""
    program = f"{before} exec {sys.executable} -m openaclnn {' '.join(words)} {after}"
    variables = os.environ | {"PYTHONUNBUFFERED": "" if buffered else "1"}
    return subprocess.run(
        ["sh", "-c", program], cwd=folder, env=variables, capture_output=True, text=True
    )


@pytest.mark.parametrize("name", [*WORDS, ""])
def test_standard_output_that_takes_nothing(name, tmp_path):
    np.save(tmp_path / "x.npy", np.full(3, 7, np.float32))
    words = [name, *WORDS[name]] if name else ["--help"]
    for way, buffered in ((f">{FULL}", True), (f">{FULL}", False), (">&-", True)):
        done = run(tmp_path, words, "", way, buffered)
        assert done.returncode == NOT_WRITTEN, done.stderr
        start = f"openaclnn{name and f' {name}'}: standard output could not be written: "
        said = [line for line in done.stderr.splitlines() if line.startswith(start)]
        assert len(said) == 1, done.stderr
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["demo", "--op", "elu", "--json", FULL],
        ["verify", "--op", "hardshrink", "--dtype", "fp16", "--html", FULL],
        ["bench", "elu", "--shape", "8", "--baseline", "none", "--rounds", "1", "--json", FULL],
    ],
    ids=lambda words: f"{words[0]} {words[-2]}",
)
def test_a_file_that_takes_nothing(words, tmp_path):
    done = run(tmp_path, words, "", "")
    sentence = f"openaclnn {words[0]}: {FULL} could not be written: No space left on device"
    assert done.returncode == NOT_WRITTEN
    assert sentence in done.stderr.splitlines()
    assert "Traceback" not in done.stderr


def test_a_closed_standard_error_leaves_files_alone(tmp_path):
    """The first file that is opened would have become descriptor 2."""
    done = run(tmp_path, ["verify", "--op", "hardshrink", "--json", "r.json"], "", "2>&-")
    assert done.returncode == 0
    assert (tmp_path / "r.json").read_text().startswith("{\n")
    done = run(tmp_path, ["ops", "no_such_operator"], "", "2>&-")
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize(
    "error",
    [
        BlockingIOError(errno.EAGAIN, "fork"),
        BrokenPipeError(errno.EPIPE, "a worker ended"),
        FileNotFoundError(errno.ENOENT, "No such file or directory", "read.json"),
    ],
    ids=repr,
)
def test_other_errors_keep_their_cause(error):
    def command():
        print("started")
        raise error

    with pytest.raises(type(error)) as raised:
        guarded("verify", command)
    assert raised.value is error


@pytest.mark.parametrize("buffered", [True, False])  # more than a buffer holds
def test_a_reader_that_has_seen_enough(buffered, tmp_path):
    after = "| true; test ${PIPESTATUS[0]} = 141"
    program = f"{sys.executable} -m openaclnn ops --aten {after}"
    variables = os.environ | {"PYTHONUNBUFFERED": "" if buffered else "1"}
    done = subprocess.run(
        ["bash", "-c", program], cwd=tmp_path, env=variables, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("buffered", [True, False])
def test_standard_error_that_takes_nothing(buffered, tmp_path):
    done = run(tmp_path, ["ops", "no_such_operator"], "", f"2>{FULL}", buffered)
    assert (done.returncode, done.stdout) == (NOT_WRITTEN, "")
