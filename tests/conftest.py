# SPDX-License-Identifier: Apache-2.0
"""What tests change in the library is set back after them; a device for those that need one."""

from __future__ import annotations

import ctypes
import os

import pytest

import openaclnn
from openaclnn import _core


def pytest_configure(config):
    """The PyTorch operators are compiled once for this folder, not into the user's cache."""
    if (cache := getattr(config, "cache", None)) is not None:  # pytest -p no:cacheprovider
        os.environ.setdefault("OPENACLNN_CACHE", str(cache.mkdir("openaclnn")))


@pytest.fixture(autouse=True)
def settings():
    before = openaclnn.config()
    yield
    openaclnn.set_product(before["product"])
    openaclnn.set_num_threads(before["threads"])
    _core.set_streaming_bytes(before["streaming_bytes"])


@pytest.fixture
def device():
    acl = ctypes.CDLL(str(openaclnn.home() / "lib64" / "libascendcl.so"))
    assert acl.aclrtSetDevice(0) == 0
    acl.aclGetRecentErrMsg()  # what a failed test left behind
    yield
    assert acl.aclrtResetDevice(0) == 0
