# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path


def provider() -> Path | None:
    return None
