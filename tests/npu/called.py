# SPDX-License-Identifier: Apache-2.0
"""Which functions torch_npu.npu_* the code of large models calls most, and which of them the tests
of the device compare by value: the table of docs/reference/npu_coverage.md.

    python -m tests.npu.called                  writes the table
    python -m tests.npu.called FOLDER           counts again, in the wheels of FOLDER:
    pip download --no-deps --only-binary :all: -d FOLDER PACKAGES

A call site is a name of torch_npu, torch.ops.npu or ops.npu before an opening bracket.
"""

from __future__ import annotations

import re
import sys
import zipfile
from collections import Counter
from pathlib import Path

FOLDER = Path(__file__).parent
COUNTS = FOLDER / "called.txt"
PAGE = FOLDER.parents[1] / "docs" / "reference" / "npu_coverage.md"
START, END = "<!-- called: python -m tests.npu.called -->\n", "<!-- end of called -->\n"
MOST = 60
PACKAGES = (
    "diffusers", "llamafactory", "mindiesd", "ms-swift", "sglang", "transformers", "verl",
    "vllm-ascend",
)  # fmt: skip
CALL = re.compile(r"\b(?:torch_npu|ops\.npu)\.(npu_\w+)(?:\.\w+)?\s*\(")
# Only product 950 has them: FP8, FP4 and scales of blocks.
NEWER = {
    "npu_add_rms_norm_dynamic_mx_quant", "npu_dual_level_quant_matmul", "npu_dynamic_block_quant",
    "npu_dynamic_dual_level_mx_quant", "npu_dynamic_mx_quant", "npu_rms_norm_dynamic_mx_quant",
    "npu_transpose_quant_batchmatmul",
}  # fmt: skip


def calls_of(wheel: Path) -> Counter[str]:
    with zipfile.ZipFile(wheel) as files:
        texts = (
            files.read(n).decode(errors="replace") for n in files.namelist() if n[-3:] == ".py"
        )
        return sum((Counter(CALL.findall(text)) for text in texts), Counter())


def count(folder: Path) -> str:
    wheels = sorted(folder.glob("*.whl"))
    found = sum(map(calls_of, wheels), Counter())
    names = ", ".join(" ".join(wheel.name.split("-")[:2]) for wheel in wheels)
    lines = (f"{name} {n}\n" for name, n in sorted(found.items(), key=lambda x: (-x[1], x[0])))
    return f"# SPDX-License-Identifier: Apache-2.0\n# Call sites in {names}.\n" + "".join(lines)


def counts() -> dict[str, int]:
    lines = COUNTS.read_text().splitlines()
    return {name: int(n) for name, n in (line.split() for line in lines if line[0] != "#")}


def tests() -> dict[str, str]:
    """The first file of tests with a call of the function."""
    found: dict[str, str] = {}
    for folder in ("device", "distributed"):
        for file in sorted((FOLDER / folder).glob("*.py")):
            for name in CALL.findall(file.read_text()):
                if name not in NEWER:
                    found.setdefault(name, f"{folder}/{file.name}")
    return found


def most() -> list[tuple[str, int, str]]:
    """Name, call sites and test, empty without one, of those that are called most."""
    tested = tests()
    return [(name, n, tested.get(name, "")) for name, n in list(counts().items())[:MOST]]


def markdown() -> str:
    rows, all_ = most(), counts()
    computed = [row for row in rows if row[2]]
    head = (
        f"Of the {MOST} functions `torch_npu.npu_*` with the most call sites in "
        f"{', '.join(PACKAGES)} ({sum(all_.values())} sites, {len(all_)} functions), the device "
        f"computes {len(computed)}: {sum(n for _, n, _ in computed)} of "
        f"{sum(n for _, n, _ in rows)} sites. The others exist on product 950 only: "
    )
    others = ", ".join(f"`{name}` ({n})" for name, n, test in rows if not test)
    table = "".join(f"| `{name}` | {n} | `{test}` |\n" for name, n, test in computed)
    titles = "| function | call sites | compared in tests/npu |\n| --- | --- | --- |\n"
    return f"{head}{others}.\n\n{titles}{table}"


def page(text: str) -> str:
    before, _, rest = text.partition(START)
    return before + START + markdown() + END + rest.partition(END)[2]


def main() -> None:
    if len(sys.argv) > 1:
        COUNTS.write_text(count(Path(sys.argv[1])))
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
