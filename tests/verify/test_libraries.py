# SPDX-License-Identifier: Apache-2.0
"""openaclnn verify against libraries: a right one passes; one that is wrong in one operator and
dtype is found out, whatever it does, and everything else is verified all the same."""

from __future__ import annotations

import ctypes
import json
import mmap
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import openaclnn
from openaclnn.commands.cc import compile_command
from openaclnn.commands.cli import main
from openaclnn.verify.cases import SCHEMA
from openaclnn.verify.worker.library import Refused
from openaclnn.verify.worker.memory import Arena

SOURCE = Path(__file__).with_name("broken_library.cpp")
pytestmark = [
    pytest.mark.programs,
    pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler"),
]

# What the library does with fp16, the kind of finding, and its sentence.
FAULTS = {
    "wrong": ("wrong", r"out: \d+ of [\d,]+ elements are off by more than 0.5 ulp of FLOAT16; .*; "
                       r"at \[.*\], x = \S+ \(0x\w{4}\): expected \S+ \(0x\w{4}\), got \S+ "),
    "nothing": ("wrong", r"out: \d+ of .* elements are off by more than 0.5 ulp of FLOAT16"),
    "crash": ("crashed", r"the process ended in phase 2 with SIGSEGV$"),
    "crash in phase 1": ("crashed", r"the process ended in phase 1 with SIGABRT; it wrote: the l"),
    "exit": ("crashed", r"the process ended in phase 2 with exit status 7$"),
    "hang": ("hung", r"phase 2 did not end within 0.5 seconds$"),
    "status": ("status", r"phase 1 must return 0, but returned 361001$"),
    "late status": ("status", r"phase 2 must return 0, but returned 507015"),
    "accepts": ("status", r"both phases must return 16100[12], but returned 0$"),
    "outside": ("damaged", r"wrote (outside the memory of|beside the elements of) out$"),
    "input": ("damaged", r"wrote into self, which is an input$"),
    "unsteady": ("unsteady", r"two runs of the same call gave different bits in out$"),
    "in place": ("wrong", r"out: 1 of 1,005 elements are off by more than 0.5 ulp of FLOAT16"),
    "same tensor": ("unsteady", r"the bits differ between out as a second tensor in the memory of "
                                r"x and out as the very tensor x$"),
    "stride 0": ("wrong", r"out: 1 of 1,005 elements are off by more than 0.5 ulp of FLOAT16"),
    "reads past the end": ("outside", r"phase 2 reads or writes memory past the end of self: "
                                      r"where that memory cannot be accessed, it ends with SIG"),
    "reads before": ("outside", r"phase 2 reads or writes memory before the start of self: "),
    "writes size": ("refusal", r"phase 1 refused the call, but wrote \*workspaceSize: a refusal m"),
    "writes executor": ("refusal", r"phase 1 refused the call, but wrote \*executor: a refusal m"),
    "silent": ("refusal", r"phase 1 refused the call without a sentence: aclGetRecentErrMsg\(\) "),
}  # fmt: skip
# A NULL input has no dtype: what is wrong with that is wrong everywhere.
EVERYWHERE = ("accepts", "status", "crash in phase 1", "writes size", "writes executor", "silent")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    made = tmp_path_factory.mktemp("broken") / "libbroken.so"
    command = ["-shared", "-fPIC", "-std=c++17", str(SOURCE), "-o", str(made), "-ldl"]
    done = subprocess.run(compile_command(command, {}), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return made


def verified(library, tmp_path, *options):
    file = tmp_path / "report.json"
    command = ["verify", f"library:{library}", "--timeout", "0.5", "--json", str(file), "--quiet"]
    status = main([*command, *options])
    return status, json.loads(file.read_text(encoding="utf-8"))


def test_a_right_library_passes(library, tmp_path, monkeypatch):
    monkeypatch.setenv("BROKEN", "not at all")
    status, data = verified(library, tmp_path)
    assert status == 0
    for entry in data["summary"]:
        others = entry["operator"] not in ("hardshrink",)
        assert (entry["passed"] == 0) == others  # it has one operator


@pytest.mark.parametrize("how", FAULTS)
def test_a_broken_one_is_found_out(library, tmp_path, monkeypatch, capsys, how):
    """Operator, dtype and inputs are named; the other dtypes pass, and the run goes on."""
    kind, sentence = FAULTS[how]
    monkeypatch.setenv("BROKEN", how)
    status, data = verified(library, tmp_path, "--op", "hardshrink")
    assert status == 1
    counts = {entry["dtype"]: entry for entry in data["summary"]}
    assert counts["FLOAT16"]["failed"] > 0
    elsewhere = {d: c["failed"] for d, c in counts.items() if d != "FLOAT16"}
    assert set(elsewhere.values()) == {int(how in EVERYWHERE)}
    findings = [r for r in data["results"] if r["status"] == "failed"]
    reported = [f for f in findings if f["kind"] == kind and f["case"]["dtype"] == "FLOAT16"]
    assert reported
    assert re.match(sentence, reported[0]["sentence"]), reported[0]["sentence"]
    shown = capsys.readouterr().out
    finding = next(f for f in data["findings"] if f["kind"] == kind)
    example = next(f for f in findings if f["id"] == finding["example"])
    reason, _, element = example["sentence"].partition("; at ")
    assert f"{kind}: {reason}\n" in shown
    assert element.partition(":")[0] in shown
    assert f"library:{library}: hardshrink: " in shown
    # The command that is shown finds it again.
    assert main([*reported[0]["command"].split()[1:], "--timeout", "0.5", "--quiet"]) == 1


def test_writes_around_an_output_are_found_in_every_layout(library, tmp_path, monkeypatch):
    monkeypatch.setenv("BROKEN", "outside")
    _, data = verified(library, tmp_path, "--op", "hardshrink", "--dtype", "fp16")
    found = {
        (r["case"]["layout"], r["sentence"]) for r in data["results"] if r["status"] == "failed"
    }
    between, beyond = "wrote beside the elements of out", "wrote outside the memory of out"
    assert {("padded", between), ("offset", between), ("contiguous", beyond)} <= found


def test_an_output_that_nobody_writes_is_found(library, tmp_path, monkeypatch):
    """Also where 0 would be right: with this threshold every result is 0."""
    monkeypatch.setenv("BROKEN", "skips")
    case = {"op": "hardshrink", "dtype": "fp16", "attributes": {"lambd": "inf"}}
    file = tmp_path / "cases.json"
    text = json.dumps({"schema": SCHEMA, "cases": [case]})
    file.write_text(text, encoding="utf-8")
    status, data = verified(library, tmp_path, "--cases", str(file))
    (result,) = data["results"]
    assert (status, result["kind"]) == (1, "wrong")
    assert result["worst"][0]["got"]["bits"] == "0xa5a5"


def test_after_three_deaths_the_rest_is_left_out(library, tmp_path, monkeypatch):
    monkeypatch.setenv("BROKEN", "crash")
    _, data = verified(library, tmp_path, "--op", "hardshrink", "--dtype", "fp16")
    (entry,) = data["summary"]
    assert entry["failed"] == 3
    assert entry["left_out"] > 50
    left = [r for r in data["results"] if r["status"] == "left out"]
    assert {r["sentence"] for r in left} == {"3 calls before it crashed, hung or left their memory"}


def test_the_library_itself_by_its_path(tmp_path):
    """As real CANN would be: nothing of it comes from elsewhere."""
    ours = openaclnn.home() / "lib64" / "libopapi_nn.so"
    status, data = verified(ours, tmp_path, "--op", "elu_backward", "--timeout", "20")
    assert status == 0
    assert all(entry["passed"] and not entry["left_out"] for entry in data["summary"])


def test_a_library_without_operators(capsys):
    libm = next(Path(p) for p in ("/lib/x86_64-linux-gnu/libm.so.6", sys.executable)
                if Path(p).exists())  # fmt: skip
    assert main(["verify", f"library:{libm}"]) == 2
    reported = capsys.readouterr().err
    assert re.match(r"openaclnn verify: library:\S+ (has none of|is not a library)", reported)


def test_memory_that_was_freed_is_not_used_again():
    """aclrtMalloc fails behind aclrtFree; the next request is smaller."""
    calls: list[str] = []

    class Memory:
        rooms: list[mmap.mmap] = []  # noqa: RUF012

        def __call__(self, name):
            return getattr(self, name)

        def aclrtMalloc(self, address, size, policy):
            calls.append("malloc")
            if size.value > 1 << 20:
                return 207001
            self.rooms.append(mmap.mmap(-1, size.value))
            address._obj.value = ctypes.addressof(ctypes.c_char.from_buffer(self.rooms[-1]))
            return 0

        def aclrtFree(self, address):
            calls.append("free")

        def check(self, step, status):
            if status:
                raise Refused(step, status)

    arena = Arena(Memory(), behind=False)
    arena.reserve(100, True)
    with pytest.raises(Refused):
        arena.reserve(1 << 21, True)
    arena.reserve(10, True)
    assert calls == ["malloc", "free", "malloc", "malloc"]
