# SPDX-License-Identifier: Apache-2.0
"""What tests change in the library is set back after them; a device for those that need one."""

from __future__ import annotations

import ctypes
import gc
import os
from pathlib import Path

import pytest

import openaclnn
from openaclnn import _core


def pytest_addoption(parser):
    parser.addoption(
        "--passed",
        metavar="FILE",
        help="leave out the tests that FILE names, and add those that pass: a second run, with "
        "more packages installed, repeats none of the first",
    )


PROGRAMS = {"programs", "aten_calls", "aten_layer"}  # fixtures that compile


@pytest.hookimpl(tryfirst=True)  # before -m is read
def pytest_collection_modifyitems(config, items):
    """Leaves out what takes hours unless -m asks for it, and what --passed names."""
    for item in items:
        if PROGRAMS & set(item.fixturenames):
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
    """The PyTorch operators are compiled once for this folder, not into the user's cache. Python
    programs that tests start can import `tests`.

    With --passed, the process that gets all results writes them.
    """
    # Or torch's threads keep a CPU for 5 ms after each call, which workers of pytest-xdist want.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
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


@pytest.fixture(scope="module")
def frozen():
    """gc.collect looks at what the tests of a file make, not at all of torch and JAX: 0.3 s."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


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
    from tests.aten.aten_support import CALLS, built

    return built(programs, "calls", *CALLS)


@pytest.fixture(scope="session")
def aten_layer(programs):
    """The example with operators of ATen."""
    from tests.aten.aten_support import LAYER, built

    return built(programs, "layer", *LAYER)


@pytest.fixture
def device():
    acl = ctypes.CDLL(str(openaclnn.home() / "lib64" / "libascendcl.so"))
    assert acl.aclrtSetDevice(0) == 0
    acl.aclGetRecentErrMsg()  # what a failed test left behind
    yield
    assert acl.aclrtResetDevice(0) == 0
