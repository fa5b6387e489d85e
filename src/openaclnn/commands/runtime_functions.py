# SPDX-License-Identifier: Apache-2.0
"""Functions of the runtime (acl, hccl), as the installed headers declare them."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import cache

from ..settings import home

_DECLARATION = re.compile(
    r"(?P<about>(?:^// .*\n)*)"
    r"^(?:(?:ACL_FUNC_VISIBILITY|extern|[A-Z_]+_API)\s+)*(?P<type>(?:const )?\w[\w ]*?[ *\n]+)"
    r"(?P<name>[A-Za-z]\w+)\((?P<parameters>[^;{}]*)\);",
    re.MULTILINE,
)


@dataclass(frozen=True)
class RuntimeFunction:
    name: str
    header: str  # what a program includes
    prototype: str
    about: str  # the comment directly above it; may be empty


@cache
def functions() -> dict[str, RuntimeFunction]:
    include = home() / "include"
    found: dict[str, RuntimeFunction] = {}
    folders = (include / name for name in ("acl", "aclnn", "hccl"))
    for path in sorted(header for folder in folders for header in folder.rglob("*.h")):
        header = str(path.relative_to(include))
        if header.startswith("acl/rt/"):
            header = "acl/acl_rt.h"  # which includes its parts
        for match in _DECLARATION.finditer(path.read_text(encoding="utf-8")):
            name = match["name"]
            words = " ".join(f"{match['type']}{name}({match['parameters']})".split())
            about = match["about"].replace("// ", "").replace("\n", " ").strip()
            found.setdefault(name, RuntimeFunction(name, header, words, about))
    return found


def nearest(name: str) -> str | None:
    near = difflib.get_close_matches(name, functions(), 1, 0.8)
    return near[0] if near else None
