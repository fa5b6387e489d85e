# SPDX-License-Identifier: Apache-2.0
"""How far a run is: a line that changes on a terminal, a line per operator and dtype elsewhere."""

from __future__ import annotations

import time
from typing import TextIO

from .cases import Case

EVERY = 0.1  # seconds between two lines on a terminal


class Progress:
    def __init__(self, stream: TextIO, total: int) -> None:
        self._stream, self._total, self._done = stream, total, 0
        self._start = self._last = time.monotonic()
        self._group = ""
        self._live = stream.isatty()

    def __call__(self, case: Case) -> None:
        group = f"{case.op.python} {case.dtype}"
        now = time.monotonic()
        if self._live and (group != self._group or now - self._last >= EVERY):
            self._last = now
            self._stream.write(f"\r\033[K{self._told(group, now)}")
            self._stream.flush()
        elif not self._live and group != self._group:
            self._stream.write(self._told(group, now) + "\n")
            self._stream.flush()
        self._group = group
        self._done += 1

    def _told(self, group: str, now: float) -> str:
        took = now - self._start
        left = took / self._done * (self._total - self._done) if self._done else 0.0
        rate = self._done / took if took else 0.0
        share = 100 * self._done // max(self._total, 1)
        told = f"{share:3}%  {self._done:,} of {self._total:,} cases  {group}"
        return f"{told}  {rate:.0f}/s, {left:.0f} s left" if self._done else told

    def close(self) -> None:
        if self._live:
            self._stream.write("\r\033[K")
            self._stream.flush()
