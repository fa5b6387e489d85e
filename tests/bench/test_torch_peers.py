# SPDX-License-Identifier: Apache-2.0
"""docs/reference/numerics_peers.md: looks for the defects that it lists, and checks our results."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "docs"))
import numerics_peers

from openaclnn.rows.table import OPS
from openaclnn.verify.torch_defects import TORCH

TABLE_ROW = re.compile(r"^\| (.*?) \|", re.M)
HEADING = re.compile(r"^## .*", re.M)


@pytest.fixture(scope="module")
def found():
    return numerics_peers.demonstrated()


@pytest.fixture(scope="module")
def special_lines():
    return list(numerics_peers.special.lines())


def kinds(page: str) -> list[str]:
    return HEADING.findall(page) + [row for row in TABLE_ROW.findall(page) if row != "---"]


def test_the_page_has_the_same_rows(found, special_lines):
    """Figures depend on the machine; what is compared does not."""
    written = numerics_peers.PAGE.read_text()
    assert kinds(written) == kinds(numerics_peers.page(found, special_lines)), (
        "run tools/docs/numerics_peers.py"
    )
    assert len(HEADING.findall(written)) == len(TORCH) + 1 == 11


def test_ours_are_right(found):
    for defect, shown in found:
        for line in shown.lines:
            assert line.right, f"{defect.title}: {line}"


def test_special_values(special_lines):
    assert not [line for line in special_lines if not line.right]
    rows = {op.python for op in OPS if op.pointwise and not op.inplace}
    assert set(numerics_peers.special.CASES) <= rows
    assert rows - set(numerics_peers.special.CASES) <= {"softsign"}  # of example_changes.py


def test_a_defect_that_is_gone(found):
    for line in found[0][1].lines:
        line.wrong = False
    assert "**Does not reproduce with torch" in numerics_peers.page(found[:1], [])
