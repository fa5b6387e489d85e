# SPDX-License-Identifier: Apache-2.0
"""What tests change in the library is set back after them."""

from __future__ import annotations

import pytest

import openaclnn
from openaclnn import _core


@pytest.fixture(autouse=True)
def settings():
    before = openaclnn.config()
    yield
    openaclnn.set_product(before["product"])
    openaclnn.set_num_threads(before["threads"])
    _core.set_streaming_bytes(before["streaming_bytes"])
