# SPDX-License-Identifier: Apache-2.0
"""What a process says once, unless OPENACLNN_NPU_NOTICE=0."""

from __future__ import annotations

import os
from collections.abc import Callable

_said: set[str] = set()


def once(text: str, say: Callable[[str], None]) -> None:
    if text not in _said and os.environ.get("OPENACLNN_NPU_NOTICE", "1") != "0":
        say(text)
    _said.add(text)
