# SPDX-License-Identifier: Apache-2.0
"""The page of all functions of the runtime's headers, from the headers and rows/refused.py.

python tools/docs/runtime_functions.py > docs/reference/runtime_functions.md
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "build"))
from c_headers import declared, texts  # noqa: E402
from refused_calls import refused  # noqa: E402

HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Written by tools/docs/runtime_functions.py -->
# Functions of the runtime

Every function that the headers in `acl/` and `hccl/` declare. `acl/acl.h` includes the runtime, \
the operators by type and the models; the other headers are included by name. \
[runtime.md](runtime.md) says what the core of the runtime does and how that differs from CANN.

A function that a CPU cannot have is declared, so that programs compile and link, and refuses: it \
checks its pointers, sets its results to zero, and returns a status with a sentence. Collectives \
need the library in which PyTorch communicates: build with `openaclnn cc --aten`.
"""


def title(path: str, text: str) -> str:
    name = path if not path.startswith("acl/rt/") else f"acl/acl_rt.h ({Path(path).stem})"
    lines = text.splitlines()[1:]
    about = []
    for line in lines:
        if not line.startswith("// "):
            break
        about.append(line[3:])
    return f"\n## {name}\n\n{' '.join(about)}\n"


def page() -> str:
    out = HEAD
    for path, text in texts().items():
        functions = [f.name for f in declared(path)] if path.startswith(("acl/", "hccl/")) else []
        if not functions:
            continue
        out += title(path, text)
        works = [f"`{name}`" for name in functions if not refused.group(name)]
        if works:
            out += f"\n{', '.join(works)}\n"
        groups: dict[object, list[str]] = {}
        for name in functions:
            if group := refused.group(name):
                groups.setdefault(group, []).append(f"`{name}`")
        for group, names in groups.items():
            code = re.search(rf"\b{group.status} (?:= )?(\d+)", "\n".join(texts().values()))
            assert code, group.status
            out += f"\nRefused with {code[1]} ({group.sentence}): {', '.join(names)}\n"
    return out


if __name__ == "__main__":
    print(page(), end="")
