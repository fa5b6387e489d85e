# SPDX-License-Identifier: Apache-2.0
"""A command of openaclnn in its own process, forked from one that has imported the package: the
import takes ten times as long as most commands."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from openaclnn.commands.cli import main

TIMEOUT = 120  # seconds
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__])


def _be(words: list[str], folder: str, variables: dict[str, str], results: list[str]) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    for number, path in enumerate(results, 1):
        os.dup2(os.open(path, os.O_WRONLY), number)
    sys.exit(main(words))


def command(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """As subprocess.run with `python -m openaclnn`, its output captured as text."""
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as error:
        paths = [out.name, error.name]
        given = (list(words), str(cwd or Path.cwd()), dict(os.environ), paths)
        process = CONTEXT.Process(target=_be, args=given)
        process.start()
        process.join(TIMEOUT)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(list(words), TIMEOUT)
        texts = [Path(path).read_text(encoding="utf-8") for path in paths]
        return subprocess.CompletedProcess(list(words), process.exitcode, *texts)
