# SPDX-License-Identifier: Apache-2.0
"""What `openaclnn npu --report` counts, of a C program: no PyTorch is needed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.trace.test_trace import built

from openaclnn.commands.run_page import page
from openaclnn.commands.run_report import as_text, dtypes_text, headline, report
from openaclnn.commands.trace import preloaded

pytestmark = [
    pytest.mark.programs,
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
]
FACTS = {"command": ["./report"], "status": 0, "seconds": 1.0, "openaclnn": "0"}


@pytest.fixture(scope="module")
def found(programs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    variables = {**os.environ, "LD_PRELOAD": preloaded({}), "OPENACLNN_PRODUCT": "A2"}
    variables |= {"OPENACLNN_REPORT": str(folder), "OPENACLNN_REPORT_PRODUCTS": "A2,910"}
    program = built(programs, Path(__file__).with_name("report.cpp"))
    done = subprocess.run([program], env=variables, capture_output=True, text=True, timeout=60)
    # No error of the judgement on product 910, which refuses BFLOAT16.
    assert (done.returncode, done.stdout) == (0, "left: |0\n"), done.stderr
    assert done.stderr == ""
    return report(folder, ["910", "A2"], **FACTS)


def test_calls_of_all_processes(found):
    assert found["processes"] == 5  # those of _exit, raise(SIGKILL), and before and after exec too
    assert len(found["lost_processes"]) == 2
    assert all(process.isdigit() for process in found["lost_processes"])
    waits = {w["function"]: w["calls"] for w in found["waits"]}
    made = waits["aclrtSynchronizeDevice"] - 2  # one before exec; one call had BFLOAT16
    assert made in (6, 7)  # the figures of the process that a signal ended are at most a second old
    calls = {(f["function"], f["dtypes"]): f["calls"] for f in found["functions"]}
    assert calls == {("aclnnLeakyRelu", "FLOAT"): made, ("aclnnLeakyRelu", "BFLOAT16"): 1}
    assert all(f["phase_1"] > 0 and f["phase_2"] > 0 for f in found["functions"])
    assert found["memory"] == [{"device": 0, "peak": 192}]


def test_refusals(found):
    """A wrong shape is refused in the run, and says nothing about a product."""
    [wrong] = found["refused"]
    assert wrong["refused"] == 1
    assert "shape" in wrong["sentence"]
    assert found["products"]["A2"] == []
    [on_910] = found["products"]["910"]
    assert (on_910["dtypes"], on_910["calls"]) == ("BFLOAT16", 1)
    assert "BFLOAT16" in on_910["sentence"]
    assert headline(found) == (
        "bad",
        "910 refuses 1 call of 1 function; A2 accepts every call, no fallback to the CPU seen",
    )
    of_910 = {**found, "product": "910", "products": {"A2": []}}
    assert headline(of_910)[1].startswith("A2 accepts the calls that torch_npu makes on 910, ")


def test_text_and_page(found):
    text = as_text(found)
    assert text.startswith("910 refuses 1 call of 1 function")
    assert re.search(r"LeakyRelu +FLOAT +\d+ +[\d.]+ ms +[\d.]+%\n", text)
    assert "2 processes ended by a signal or by exec" in text
    shown = page(found)
    assert shown.index("Refused by 910") < shown.index("Refused by A2: none")
    assert shown.index("Also refused in this run") < shown.index("Functions by time")
    assert "192 bytes at most" in shown


def test_an_empty_report(tmp_path):
    found = report(tmp_path, ["A2"], **FACTS)
    assert headline(found) == ("none", "the program called no function of aclnn")
    assert "no function of aclnn" in page(found)


def test_the_verdict_says_that_the_program_failed(found):
    failed = {**found, "products": {"A2": []}, "status": 1}
    assert headline(failed) == (
        "none",
        "A2 accepts every call, no fallback to the CPU seen; the program ended with status 1: fix "
        "that first",
    )


def test_dtypes_in_words():
    tensors = [("self", "BF16", 2), ("index", "INT64", 1), ("out", "BF16", 2)]
    assert dtypes_text(tensors) == "BFLOAT16, index INT64"
    assert dtypes_text([]) == ""


def test_what_the_product_refuses_comes_first():
    def refused(name: str, **more: object) -> dict[str, object]:
        return {"function": name, "dtypes": "FLOAT", "sentence": "why", "calls": 1, **more}

    found = {
        "status": 0,
        "product": "A2",
        "functions": [refused("aclnnA", phase_1=1.0, phase_2=1.0)],
        "products": {"A2": [refused("aclnnA")]},
        "refused": [refused("aclnnB", refused=1)],
        "fallbacks": [refused("aclnnC", microseconds=1.0)],
        "nondeterministic": [],
        "waits": [],
        "memory": [],
        "lost_processes": [],
    }
    titles = [line for line in as_text(found).splitlines()[1:] if line and line[0] != " "]
    assert [title.split(":")[0] for title in titles] == [
        "refused by A2",
        "also refused in this run",
        "computed by the CPU",
        "functions by time, and their share",
    ]
