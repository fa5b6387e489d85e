# SPDX-License-Identifier: Apache-2.0
"""The sitecustomize of `openaclnn npu`: it runs the one it hides, and changes nothing by itself."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from openaclnn.settings import home

pytestmark = pytest.mark.programs


def run(*words, folder, **variables):
    path = os.pathsep.join([str(home() / "python" / "site-packages"), str(folder)])
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | variables
    done = subprocess.run(
        [sys.executable, *words],
        env=environment | {"PYTHONPATH": path}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


def test_the_hidden_sitecustomize_runs(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('hidden')\nmark = 1\n")
    code = "import sys, sitecustomize; print(sitecustomize.mark, 'openaclnn' in sys.modules)"
    assert run("-c", code, folder=tmp_path) == ["hidden", "1", "False"]


def test_a_package_is_changed_when_it_is_imported(tmp_path):
    """triton, of which the interpreter is chosen first; here one without anything to change."""
    (tmp_path / "triton.py").write_text("import os\nprint(os.environ.get('TRITON_INTERPRET'))\n")
    (tmp_path / "own.py").write_text("def change(module): print('changed', module.__name__)\n")
    code = "import openaclnn_imports; openaclnn_imports.CHANGES['triton'] = 'own'; import triton"
    assert run("-c", code, folder=tmp_path) == ["1", "changed", "triton"]
    chosen = run("-c", code, folder=tmp_path, TRITON_INTERPRET="0")
    assert chosen == ["0", "changed", "triton"]


def test_another_python_has_its_packages_unchanged(tmp_path):
    """-S: without site-packages, and so without openaclnn."""
    (tmp_path / "triton.py").write_text("import os\nprint(os.environ.get('TRITON_INTERPRET'))\n")
    code = "import openaclnn_imports; openaclnn_imports.install(); import triton"
    assert run("-S", "-c", code, folder=tmp_path) == ["None"]
