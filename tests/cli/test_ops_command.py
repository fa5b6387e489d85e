# SPDX-License-Identifier: Apache-2.0
"""`openaclnn ops --markdown`: the whole table or page, or the operator that was named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.support import all_rows

from openaclnn.aten import catalogue as aten
from openaclnn.aten.prototypes import functions
from openaclnn.commands import runtime_functions
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


def test_functions_of_the_runtime(capsys):
    page = Path(__file__).parents[2] / "docs" / "reference" / "runtime_functions.md"
    listed = set(re.findall(r"`((?:acl|Hccl)\w+)`", page.read_text(encoding="utf-8")))
    assert len(listed) > 500
    assert listed <= runtime_functions.functions().keys()
    assert main(["ops", "aclrtRecordEvent"]) == 0
    text = capsys.readouterr().out
    assert '#include "acl/acl_rt.h"' in text
    assert "aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream)" in text
    assert main(["ops", "aclCreateTensor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["header"] == "aclnn/acl_meta.h"
    assert found["prototype"].startswith("aclTensor* aclCreateTensor(const int64_t* viewDims,")
    assert found["about"]
    section = shown(capsys, "aclCreateTensor")
    assert section.startswith(f"## aclCreateTensor\n\nOf the runtime. {found['about']}\n\n```c\n")
    assert '#include "aclnn/acl_meta.h"\naclTensor* aclCreateTensor(const int64_t* ' in section
    assert section.endswith("void* tensorData);\n```\n")
    assert " ".join(section.split()).count(found["prototype"] + ";") == 1


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("aclrtRecordEvnt", "aclrtRecordEvent"), ("aclnnLeakyRelus", "aclnnLeakyRelu")],
)
def test_a_mistyped_name(typed, meant, capsys):
    assert main(["ops", typed]) == 2
    assert f"did you mean {meant}?" in capsys.readouterr().err
