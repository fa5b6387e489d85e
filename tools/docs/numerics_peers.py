# SPDX-License-Identifier: Apache-2.0
"""Writes numerics_peers.md: the known defects of torch, each beside ours and the truth.

    pip install '.[bench]' && python tools/docs/numerics_peers.py

Every figure is computed in the run; where a defect does not show with this torch, the page says so.
Truth is the formula in float64 on the same inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from defects import elementwise, group_norm, special
from defects.defect import Demonstration, Line

import openaclnn
from openaclnn.verify.defect import Defect
from openaclnn.verify.torch_defects import TORCH

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "numerics_peers.md"
# By the number of the defect in the table of openaclnn.verify.
DEMONSTRATIONS: dict[int, Callable[[], Demonstration]] = {
    1: elementwise.nan_by_position,
    2: group_norm.lost_digits,
    3: group_norm.plain_sum,
    4: group_norm.half_statistics,
    5: elementwise.rounded_attributes,
    6: elementwise.misrounded,
    7: group_norm.early_zero,
    8: elementwise.overflow,
    9: group_norm.thread_count,
    10: group_norm.one_dnn,
}
Found = list[tuple[Defect, Demonstration]]


def demonstrated() -> Found:
    return [(defect, DEMONSTRATIONS[defect.number]()) for defect in TORCH]


def verdict(lines: list[Line]) -> str:
    wrong = sum(line.wrong for line in lines)
    if not lines:
        return "Not shown: this torch has no oneDNN."
    if not wrong:
        return f"**Does not reproduce with torch {torch.__version__}.**"
    return f"Reproduced with torch {torch.__version__} ({wrong} of {len(lines)} lines)."


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


def capital(text: str) -> str:
    return text if text == "oneDNN" else text[0].upper() + text[1:]


def page(found: Found, special_lines: list[Line]) -> str:
    text = "<!-- SPDX-License-Identifier: Apache-2.0 -->\n# Where other libraries are wrong\n\n"
    text += "This page lists ten defects of torch and oneDNN: for each, their result, ours and the "
    text += "true one. `python tools/docs/numerics_peers.py` writes it and computes every figure; "
    text += "the true result is the formula in float64 on the same inputs. `openaclnn verify` "
    text += "[names](../howto/verify.md#what-is-known-of-torch) these defects in what it finds.\n"
    text += f"\nThis run: torch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()}), "
    text += f"openaclnn {openaclnn.__version__} ({openaclnn.config()['kernels']}), "
    text += f"NumPy {np.__version__}.\n"
    for defect, shown in found:
        text += f"\n## {defect.number}. {capital(defect.title)}\n\n"
        parts = f"{capital(defect.sentence)}.", shown.text, verdict(shown.lines)
        text += " ".join(filter(None, parts)) + "\n"
        if shown.lines:
            text += "\n| | torch | ours | true |\n| --- | --- | --- | --- |\n"
        for line in shown.lines:
            text += f"| {line.case} | {line.torch} | {line.ours} | {line.true} |\n"
        if shown.note:
            text += f"\n{shown.note}\n"
    return text + special_values(special_lines)


if __name__ == "__main__":
    PAGE.write_text(page(demonstrated(), list(special.lines())))
