# SPDX-License-Identifier: Apache-2.0
"""The public surface: what the libraries export and the headers declare equals tests/abi_snapshot.txt.

`python tests/test_symbols.py` writes the snapshot anew; its diff is the change of the contract.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from abi import LIB, NAMES

import openaclnn

SNAPSHOT = Path(__file__).parent / "abi_snapshot.txt"
DECLARATION = re.compile(r"^(?:ACL_FUNC_VISIBILITY|ACLNN_API)\s+([^;{]*?\b(\w+)\([^;]*\));", re.M)


def exports(name: str) -> list[str]:
    nm = shutil.which("nm")
    assert nm, "nm is not installed: the exported symbols cannot be compared (install binutils)"
    command = [nm, "-D", "--defined-only", "--format=posix", str(LIB / f"lib{name}.so")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted(line.split()[0] for line in lines)


def prototypes() -> dict[str, str]:
    """Function name -> prototype on one line, from the installed headers."""
    found: dict[str, str] = {}
    for header in sorted((openaclnn.home() / "include").rglob("*.h")):
        for prototype, name in DECLARATION.findall(header.read_text()):
            found[name] = " ".join(prototype.split())
    return found


def snapshot() -> str:
    """Libraries with the same exports share a section; a symbol without a prototype shows as such."""
    declared = prototypes()
    sections: dict[tuple[str, ...], list[str]] = {}
    for name in NAMES:
        sections.setdefault(tuple(exports(name)), []).append(f"lib{name}.so")
    text = ""
    for symbols, libraries in sections.items():
        text += f"# {' '.join(libraries)}\n"
        text += "".join(f"{declared.get(symbol, symbol + ' (undeclared)')}\n" for symbol in symbols)
        text += "\n"
    return text


def test_the_surface_is_as_it_was():
    assert snapshot() == SNAPSHOT.read_text(), "see the first lines of tests/test_symbols.py"


def test_every_declared_function_is_exported():
    exported = {symbol for name in NAMES for symbol in exports(name)}
    assert set(prototypes()) == exported


if __name__ == "__main__":
    SNAPSHOT.write_text(snapshot())
