# SPDX-License-Identifier: Apache-2.0
"""The example programs that the tests of traces run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.trace.traces import built

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def leaky_relu(programs) -> Path:
    return built(programs, EXAMPLES / "leaky_relu.cpp")


@pytest.fixture(scope="module")
def two_streams(programs) -> Path:
    return built(programs, EXAMPLES / "two_streams.cpp")
