# SPDX-License-Identifier: Apache-2.0
"""The headers and functions of public examples and clients are there, or marked as missing.

`python -m tests.abi.test_client_names` rewrites the marks.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tests.abi.test_symbols import exports

import openaclnn
from openaclnn.aten.prototypes import headers
from openaclnn.commands.cc import explanations

TABLE = Path(__file__).with_name("client_names.txt")
EXAMPLES = 1001
LINE = re.compile(r"^(?:- )?(\d+ )?([\w/]+(?:\.h)?)$")


@cache
def installed() -> frozenset[str]:
    """Functions, and headers below include/ and include/aclnnop/, with those of `--aten`."""
    include = openaclnn.home() / "include"
    files = {str(path.relative_to(include)) for path in include.rglob("*.h")}
    files |= {f"aclnnop/{level}{name}" for name in headers() for level in ("", "level2/")}
    plain = {name.removeprefix("aclnnop/") for name in files}
    return frozenset({*files, *plain, *exports("opapi", "aten")})


def marked(text: str) -> str:
    lines = []
    for line in text.splitlines():
        if found := LINE.match(line):
            mark = "" if found[2] in installed() else "- "
            line = f"{mark}{found[1] or ''}{found[2]}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def test_names_are_there_or_marked():
    text = TABLE.read_text(encoding="utf-8")
    assert marked(text) == text, "python -m tests.abi.test_client_names"


def test_most_examples_find_their_functions():
    """A file that calls two missing functions counts twice."""
    lacking = re.findall(r"^- (\d+) ", TABLE.read_text(encoding="utf-8"), re.M)
    assert EXAMPLES - sum(map(int, lacking)) >= 876


def test_missing_headers_are_explained(tmp_path):
    """`openaclnn cc` says of each why it is missing."""
    missing = re.findall(r"^- ([\w/]+\.h)$", TABLE.read_text(encoding="utf-8"), re.M)
    source = tmp_path / "program.cpp"
    source.write_text("".join(f'#include "{name}"\n' for name in missing), encoding="utf-8")
    sentences = explanations([str(source)], openaclnn.home(), aten=True)
    assert len(missing) >= 8
    assert {sentence.split()[0] for sentence in sentences} == set(missing)


if __name__ == "__main__":
    TABLE.write_text(marked(TABLE.read_text(encoding="utf-8")), encoding="utf-8")
