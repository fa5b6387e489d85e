# SPDX-License-Identifier: Apache-2.0
"""Tests that run inside the environment of `openaclnn npu`: test_npu.py starts them there."""

from __future__ import annotations

import os

import pytest

INSIDE = "lib64/npu" in os.environ.get("LD_LIBRARY_PATH", "")
collect_ignore_glob = [] if INSIDE else ["test_*.py"]


@pytest.fixture
def settings():
    """Replaces the fixture of the folder above, which these tests do not need."""


@pytest.fixture(scope="module")
def direct():
    from tests.npu.device.direct_calls import DirectCalls

    return DirectCalls()


@pytest.fixture
def call(direct):
    """Calls rows as C functions; what the test draws is the same each time."""
    import torch

    torch.manual_seed(20260)
    return direct


@pytest.fixture(autouse=True)
def nothing_left():
    """A test neither inherits nor leaves failed work."""
    import torch

    yield
    torch.npu.synchronize()
