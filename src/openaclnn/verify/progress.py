# SPDX-License-Identifier: Apache-2.0
"""How far a run is, with its rate and the time left: a bar of rich where that is installed, a line
that changes on any other terminal, a line every ten seconds in a file or a pipe."""

from __future__ import annotations

import importlib
import time
from typing import Any, Protocol, TextIO

EVERY = 0.1  # seconds between two lines on a terminal
IN_FILES = 10.0


class Progress(Protocol):
    """`advance` takes the name of what comes next and the number of cases done before it."""

    def advance(self, group: str, done: int) -> None: ...

    def close(self) -> None: ...


def progress(stream: TextIO, total: int) -> Progress:
    if not stream.isatty():
        return Log(stream, total)
    try:
        return Bar(stream, total, importlib.import_module("rich.progress"))
    except ModuleNotFoundError:
        return Line(stream, total)


class Silent:
    def advance(self, group: str, done: int) -> None:
        pass

    def close(self) -> None:
        pass


class Line:
    """One line, which each call overwrites."""

    def __init__(self, stream: TextIO, total: int) -> None:
        self._stream, self._total = stream, total
        self._start = self._last = time.monotonic()
        self._first: int | None = None  # a resumed run begins with some done
        self._group = ""

    def advance(self, group: str, done: int) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = done
        elif group == self._group and now - self._last < EVERY:
            return
        self._last, self._group = now, group
        self._write(self._text(done - self._first, done, now))

    def _write(self, text: str) -> None:
        self._stream.write(f"\r\033[K{text}")
        self._stream.flush()

    def _text(self, made: int, done: int, now: float) -> str:
        share = 100 * done // max(self._total, 1)
        text = f"{share:3}%  {done:,} of {self._total:,}  {self._group}"
        took = now - self._start
        if not made or not took:
            return text
        left = took / made * (self._total - done)
        return f"{text}  {made / took:,.0f}/s, {left:.0f} s left"

    def close(self) -> None:
        self._write("")


class Log(Line):
    """A line every few seconds, the first after as many: a short run writes none."""

    def advance(self, group: str, done: int) -> None:
        if self._first is None:
            self._first = done
        elif time.monotonic() - self._last >= IN_FILES:
            super().advance(group, done)

    def _write(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def close(self) -> None:
        pass


class Bar:
    def __init__(self, stream: TextIO, total: int, rich: Any) -> None:
        console = importlib.import_module("rich.console").Console(file=stream)
        shown = "{task.completed:,} of {task.total:,}  {task.fields[rate]}"
        self._bar = rich.Progress(
            rich.TextColumn("{task.description:<32}"),
            rich.BarColumn(),
            rich.TextColumn(shown),
            rich.TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._bar.start()
        self._task = self._bar.add_task("", total=total, rate="")
        self._start, self._first = time.monotonic(), -1

    def advance(self, group: str, done: int) -> None:
        if self._first < 0:
            self._first = done
        took = time.monotonic() - self._start
        rate = f"{(done - self._first) / took:,.0f}/s" if took and done > self._first else ""
        self._bar.update(self._task, completed=done, description=group, rate=rate)

    def close(self) -> None:
        self._bar.stop()
