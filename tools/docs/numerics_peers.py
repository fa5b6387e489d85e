# SPDX-License-Identifier: Apache-2.0
"""Writes docs/numerics_peers.md: ten defects of other libraries, each beside ours and the truth.

    pip install '.[bench]' && python tools/docs/numerics_peers.py

Every figure is computed in the run; where a defect is not there with this torch, the page says so.
Truth is the formula in float64 on the same inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from defects import elementwise, group_norm, special
from defects.defect import Defect, Line

import openaclnn

PAGE = Path(__file__).resolve().parents[2] / "docs" / "numerics_peers.md"
DEFECTS: tuple[Callable[[], Defect], ...] = (
    elementwise.nan_by_position,
    group_norm.lost_digits,
    group_norm.plain_sum,
    group_norm.half_statistics,
    elementwise.rounded_attributes,
    elementwise.misrounded,
    group_norm.early_zero,
    elementwise.overflow,
    group_norm.thread_count,
    group_norm.one_dnn,
)


def defects() -> Iterator[Defect]:
    for make in DEFECTS:
        yield make()


def verdict(defect: Defect) -> str:
    wrong = sum(line.wrong for line in defect.lines)
    if not defect.lines:
        return "Not shown: this torch has no oneDNN."
    if not wrong:
        return f"**Does not reproduce with torch {torch.__version__}.**"
    return f"Reproduced with torch {torch.__version__} ({wrong} of {len(defect.lines)} lines)."


def special_values(lines: list[Line]) -> str:
    """A table; torch's result is bold where it contradicts the rule."""
    text = "\n## Special values, row by row\n\n"
    text += "Each case runs on an fp32 tensor of 67 equal elements. Two results mean that the "
    text += "result depends on the position. Bold results contradict the "
    text += "[rules](numerics.md#special-values). The rules for eps >= 1 and lambd < 0 come from "
    text += "the aclnn interface.\n"
    text += "\n| | torch | ours | rule |\n| --- | --- | --- | --- |\n"
    for line in lines:
        theirs = f"**{line.torch}**" if line.wrong else line.torch
        text += f"| {line.case} | {theirs} | {line.ours} | {line.true} |\n"
    return text


def page(found: list[Defect], special_lines: list[Line]) -> str:
    text = "<!-- SPDX-License-Identifier: Apache-2.0 -->\n# Where peers are wrong\n\n"
    text += "This page lists ten defects of other libraries: for each, their result, ours and the "
    text += "true one. `python tools/docs/numerics_peers.py` writes it and computes every figure; "
    text += "the true result is the formula in float64 on the same inputs.\n"
    text += f"\nThis run: torch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()}), "
    text += f"openaclnn {openaclnn.__version__} ({openaclnn.config()['kernels']}), "
    text += f"NumPy {np.__version__}.\n"
    for i, defect in enumerate(found, 1):
        text += f"\n## {i}. {defect.title}\n\n{defect.text} {verdict(defect)}\n"
        if defect.lines:
            text += "\n| | torch | ours | true |\n| --- | --- | --- | --- |\n"
        for line in defect.lines:
            text += f"| {line.case} | {line.torch} | {line.ours} | {line.true} |\n"
        if defect.note:
            text += f"\n{defect.note}\n"
    return text + special_values(special_lines)


if __name__ == "__main__":
    PAGE.write_text(page(list(defects()), list(special.lines())))
