# SPDX-License-Identifier: Apache-2.0
"""All 65,536 patterns of the 16-bit dtypes: correctly rounded, every NaN the canonical one."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support import (
    HALVES,
    assert_accurate,
    bits,
    boundaries,
    call,
    cases,
    rows,
    wide_dtypes,
)

from openaclnn.reference.evaluation import REFERENCES, numpy_dtype, rounded

PARTNERS = (1.0, -3.0, 0.0, 2.0**-14, float("inf"), float("nan"))


@pytest.mark.parametrize(("op", "dtype", "attributes"), cases(HALVES, lambda op: op.pointwise))
def test_every_pattern(op, dtype, attributes):
    """Each input in turn takes every pattern beside each partner of the others."""
    kind = numpy_dtype(dtype)
    patterns = np.arange(1 << 16, dtype=np.uint16).view(kind)
    partners = np.array(PARTNERS if len(op.input_tensors) > 1 else PARTNERS[:1]).astype(kind)
    sweep, still = (x.reshape(-1) for x in np.meshgrid(patterns, partners))
    for i in range(len(op.input_tensors)):
        inputs = [sweep if i == k else still for k in range(len(op.input_tensors))]
        assert_accurate(op, inputs, attributes, call(op, inputs, attributes))


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("op", rows(wide_dtypes))
def test_results_are_rounded_once(op, half):
    """A 16-bit output is the FLOAT or DOUBLE result, rounded to nearest even.

    Where FLOAT is not correctly rounded itself, it is computed again for 16 bits.
    """
    for dtype in wide_dtypes(op):
        for attributes in REFERENCES[op.kernel].attributes:
            inputs = [boundaries(half, dtype)] * len(op.input_tensors)
            exact = call(op, inputs, attributes).astype(np.float64)
            narrow = call(op, inputs, attributes, np.empty(exact.shape, numpy_dtype(half)))
            if dtype == "FLOAT" and REFERENCES[op.kernel].ulp[dtype] > 0.5:
                assert_accurate(op, inputs, attributes, narrow)
            else:
                assert (bits(narrow) == bits(rounded(exact, half))).all(), f"{dtype} {attributes}"
