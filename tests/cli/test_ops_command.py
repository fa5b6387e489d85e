# SPDX-License-Identifier: Apache-2.0
"""`openaclnn ops --markdown`: the whole table or page, or the operator that was named."""

from __future__ import annotations

import pytest
from tests.support import all_rows

from openaclnn.aten import catalogue as aten
from openaclnn.aten.prototypes import functions
from openaclnn.commands.cli import main
from openaclnn.rows.catalogue import markdown


def shown(capsys, *words):
    assert main(["ops", *words, "--markdown"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("op", all_rows())
def test_one_row(op, capsys):
    whole = shown(capsys)
    assert whole == markdown()
    head, rule, *rows = whole.splitlines()
    (row,) = (line for line in rows if line.startswith(f"| `{op.name}` |"))
    assert shown(capsys, op.python).splitlines() == [head, rule, row]


def test_one_operator_of_aten(capsys):
    whole = shown(capsys, "--aten")
    assert whole == aten.page()
    assert whole.count("\n## ") == len(functions())
    for words in (["--aten", "matmul"], ["aclnnMatmul"]):
        section = shown(capsys, *words)
        assert section.startswith("## aclnnMatmul\n")
        assert section.count("## ") == 1
        assert f"\n{section}\n" in whole
