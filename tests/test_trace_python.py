# SPDX-License-Identifier: Apache-2.0
"""openaclnn trace of Python programs: calls of the package, with their arguments, file and line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """\
import numpy as np
import openaclnn

x = np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4)
y = openaclnn.elu(
    x, alpha=1.5)
openaclnn.elu(x.T)
try:
    openaclnn.leaky_relu(x, out=np.empty((3, 2), np.float32))
except openaclnn.AclnnError as error:
    print(error)
plan = openaclnn.plan("elu", x, 1.0, 1.0, 1.0, y)
plan.run()
stream = openaclnn.Stream()
plan.run(stream)
stream.synchronize()
"""
SENTENCE = "aclnnLeakyRelu: out must have the shape of self [2, 4], but got [3, 2]"


@pytest.fixture(scope="module")
def traced(tmp_path_factory) -> tuple[Path, str, str, list[dict]]:
    """The program, what it printed, the lines of the trace, and the events of the trace file."""
    folder = tmp_path_factory.mktemp("traced")
    program = folder / "program.py"
    program.write_text(PROGRAM)
    words = ["trace", "-o", str(folder / "trace.json"), sys.executable, str(program)]
    done = subprocess.run(
        [sys.executable, "-m", "openaclnn", *words],
        capture_output=True, text=True, timeout=120, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    events = json.loads((folder / "trace.json").read_text())
    return program, done.stdout, done.stderr, [e for e in events if e["ph"] == "X"]


def test_calls_have_arguments_file_and_line(traced):
    program, _, _, events = traced
    host = [event for event in events if event["pid"] == 1]
    assert [event["name"] for event in host] == [
        "aclnnElu", "aclnnElu", "aclnnLeakyRelu", "aclnnEluGetWorkspaceSize", "aclnnElu",
        "aclnnElu",
    ]  # fmt: skip
    assert {event["args"]["file"] for event in host} == {str(program)}
    lines = PROGRAM.splitlines()
    for event, text in zip(
        host, ["elu(", "elu(x.T", "leaky", "plan(", "run()", "(stream"], strict=True
    ):
        assert text in lines[event["args"]["line"] - 1]
    first, transposed = host[0]["args"], host[1]["args"]
    assert re.fullmatch(r"FLOAT \[2, 4\] at 0x[0-9a-f]+", first["self"])
    assert first["alpha"] == "DOUBLE 1.5"
    assert "FLOAT [4, 2] strides [1, 4] at" in transposed["self"]
    assert first["returned"] == "done"
    assert all(event["ts"] >= 0 for event in host)


def test_a_refused_call_shows_what_it_raised(traced):
    _, printed, text, events = traced
    assert printed == f"{SENTENCE}\n"
    (refused,) = [event for event in events if event["name"] == "aclnnLeakyRelu"]
    assert refused["args"]["returned"] == f"raised AclnnError: {SENTENCE}"
    assert f"= raised AclnnError: {SENTENCE}\n" in text


def test_the_table_counts_calls_and_work_of_streams(traced):
    _, _, text, events = traced
    assert re.search(r"^host +aclnnElu +4 ", text, re.M)
    assert re.search(r"^stream 1 +aclnnElu +1 ", text, re.M)
    assert [event["name"] for event in events if event["pid"] == 2] == ["aclnnElu"]


def test_the_page_shows_calls_of_this_program(traced):
    program, _, text, _ = traced
    page = Path(__file__).parents[1].joinpath("docs", "trace.md").read_text(encoding="utf-8")
    section = re.search(r"## Python programs\n(.*?)\n## ", page, re.S)[1]

    def normal(part: str) -> list[str]:
        calls = re.findall(r" us  (host .*)", part)
        return [re.sub(r"0x\w+| +[\d.]+ us", "", call.replace(str(program), "program.py"))
                for call in calls]  # fmt: skip

    assert len(normal(section)) == 2
    assert set(normal(section)) <= set(normal(text))
