# SPDX-License-Identifier: Apache-2.0
"""What the tests of traces share: the command, programs to trace, lines of the text."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import once

LINE = re.compile(r"^ *(\d+\.\d{3}) µs  (host|stream) +(\d+) +(\d+\.\d{3}) µs  ((\w+).*)$", re.M)

NEEDS_COMPILER = [
    pytest.mark.programs,
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
]


def command(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    main = "import sys; from openaclnn.commands.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", main, *words],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )


def built(folder: Path, source: Path) -> Path:
    def build(made: Path) -> None:
        done = command("cc", "-std=c++17", str(source), "-o", str(made), "-pthread")
        assert done.returncode == 0, done.stderr

    return once(folder / source.stem, build)
