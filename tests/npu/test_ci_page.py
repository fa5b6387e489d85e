# SPDX-License-Identifier: Apache-2.0
"""docs/tutorials/npu_ci.md: its workflow is one, and its steps run on a project with its test."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.npu.npu_support import environment

from openaclnn.torch_npu.names import VERSION

yaml = pytest.importorskip("yaml")
pytestmark = pytest.mark.programs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorials" / "npu_ci.md"


def block(language):
    return re.search(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)[1]


WORKFLOW = yaml.safe_load(block("yaml"))
JOB = WORKFLOW["jobs"]["npu"]
STEPS = {step["name"]: step for step in JOB["steps"] if "name" in step}


def test_it_installs_the_versions_that_are_tried():
    words = STEPS["Install"]["run"].split()
    assert {f"torch=={VERSION}", f"torch_npu=={VERSION}", "pyyaml", "pytest"} <= set(words)
    cache = next(step for step in JOB["steps"] if "cache@" in step.get("uses", ""))
    assert cache["with"]["key"].endswith(VERSION)
    assert WORKFLOW["env"]["OPENACLNN_CACHE"].endswith("/" + cache["with"]["path"])


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "tests").mkdir()
    (folder / "tests" / "test_npu.py").write_text(block("python"))
    return folder


# An environment without pip's scripts has the command, too.
COMMAND = f'openaclnn() {{ {sys.executable} -m openaclnn "$@"; }}\n'


def run(command, folder, **variables):
    variables |= {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    return subprocess.run(
        ["bash", "-ec", COMMAND + command], cwd=folder, env=environment(**variables),
        capture_output=True, text=True,
    )  # fmt: skip


def test_its_test_runs(project):
    """On the product of the first job, and with its check, which test_npu.py runs."""
    assert STEPS["Check"]["run"] == "openaclnn npu --check"
    assert STEPS["Test"]["env"] == {"OPENACLNN_PRODUCT": "${{ matrix.product }}"}
    product = JOB["strategy"]["matrix"]["product"][0]
    quiet = str(WORKFLOW["env"]["OPENACLNN_NPU_NOTICE"])
    done = run(STEPS["Test"]["run"], project, OPENACLNN_PRODUCT=product, OPENACLNN_NPU_NOTICE=quiet)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
