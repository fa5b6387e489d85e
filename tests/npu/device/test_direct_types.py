# SPDX-License-Identifier: Apache-2.0
"""Operators that torch_npu sends by type name if a program asks for compiled ones."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def by_type():
    torch.npu.set_compile_mode(jit_compile=True)
    yield
    torch.npu.set_compile_mode(jit_compile=False)


def test_nonzero():
    x = torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])
    assert torch.equal(x.npu().nonzero().cpu(), x.nonzero())
