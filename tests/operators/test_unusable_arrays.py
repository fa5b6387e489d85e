# SPDX-License-Identifier: Apache-2.0
"""Arrays that no C program can bring, and arguments that are none."""

from __future__ import annotations

import numpy as np
import pytest
from tests.operators.test_errors import INVALID, tensors
from tests.support import (
    AN_ARRAY,
    all_rows,
    arguments,
    plan,
    refusal,
)

import openaclnn


@pytest.mark.parametrize(("op", "parameter"), tensors())
def test_unusable_arrays(op, parameter):
    def refused(array, must):
        named = arguments(op, shape=(4,)) | {parameter.name: array}
        assert refusal(op, named) == (INVALID, f"{op.name}: {parameter.name} must {must}")

    refused(np.ones(4, ">f4"), "have a dtype in native byte order, but got >f4")
    refused(np.ones(4, "U3"), "have a dtype of the aclnn API, but got <U3")
    refused(np.ones(4, "g"), "have a dtype of the aclnn API, but got float128")
    record = np.zeros(4, [("value", "f4"), ("flag", "u1")])["value"]
    refused(record, "have strides of whole elements, but steps by 5 bytes over items of 4")
    crooked = np.zeros(17, np.uint8)[1:].view(np.float32)
    address = crooked.ctypes.data
    refused(crooked, f"be aligned to its element size 4, but its address is {address:#x}")
    if parameter.role != "input":
        frozen = np.ones(4, np.float32)
        frozen.flags.writeable = False
        refused(frozen, "be writable, but got a read-only array")


@pytest.mark.parametrize("op", all_rows())
def test_not_an_array_and_not_a_number(op):
    for p in op.parameters:
        named = arguments(op) | {p.name: "zero"}
        if p.kind == "tensor":
            what = f"{AN_ARRAY}, but got str"
        elif p.kind in ("scalar", "double"):
            what = "a number, but got 'zero'"
        elif p.kind == "int64":
            what = "an integer of at most 64 bits, but got 'zero'"
        elif p.kind == "bool":
            what = "True or False, but got 'zero'"
        else:
            continue
        with pytest.raises(TypeError) as caught:
            plan(op, named)
        assert str(caught.value) == f"{op.name}: {p.name} must be {what}"


def test_a_numpy_scalar_is_not_an_array():
    with pytest.raises(TypeError, match="or a DLPack producer, but got a NumPy scalar of type "):
        openaclnn.leaky_relu(np.float32(1.5))
