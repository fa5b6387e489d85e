# SPDX-License-Identifier: Apache-2.0
"""What the tests of the torch_npu wheel share. A module that imports this one is skipped, with the
reason, where the wheel cannot be used.
"""

from __future__ import annotations

import importlib.util
import os

import pytest

from openaclnn.torch_npu.environment import DEFAULTS
from openaclnn.torch_npu.installed import problem

if importlib.util.find_spec("torch_npu") is None:
    pytest.skip("torch_npu is not installed: pip install '.[npu]'", allow_module_level=True)
if (reason := problem()) is not None:
    pytest.skip(reason, allow_module_level=True)

# What `openaclnn npu` and the launcher of torch set must not come from outside.
_FOREIGN = {*DEFAULTS, "LD_LIBRARY_PATH", "TORCH_DEVICE_BACKEND_AUTOLOAD", "RANK", "WORLD_SIZE"}


def environment(**variables: str) -> dict[str, str]:
    """The environment of a process of these tests."""
    return {k: v for k, v in os.environ.items() if k not in _FOREIGN} | variables
