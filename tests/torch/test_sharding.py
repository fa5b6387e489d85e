# SPDX-License-Identifier: Apache-2.0
"""DTensor: 2 and 4 processes on gloo have the numbers of one, and send no activations."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import run_with_children
from tests.torch import torch_support  # noqa: F401  # skips without torch or a compiler
from tests.torch.torch_support import torch

if not torch.distributed.is_available():
    pytest.skip("torch has no torch.distributed", allow_module_level=True)

from tests.torch.sharding_cases import CASES

pytestmark = pytest.mark.programs

PROGRAM = Path(__file__).with_name("sharding_cases.py")


@pytest.fixture(scope="module", params=[2, 4])
def failed(request, tmp_path_factory):
    """What failed in some process, by case."""
    folder = tmp_path_factory.mktemp("sharding")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(PROGRAM.parents[2])}
    launch = [sys.executable, "-W", "ignore", str(PROGRAM.with_name("launch.py"))]
    command = [*launch, str(request.param), str(PROGRAM), str(folder)]
    status, text = run_with_children(command, environment, 240)
    if status != 0:
        pytest.fail(text, pytrace=False)
    found = {}
    for rank in range(request.param):
        found |= json.loads((folder / f"{rank}.json").read_text())
    return found


@pytest.mark.parametrize("case", CASES)
def test_sharded(failed, case):
    assert case not in failed, failed[case]


@pytest.mark.parametrize("order", ["before", "after", "probed"])
def test_nothing_is_imported_before_its_time(order):
    """torch.distributed.tensor takes half a second; whichever comes first, the rules are there."""
    code = """
import sys, torch
import openaclnn.torch
assert ("torch.distributed.tensor" in sys.modules) == ("DTensor" in globals())
PROBE
from torch.distributed.tensor import DTensor
rules = DTensor._op_dispatcher.sharding_propagator.op_strategy_funcs
assert torch.ops.openaclnn.elu.default in rules
"""
    probe = "import importlib.util; importlib.util.find_spec('torch.distributed.tensor')"
    code = code.replace("PROBE", probe if order == "probed" else "")
    first = "from torch.distributed.tensor import DTensor\n" if order == "before" else ""
    subprocess.run([sys.executable, "-W", "ignore", "-c", first + code], check=True)


def test_another_interface_of_torch_is_a_warning(monkeypatch):
    """The operators work without DTensor, so the import does not fail."""
    from torch.distributed.tensor import _op_schema

    from openaclnn.torch.sharding import register_sharding

    monkeypatch.setattr(_op_schema, "RuntimeSchemaInfo", lambda: None)
    with pytest.warns(
        RuntimeWarning, match="has another interface for them: .* takes 0 positional"
    ):
        register_sharding()
