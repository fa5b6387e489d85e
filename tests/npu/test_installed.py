# SPDX-License-Identifier: Apache-2.0
"""What openaclnn npu finds installed, and the names that the wheels of torch_npu link."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest
from tests.npu import wheels
from tests.npu.test_libraries import FOLDER

from openaclnn.aten.installed import Installed
from openaclnn.torch_npu import installed, names

pytestmark = pytest.mark.programs


FITS = Installed(FOLDER, "2.13.0+cpu", "abc", None)


@pytest.mark.parametrize(
    ("torch", "wheel", "sentence"),
    [
        (None, "2.13.0", "PyTorch is not installed; install both with: pip install torch=="),
        (FITS, None, "torch_npu is not installed"),
        (
            Installed(FOLDER, "2.14.0+cu130", "abc", "CUDA 13.0"), "2.14.0",
            "register the same allocator setting, .* install the CPU build of torch",
        ),
        (FITS, "2.6.0", "torch_npu 2.6.0 is older than 2.7.1; install another with"),
        (
            Installed(FOLDER, "2.12.1", "abc", None), "2.13.0",
            "torch_npu 2.13.0 needs torch 2.13.0, but torch 2.12.1 is installed",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_explained(monkeypatch, torch, wheel, sentence):
    monkeypatch.setattr(installed, "torch", lambda: torch)
    monkeypatch.setattr(installed, "torch_npu", lambda: wheel)
    with pytest.raises(AssertionError, match=sentence):
        raise AssertionError(installed.problem())


def test_a_build_for_cuda_runs_where_no_gpu_is_visible(monkeypatch):
    build = Installed(FOLDER, "2.13.0+cu130", "abc", "CUDA 13.0")
    monkeypatch.setattr(installed, "torch", lambda: build)
    monkeypatch.setattr(installed, "torch_npu", lambda: "2.13.0")
    monkeypatch.setattr("openaclnn.aten.installed._cuda_devices", lambda: 0)
    assert "GPU" not in (installed.problem() or "")
    monkeypatch.setattr("openaclnn.aten.installed._cuda_devices", lambda: 1)
    assert "sees a GPU (CUDA 13.0)" in installed.problem()
    assert installed.problem().endswith("hide the GPU with CUDA_VISIBLE_DEVICES=")


def exported() -> set[str]:
    files = (FOLDER.parent / "libopenaclnn.so", FOLDER / "libopenaclnn_npu.so")
    listed = [subprocess.run(["nm", "-D", f], capture_output=True, text=True) for f in files]
    return {name for one in listed for name in re.findall(r" T (\w+)$", one.stdout, re.M)}


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm of binutils is not installed")
@pytest.mark.parametrize("version", wheels.VERSIONS)
def test_every_name_that_a_wheel_links_is_there(version):
    linked = {name for name, versions in wheels.table().items() if version in versions}
    assert len(linked) >= 65
    assert linked - exported() == set()


def test_nothing_is_refused_that_no_wheel_links():
    assert {f.name for f in names.refused()} <= set(wheels.table())


def test_a_torch_is_read_without_importing_it(monkeypatch, tmp_path):
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('it was imported')\n")
    (package / "version.py").write_text(
        "from typing import Optional\n__version__ = '2.13.0+cu130'\ndebug = False\n"
        "cuda: Optional[str] = '13.0'\ngit_version = 'abc'\nhip: Optional[str] = None\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert installed.torch() == Installed(package, "2.13.0+cu130", "abc", "CUDA 13.0")


def test_the_command_refuses_what_it_does_not_know():
    command = [sys.executable, "-m", "openaclnn", "npu", "--nonsense"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "there is no option --nonsense; see:  openaclnn npu --help" in done.stderr
