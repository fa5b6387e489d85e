# SPDX-License-Identifier: Apache-2.0
"""Files and standard output as commands read and write them: what could not be written is one
sentence and an exit status, wherever it happens."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, TextIO

NOT_WRITTEN = 74  # exit status of output that was lost: EX_IOERR of sysexits.h
BROKEN_PIPE = 141  # what shells show for a command that its reader stopped


class NotWritten(Exception):
    """One sentence."""


class ReaderGone(Exception):
    """The reader of a pipe, head or less, has seen enough."""


@contextmanager
def writing(name: object) -> Iterator[None]:
    """Turns a failure to write into the sentence that names the file."""
    try:
        yield
    except BrokenPipeError:
        raise ReaderGone from None
    except OSError as error:
        raise NotWritten(f"{name} could not be written: {error.strerror or error}") from None


def unwritable(what: str, option: str, path: str | None) -> bool:
    """Reports an error when no file can be written there."""
    if path is None or path == "-":
        return False
    existed = Path(path).exists()
    try:
        with Path(path).open("a", encoding="utf-8"):
            pass
        if not existed:
            Path(path).unlink()
        return False
    except OSError as error:
        print(
            f"openaclnn {what}: {option} {path} cannot be written: {error.strerror}",
            file=sys.stderr,
        )
        return True


def read_json(path: str, schema: str) -> dict[str, Any]:
    """A document that openaclnn wrote; ValueError with one sentence for any other."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path} is not a JSON file: {error}") from None
    if not isinstance(data, dict) or data.get("schema") != schema:
        raise ValueError(f'{path} must have "schema": "{schema}"')
    return data


def write_json(destination: str, document: dict[str, Any]) -> None:
    write_text(destination, json.dumps(document, indent=2) + "\n")


def write_text(destination: str, text: str) -> None:
    """To a file, or to standard output for -."""
    if destination != "-":
        with writing(destination):
            Path(destination).write_text(text, encoding="utf-8")
        return
    try:
        with writing("standard output"):
            sys.stdout.flush()
            sys.stdout.buffer.write(text.encode())  # UTF-8, whatever the locale
            sys.stdout.buffer.flush()
    except NotWritten:
        _drop(sys.stdout)
        raise


class _Stream:
    """A standard stream whose failing writes raise NotWritten, so that no other OSError is taken
    for one."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream, self._name = stream, name

    def write(self, text: str) -> int:
        with writing(self._name):
            return self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        with writing(self._name):
            self._stream.writelines(lines)

    def flush(self) -> None:
        with writing(self._name):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def guarded(what: str, run: Callable[[], int]) -> int:
    """The exit status of a command whose output may be lost: 141 when its reader went away before
    it was known, 74 and a sentence when something could not be written. Other errors pass."""
    _open_closed_streams()
    status = BROKEN_PIPE
    output: Any = _Stream(sys.stdout, "standard output")
    errors: Any = _Stream(sys.stderr, "standard error")
    try:
        with redirect_stdout(output), redirect_stderr(errors):
            try:
                status = run()
            finally:  # --help raises SystemExit
                output.flush()
    except ReaderGone:
        _drop(sys.stdout)
    except NotWritten as error:
        return _lost(what, str(error))
    return status


def _lost(what: str, sentence: str) -> int:
    _drop(sys.stdout)
    try:
        print(f"openaclnn{what and f' {what}'}: {sentence}", file=sys.stderr)
    except OSError:
        _drop(sys.stderr)
    return NOT_WRITTEN


def _drop(stream: TextIO) -> None:
    """What is still buffered would be written at the end of the process, and fail again."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _open_closed_streams() -> None:
    """Python has None for a standard stream that was closed before it started. Writing to standard
    output fails then, as to a full disk; what goes to standard error is dropped. Both descriptors
    are taken, so that no file of the command becomes one of them."""
    if sys.stdout is None:
        sys.stdout = _stream(1, os.O_RDONLY)
    if sys.stderr is None:
        sys.stderr = _stream(2, os.O_WRONLY)


def _stream(descriptor: int, flags: int) -> TextIO:
    null = os.open(os.devnull, flags)
    if null != descriptor:
        os.dup2(null, descriptor, inheritable=False)
        os.close(null)
    return open(descriptor, "w", encoding="utf-8", closefd=False)
