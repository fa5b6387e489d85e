# SPDX-License-Identifier: Apache-2.0
"""Rewrites what is derived from the rows and yet kept in git, because people review it there:
the tables of operators in the READMEs, the snapshot of the C interface, the pages of the runtime's
functions, of status codes and of what products refuse, and how many functions ATen computes.

    pip install . && python tools/docs/refresh.py

Then read the diff: it is the change of the contract.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from openaclnn import aten
from openaclnn.rows.catalogue import markdown

ROOT = Path(__file__).resolve().parents[2]
TABLE = re.compile(r"(<!-- operators.*?-->\n).*?(<!-- /operators -->)", re.S)

PAGES = [
    *(ROOT / name for name in ("README.md", "README.zh-CN.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
# Pages of docs/reference, and the tool that writes each.
WRITTEN = {
    "runtime_functions": "runtime_functions.py",
    "status_codes": "status_codes.py",
    "status_codes.zh-CN": "status_codes.py zh-CN",
    "product_rules": "product_rules_page.py",
}
# How pages write the number of functions that ATen computes, and of its types.
FUNCTIONS = re.compile(
    r"(?<![\d,.])\d{3}(?= more (?:functions|operators|that torch)| (?:operators|functions|others)"
    r"| ?个算子)|(?<=every one of the )\d+"
)
TYPES = re.compile(
    r"(?<!\d)\d+(?= types of (?:operators that torch_npu|the interface before)| 种由 torch_npu)"
)


def with_counts(text: str) -> str:
    types = sum(row.is_type for row in aten.rows())
    text = FUNCTIONS.sub(str(len(aten.rows()) - types), text)
    return TYPES.sub(str(types), text)


def with_table(text: str) -> str:
    return TABLE.sub(lambda m: m[1] + markdown() + m[2], text)


def with_chinese_table(text: str) -> str:
    """Names and meanings that are there stay; a new operator gets its English line."""
    lines = TABLE.search(text)[0].splitlines()[1:-1]
    known = {line.split("`")[1]: line for line in lines[2:]}
    rows = [known.get(line.split("`")[1], line) for line in markdown().splitlines()[2:]]
    table = "\n".join([*lines[:2], *rows, ""])
    return TABLE.sub(lambda m: m[1] + table + m[2], text)


def main() -> None:
    for name, filled in (("README.md", with_table), ("README.zh-CN.md", with_chinese_table)):
        readme = ROOT / name
        readme.write_text(filled(readme.read_text(encoding="utf-8")), encoding="utf-8")
    for page in PAGES:
        page.write_text(with_counts(page.read_text(encoding="utf-8")), encoding="utf-8")
    for name, line in WRITTEN.items():
        tool, *arguments = line.split()
        command = [sys.executable, str(ROOT / "tools" / "docs" / tool), *arguments]
        written = subprocess.run(command, capture_output=True, text=True, check=True)
        page = ROOT / "docs" / "reference" / f"{name}.md"
        page.write_text(written.stdout, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "tests.abi.test_symbols"], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
