# SPDX-License-Identifier: Apache-2.0
"""Rewrites what is derived from the rows and yet kept in git, because people review it there:
the tables of operators in the READMEs and the snapshot of the C interface.

    pip install . && python tools/docs/refresh.py

Then read the diff: it is the change of the contract.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from openaclnn.rows.catalogue import markdown

ROOT = Path(__file__).resolve().parents[2]
TABLE = re.compile(r"(<!-- operators.*?-->\n).*?(<!-- /operators -->)", re.S)


def with_table(text: str) -> str:
    return TABLE.sub(lambda m: m[1] + markdown() + m[2], text)


def main() -> None:
    for name in ("README.md", "README.zh-CN.md"):
        readme = ROOT / name
        readme.write_text(with_table(readme.read_text(encoding="utf-8")), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "tests.abi.test_symbols"], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
