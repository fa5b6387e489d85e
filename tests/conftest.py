# SPDX-License-Identifier: Apache-2.0
"""What tests change in the library is set back after them; a device for those that need one."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest

import openaclnn
from openaclnn import _core

# Files whose tests mostly start compilers, processes or a browser; other files mark single tests.
# These take most of the time. The rest takes under a minute on two cores, or three with torch and
# jax:
#   pytest -n auto -m "not programs"
PROGRAMS = {
    "test_aten_programs",
    "test_aten_refusals",
    "test_aten_programs_watched",
    "test_building",
    "test_builds",
    "test_callbacks",
    "test_check_mode",
    "test_check_mode_cases",
    "test_check_mode_command",
    "test_check_mode_mappings",
    "test_check_mode_values",
    "test_check_mode_html",
    "test_compatibility",
    "test_demo_documents",
    "test_dlpack",
    "test_examples",
    "test_jax_building",
    "test_npu",
    "test_npu_distributed",
    "test_npu_libraries",
    "test_operator_pages",
    "test_plan_memory",
    "test_processes",
    "test_programs",
    "test_readme",
    "test_site",
    "test_torch_ops_building",
    "test_torch_ops_docs",
    "test_torch_ops_sharding",
    "test_torch_threads",
    "test_trace",
    "test_trace_python",
    "test_verify_docs",
    "test_verify_libraries",
    "test_verify_page_browser",
    "test_wheel",
}


def pytest_addoption(parser):
    parser.addoption(
        "--passed",
        metavar="FILE",
        help="leave out the tests that FILE names, and add those that pass: a second run, with "
        "more packages installed, repeats none of the first",
    )


def pytest_collection_modifyitems(config, items):
    """Marks the files above; leaves out what takes hours unless -m speaks of it."""
    for item in items:
        if item.path.stem in PROGRAMS:
            item.add_marker("programs")
    if "exhaustive" not in config.option.markexpr:
        long = [item for item in items if item.get_closest_marker("exhaustive")]
        items[:] = [item for item in items if item not in set(long)]
        config.hook.pytest_deselected(items=long)
    if (file := config.option.passed) and os.path.exists(file):
        passed = set(Path(file).read_text().splitlines())
        again = [item for item in items if item.nodeid in passed]
        items[:] = [item for item in items if item.nodeid not in passed]
        config.hook.pytest_deselected(items=again)


class Passed:
    """Writes what passed; at the end, because workers of pytest-xdist read it at their start."""

    def __init__(self, file):
        self.file, self.names = Path(file), set()

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            self.names.add(report.nodeid)
        elif report.failed:  # after the call, too
            self.names.discard(report.nodeid)

    def pytest_sessionfinish(self):
        with self.file.open("a") as file:
            file.writelines(f"{name}\n" for name in sorted(self.names))


def pytest_configure(config):
    """The PyTorch operators are compiled once for this folder, not into the user's cache.

    With --passed, the process that hears of all results writes them.
    """
    if (cache := getattr(config, "cache", None)) is not None:  # pytest -p no:cacheprovider
        os.environ.setdefault("OPENACLNN_CACHE", str(cache.mkdir("openaclnn")))
    if config.option.passed and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Passed(config.option.passed))


@pytest.fixture(autouse=True)
def settings():
    before = openaclnn.config()
    yield
    openaclnn.set_product(before["product"])
    openaclnn.set_num_threads(before["threads"])
    _core.set_streaming_bytes(before["streaming_bytes"])


@pytest.fixture(scope="session")
def programs(request, tmp_path_factory):
    """A folder for programs that several tests run, the same in all workers of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if hasattr(request.config, "workerinput") else base) / "programs"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def aten_calls(programs):
    """The program of the calls of a C++ client with operators of ATen."""
    from aten_support import CALLS, built

    return built(programs, "calls", *CALLS)


@pytest.fixture(scope="session")
def aten_layer(programs):
    """The example with operators of ATen."""
    from aten_support import LAYER, built

    return built(programs, "layer", *LAYER)


@pytest.fixture
def device():
    acl = ctypes.CDLL(str(openaclnn.home() / "lib64" / "libascendcl.so"))
    assert acl.aclrtSetDevice(0) == 0
    acl.aclGetRecentErrMsg()  # what a failed test left behind
    yield
    assert acl.aclrtResetDevice(0) == 0
