# SPDX-License-Identifier: Apache-2.0
"""The functions that the torch_npu wheel names and openaclnn refuses, as C++, and their table.

python tools/build/npu_names.py FILE          the C++ that the build compiles
python tools/build/npu_names.py --markdown    the tables of docs/reference/npu_coverage.md
"""

from __future__ import annotations

import sys
from pathlib import Path

from rows import NOTE, ROOT, SPDX

sys.path.insert(0, str(ROOT / "src" / "openaclnn" / "torch_npu"))
from names import IGNORED, WORKING, Refused, refused


def function(f: Refused) -> str:
    shown = [f"{kind} {name}" if result else kind for kind, name, result in f.parameters]
    zeros = "".join(
        f"  if ({name} != nullptr) *{name} = {{}};\n" for _, name, result in f.parameters if result
    )
    sentence = "not supported by openaclnn: it has no meaning on a CPU, or nobody has needed it yet"
    aloud = (
        "  static std::atomic<bool> said = false;\n"
        f'  if (!said.exchange(true)) std::fputs("openaclnn: {f.name}: {sentence}\\n", stderr);\n'
        if f.name in IGNORED
        else ""
    )
    return (
        f'extern "C" __attribute__((visibility("default"))) {f.returns} {f.name}'
        f"({', '.join(shown)}) {{\n{zeros}{aloud}"
        f"  return openaclnn::fail_mildly(ACL_ERROR_API_NOT_SUPPORT, "
        f'openaclnn::Reason::not_supported, "{f.name}", "{sentence}").code();\n}}\n'
    )


def source() -> str:
    head = f"// {SPDX}\n// {NOTE}\n#include <atomic>\n#include <cstdio>\n\n"
    head += '#include "acl/acl_rt.h"\n#include "core/support/status.h"\n\n'
    return head + "\n".join(map(function, refused()))


def markdown() -> str:
    rows = "".join(f"| `{name}` | {note or 'works'} |\n" for name, note in WORKING.items())
    names = ", ".join(f"`{f.name}`" for f in refused())
    return f"| function | what it does |\n| --- | --- |\n{rows}\nRefused: {names}.\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--markdown"]:
        print(markdown(), end="")
    else:
        path = Path(sys.argv[1])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source())
