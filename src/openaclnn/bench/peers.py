# SPDX-License-Identifier: Apache-2.0
"""The peers of all rows, by Python name."""

from __future__ import annotations

import importlib
from pathlib import Path

from .peer import Peer


def _all_peers() -> dict[str, Peer]:
    """Those of every <family>_peers.py beside this file."""
    found: dict[str, Peer] = {}
    for path in sorted(Path(__file__).parent.glob("*_peers.py")):
        found |= importlib.import_module(f".{path.stem}", __package__).PEERS
    return found


PEERS = _all_peers()
