# SPDX-License-Identifier: Apache-2.0
"""Why bars are not met on the machine of the records, by what a bar is of."""

from __future__ import annotations

REASONS: dict[str, str] = {}
UNKNOWN = "the reason is not known"
