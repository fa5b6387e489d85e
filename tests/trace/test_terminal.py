# SPDX-License-Identifier: Apache-2.0
"""openaclnn trace on a terminal: one line a call, short names for addresses, failures in red."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from tests.trace.test_trace import REFUSED, built

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = 90
RED, END = "\033[31m", "\033[0m"

pytestmark = [
    pytest.mark.programs,
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
]


def on_terminal(program: Path, **variables: str) -> list[str]:
    """The lines that `openaclnn trace` shows on a terminal."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    words = [sys.executable, "-m", "openaclnn", "trace", program]
    kept = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    child = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=theirs, env={**kept, "TERM": "xterm", **variables}
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 1 << 16):
            shown += part
    except OSError:  # the terminal is closed
        pass
    os.close(ours)
    child.wait()
    return shown.decode().splitlines()


def test_calls_fit_the_terminal_and_addresses_have_names(programs):
    lines = on_terminal(built(programs, ROOT / "examples" / "leaky_relu.cpp"))
    assert lines[0].split() == ["at", "µs", "by", "took", "µs"]
    assert max(map(len, lines)) == COLUMNS
    assert [line for line in lines if "0x" in line or "\033" in line] == []
    (made,) = (line for line in lines if "aclrtMalloc(devPtr: &#1, size: 32" in line)
    assert made.endswith("…")
    (used,) = (line for line in lines if re.search(r"stream +1 +[\d.]+  aclnnLeakyRelu\(", line))
    assert "self: FLOAT [4, 2] at #1, " in used


def test_failures_are_red_and_complete(tmp_path):
    source = tmp_path / "refused.cpp"
    source.write_text(REFUSED)
    program = built(tmp_path, source)
    lines = on_terminal(program)
    failed = [line for line in lines if line.startswith(RED)]
    assert len(failed) == 5
    sentence = "deviceId must be in [0, 1), but got 7; OPENACLNN_DEVICES=8 makes 8 devices"
    assert failed[0].endswith(f"{sentence}{END}")
    assert all(line.endswith(END) for line in failed)
    plain = on_terminal(program, NO_COLOR="1")
    assert "\033" not in "".join(plain)
    assert len(plain) == len(lines)
