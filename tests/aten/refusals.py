# SPDX-License-Identifier: Apache-2.0
"""Runs calls in a process without torch of Python, and compares what they answered."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.aten.aten_support import ROOT, alone, command

Case = tuple[str, list[int], object]  # the call, its codes, the end of the sentence or the results


@cache
def home() -> Path:
    done = command("home", "--aten")
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def run(calls: list[str]) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, str(ROOT / "tests" / "aten" / "c_calls.py"), str(home())]
    return subprocess.run(
        words, input="\n".join(calls), env=alone(), capture_output=True, text=True, timeout=300
    )


def check(cases: list[Case]) -> None:
    done = run([f"call({call})" for call, _, _ in cases])
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for (call, codes, expected), answer in zip(cases, answers, strict=False):
        assert answer[0] == codes, (call, answer)
        name = call.split("'")[1]
        if codes[-1] == 0:
            assert answer[1] == expected, call
        else:
            assert re.search(rf": {name}: .*{re.escape(expected)}$", answer[1]), (call, answer)
    assert len(answers) == len(cases), (cases[len(answers)], done.returncode, done.stderr)
    assert done.stderr == ""
