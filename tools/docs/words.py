# SPDX-License-Identifier: Apache-2.0
"""Counts the words of the English pages: prose, that is outside code blocks, of pages that people
write; the code in them; and pages that tools write.

python tools/docs/words.py
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 1600  # words of prose on a page
TABLES = {"runtime": 2000}  # of 110 functions
# Pages that a tool or a test writes, wholly or nearly.
GENERATED = {
    "mistakes", "npu_coverage", "numerics_group_norm", "numerics_peers", "numerics_sweep",
    "performance", "performance_gpu", "product_rules", "runtime_functions",
    "status_codes", "training",
}  # fmt: skip


def pages() -> list[Path]:
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in found if not page.name.endswith(".zh-CN.md")]


def counts(page: Path) -> tuple[int, int]:
    """Words of prose and of code."""
    text = page.read_text(encoding="utf-8")
    prose = re.sub(r"^(```+).*?^\1$", "", text, flags=re.M | re.S)
    prose = re.sub(r"<!--.*?-->", "", prose, flags=re.S)
    words = len(prose.split())
    return words, len(text.split()) - words


def main() -> None:
    total = {"prose": 0, "code": 0, "generated": 0}
    rows = []
    for page in pages():
        prose, code = counts(page)
        if page.stem in GENERATED:
            total["generated"] += prose + code
        else:
            total["prose"] += prose
            total["code"] += code
            rows.append((prose, code, str(page.relative_to(ROOT))))
    for prose, code, name in sorted(rows):
        print(f"{prose:6} {code:6}  {name}")
    print(", ".join(f"{count:,} words {kind}" for kind, count in total.items()))


if __name__ == "__main__":
    main()
