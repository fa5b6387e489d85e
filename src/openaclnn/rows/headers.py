# SPDX-License-Identifier: Apache-2.0
"""The functions that C headers declare: of the source tree, and of an installation directory."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_DECLARATION = re.compile(
    r"((?:^// .*\n)*)^(?:ACL_FUNC_VISIBILITY|ACLNN_API)\s+([^;{}]*?)\b(\w+)\(([^;]*)\);", re.M
)


@dataclass(frozen=True)
class Declaration:
    name: str
    path: str  # of the header, below include/
    result: str
    parameters: str
    about: str  # the comment directly above it; may be empty

    @property
    def header(self) -> str:
        """What a program includes."""
        return "acl/acl_rt.h" if self.path.startswith("acl/rt/") else self.path

    @property
    def prototype(self) -> str:
        return f"{self.result} {self.name}({self.parameters})"


def texts(include: Path) -> dict[str, str]:
    """The headers in a folder by their path below it."""
    return {
        path.relative_to(include).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(include.rglob("*.h"))
    }


def declarations(path: str, text: str) -> list[Declaration]:
    """Those of one header."""
    return [
        Declaration(
            name,
            path,
            " ".join(result.split()),
            " ".join(parameters.split()),
            " ".join(about.replace("// ", "").split()),
        )
        for about, result, name, parameters in _DECLARATION.findall(text)
    ]
