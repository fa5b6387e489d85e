# SPDX-License-Identifier: Apache-2.0
"""What `openaclnn ops --aten` and the headers list of the functions that ATen computes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.aten.aten_support import command

from openaclnn.aten import catalogue, prototypes

pytestmark = pytest.mark.programs


@pytest.fixture(scope="module")
def home() -> Path:
    done = command("home", "--aten")
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def test_the_list_has_every_operator_with_what_computes_it():
    shown = command("ops", "--aten").stdout
    data = json.loads(command("ops", "--aten", "--json").stdout)
    assert [entry["name"] for entry in data] == sorted(prototypes.functions())
    for entry in data:
        assert re.search(rf"^{entry['name']} .*{re.escape(entry['computed_by'])}$", shown, re.M)
        assert entry["limits"]
    own = command("ops").stdout  # stays short
    assert "aclnnMatmul" not in own
    assert command("ops", "aclnnMatmul").stdout == command("ops", "--aten", "matmul").stdout
    full = " ".join(command("ops", "aclnnWeightQuantBatchMatmulV2").stdout.split())
    for part in (
        "aclnnop/aclnn_weight_quant_batch_matmul_v2.h",
        "int32_t antiquantGroupSize",
        "INT4",
    ):
        assert part in full
    wrong = command("ops", "--aten", "aclnnMatmull")
    assert wrong.returncode == 2
    assert wrong.stderr == (
        "openaclnn ops: ATen computes no aclnnMatmull; did you mean aclnnMatmul?\n"
    )


# As programs spell them.
INCLUDED = """
argmax batch_matmul grid_sampler2d grid_sampler3d_backward isclose isfinite lerp_scalar lerp_tensor
logaddexp2 logsigmoid logspace logsumexp remainder rrelu_with_noise searchsorted
upsample_bicubic_2d_backward upsample_bicubic2d_aa upsample_nearest_2d_v2 upsample_trilinear_3d var
"""


def test_headers_are_spelled_as_programs_do():
    missing = {f"aclnn_{key}.h" for key in INCLUDED.split()} - prototypes.headers().keys()
    assert missing == set()
    shown = {name: catalogue.header(f"aclnn{name}") for name in ("GridSampler2D", "Lerps", "Exp")}
    assert list(shown.values()) == ["aclnn_grid_sampler2d.h", "aclnn_lerp_scalar.h", "aclnn_exp.h"]


def test_an_operator_of_openaclnn_is_found_there():
    wrong = command("ops", "--aten", "aclnnLeakyRelu")
    assert wrong.returncode == 2
    assert wrong.stderr == (
        "openaclnn ops: ATen computes no aclnnLeakyRelu: openaclnn does; "
        "see:  openaclnn ops aclnnLeakyRelu\n"
    )


def test_what_is_refused_by_name_belongs_to_a_composite():
    composites = {row.op for row in prototypes.functions().values() if row.overload is None}
    assert set(catalogue.REFUSED) <= composites


def test_the_headers_of_the_list_declare_the_prototypes(home):
    for name, row in prototypes.functions().items():
        text = (home / "include" / "aclnnop" / catalogue.header(name)).read_text(encoding="utf-8")
        for prototype in prototypes.prototypes(row):
            assert prototype in text, name
