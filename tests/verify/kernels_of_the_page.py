# SPDX-License-Identifier: Apache-2.0
"""The kernels and commands of docs/tutorials/own_kernel.md and own_c_kernel.md, and how tests judge
them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from openaclnn.commands.cli import main

TUTORIALS = Path(__file__).resolve().parents[2] / "docs" / "tutorials"
PAGE = (TUTORIALS / "own_kernel.md").read_text("utf-8")
C_PAGE = (TUTORIALS / "own_c_kernel.md").read_text("utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)


NUMPY, TRITON = blocks(PAGE, "python")
GROUP_NORM, COMPARE = blocks(PAGE, "py")
FIRST, THIRD = blocks(PAGE, "bash")
PASSED, SHOWN = blocks(PAGE, "text")
_, LEAKY, C = blocks(C_PAGE, "c")
(SECOND,) = blocks(C_PAGE, "bash")
(SHOWN_IN_C,) = blocks(C_PAGE, "text")


def edited(source: str, old: str, new: str) -> str:
    assert old in source
    return source.replace(old, new)


def verified(provider: str, op: str, *options: str) -> tuple[int, list[dict[str, object]]]:
    command = ["verify", provider, "--op", op, "--quiet", "--json", "report.json", *options]
    status = main([*command, "--timeout", "10"])
    return status, json.loads(Path("report.json").read_text(encoding="utf-8"))["findings"]


def check(found, kind, cause):
    causes = [f["cause"] for f in found if kind in (None, f["kind"])]
    assert causes, found
    if cause is not None:
        assert any(re.search(cause, text) for text in causes), causes
