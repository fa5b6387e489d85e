# SPDX-License-Identifier: Apache-2.0
"""Arguments of functions for which neither the row nor the search finds accepted calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

HINTS: dict[str, Callable[[Any], dict[str, Any]]] = {}
