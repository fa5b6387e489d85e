# SPDX-License-Identifier: Apache-2.0
"""Tests that run inside the environment of `openaclnn npu`: tests/test_npu.py starts them there."""

from __future__ import annotations

import os

import pytest

INSIDE = "lib64/npu" in os.environ.get("LD_LIBRARY_PATH", "")
collect_ignore_glob = [] if INSIDE else ["test_*.py"]


@pytest.fixture
def settings():
    """Replaces the fixture of the folder above, which these tests do not need."""


@pytest.fixture(autouse=True)
def nothing_left():
    """A test neither inherits nor leaves failed work."""
    import torch

    yield
    torch.npu.synchronize()
