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

pytestmark = pytest.mark.programs

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
for wrong in (x.astype(np.int32), [1.5]):
    try:
        openaclnn.hardshrink(wrong)
    except (openaclnn.AclnnError, TypeError) as error:
        print(error)
try:
    openaclnn.plan("logit", x, "small", y)
except TypeError as error:
    print(error)
y.resize((3, 3), refcheck=False)
try:
    plan.run()
except openaclnn.AclnnError as error:
    print(error)
"""
TORCH_PROGRAM = """\
import torch
import openaclnn.torch

x = torch.linspace(-2, 2, 6).reshape(2, 3)
torch.ops.openaclnn.elu(x, 1.5)
try:
    torch.ops.openaclnn.elu_backward(x, 1.0, 1.0, 1.0, False, x[:1])
except ValueError as error:
    print(error)
"""
JAX_PROGRAM = """\
import jax
import jax.numpy as jnp
import openaclnn.jax

print(jax.jit(openaclnn.jax.elu)(jnp.linspace(-2, 2, 6)).size)
"""
SENTENCE = "aclnnLeakyRelu: out must have the shape of self [2, 4], but got [3, 2]"


def trace(folder: Path, text: str) -> tuple[Path, str, str, list[dict]]:
    """The program, what it printed, the lines of the trace, and the events of the trace file."""
    program = folder / "program.py"
    program.write_text(text)
    words = ["trace", "-o", str(folder / "trace.json"), sys.executable, str(program)]
    done = subprocess.run(
        [sys.executable, "-m", "openaclnn", *words],
        capture_output=True, text=True, timeout=120, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return program, done.stdout, done.stderr, json.loads((folder / "trace.json").read_text())


@pytest.fixture(scope="module")
def everything(tmp_path_factory) -> tuple[Path, str, str, list[dict]]:
    return trace(tmp_path_factory.mktemp("traced"), PROGRAM)


@pytest.fixture(scope="module")
def traced(everything) -> tuple[Path, str, str, list[dict]]:
    """Without arrows and names of tracks."""
    program, printed, text, events = everything
    return program, printed, text, [event for event in events if event["ph"] == "X"]


def test_calls_have_arguments_file_and_line(traced):
    program, _, _, events = traced
    host = [event for event in events if event["pid"] == 1]
    assert [event["name"] for event in host] == [
        "aclnnElu", "aclnnElu", "aclnnLeakyRelu", "aclnnEluGetWorkspaceSize", "aclnnElu",
        "aclnnElu", "aclnnHardshrink", "aclnnHardshrink", "aclnnLogitGetWorkspaceSize", "aclnnElu",
    ]  # fmt: skip
    assert {event["args"]["file"] for event in host} == {str(program)}
    lines = PROGRAM.splitlines()
    calls = ["elu(", "elu(x.T", "leaky", "plan(", "run()", "(stream", "wrong)", "wrong)"]
    for event, text in zip(host, [*calls, 'plan("logit"', "plan.run()"], strict=True):
        assert text in lines[event["args"]["line"] - 1]
    first, transposed = host[0]["args"], host[1]["args"]
    assert re.fullmatch(r"FLOAT \[2, 4\] at 0x[0-9a-f]+", first["self"])
    assert first["alpha"] == "DOUBLE 1.5"
    assert "FLOAT [4, 2] strides [1, 4] at" in transposed["self"]
    assert first["returned"] == "done"
    assert all(event["ts"] >= 0 for event in host)


def test_a_refused_call_shows_what_it_raised(traced):
    _, printed, text, events = traced
    assert printed.splitlines()[0] == SENTENCE
    (refused,) = [event for event in events if event["name"] == "aclnnLeakyRelu"]
    assert refused["args"]["returned"] == f"raised AclnnError: {SENTENCE}"
    assert f"= raised AclnnError: {SENTENCE}\n" in text


def test_a_call_that_is_refused_early_shows_what_it_was_given(traced):
    """A wrong dtype and a wrong type are noticed before there are arguments of phase 1."""
    _, printed, _, events = traced
    dtype, kind = [event["args"] for event in events if event["name"] == "aclnnHardshrink"]
    (small,) = [event["args"] for event in events if event["name"].startswith("aclnnLogit")]
    sentences = printed.splitlines()[1:4]
    assert [dtype["self"], dtype["lambd"], dtype["out"]] == ["ndarray int32 [2, 4]", "0.5", "None"]
    assert dtype["returned"] == f"raised AclnnError: {sentences[0]}"
    assert kind["self"] == "list"
    assert kind["returned"] == f"raised TypeError: {sentences[1]}"
    assert small["eps"] == "'small'"
    assert small["returned"] == f"raised TypeError: {sentences[2]}"


def test_runs_of_a_plan_show_its_arguments(everything):
    *_, events = everything
    calls = [event for event in events if event["ph"] == "X"]
    planned = next(e["args"] for e in calls if e["name"] == "aclnnEluGetWorkspaceSize")
    in_place, on_stream, refused = [e for e in calls if e["name"] == "aclnnElu" and e["pid"] == 1][
        2:
    ]
    (work,) = [e for e in calls if e["pid"] == 2]
    for name in ("self", "alpha", "scale", "inputScale", "out"):
        assert {e["args"][name] for e in (in_place, on_stream, refused, work)} == {planned[name]}
    assert "stream" not in in_place["args"]
    assert on_stream["args"]["stream"] == "stream 1"
    assert "out must keep its memory" in refused["args"]["returned"]
    submits = [event for event in events if event["name"] == "submits"]
    start, end = sorted(submits, key=lambda event: event["ts"])  # the call may return last
    assert (start["ph"], start["pid"], start["ts"]) == ("s", 1, on_stream["ts"])
    assert (end["ph"], end["pid"], end["ts"]) == ("f", 2, work["ts"])
    assert start["id"] == end["id"]


def test_operators_of_torch_are_traced(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    _, printed, _, events = trace(tmp_path, TORCH_PROGRAM)
    elu, backward = [event for event in events if event["ph"] == "X"]
    assert elu["name"] == "aclnnElu"
    assert re.fullmatch(r"FLOAT \[2, 3\] at 0x[0-9a-f]+", elu["args"]["self"])
    assert (elu["args"]["alpha"], elu["args"]["returned"]) == ("DOUBLE 1.5", 0)
    assert backward["name"] == "aclnnEluBackward"
    assert "FLOAT [1, 3]" in backward["args"]["selfOrResult"]
    assert "161002: aclnnEluBackward: selfOrResult must have" in backward["args"]["returned"]
    assert "elu_backward: self_or_result must have" in printed


def test_operators_of_jax_are_traced(tmp_path):
    pytest.importorskip("jax", reason="jax is not installed")
    _, printed, _, events = trace(tmp_path, JAX_PROGRAM)
    calls = [event for event in events if event["ph"] == "X"]
    (elu,) = [event for event in calls if event["name"] == "aclnnElu"]
    assert re.fullmatch(r"FLOAT \[6\] at 0x[0-9a-f]+", elu["args"]["self"])
    assert elu["args"]["returned"] == 0
    assert printed == "6\n"


def test_the_table_counts_calls_and_work_of_streams(traced):
    _, _, text, events = traced
    assert re.search(r"^host +aclnnElu +5 ", text, re.M)
    assert re.search(r"^stream 1 +aclnnElu +1 ", text, re.M)
    assert [event["name"] for event in events if event["pid"] == 2] == ["aclnnElu"]


def test_the_page_shows_calls_of_this_program(traced):
    program, _, text, _ = traced
    page = (
        Path(__file__).parents[2].joinpath("docs", "howto", "trace.md").read_text(encoding="utf-8")
    )
    section = re.search(r"## Python programs\n(.*?)\n## ", page, re.S)[1]

    def normal(part: str) -> list[str]:
        calls = re.findall(r" µs  (host .*)", part)
        return [re.sub(r"0x\w+| +[\d.]+ µs", "", call.replace(str(program), "program.py"))
                for call in calls]  # fmt: skip

    assert len(normal(section)) == 4
    assert set(normal(section)) <= set(normal(text))
