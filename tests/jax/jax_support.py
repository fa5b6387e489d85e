# SPDX-License-Identifier: Apache-2.0
"""What the tests of openaclnn.jax share. Importing it skips where there is no JAX, and where there
is no compiler."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from tests.support import SEED, cases, shape_for

from openaclnn.compiled import compiler
from openaclnn.reference.evaluation import REFERENCES, sample
from openaclnn.rows.table import OPS

jax = pytest.importorskip("jax", reason="JAX is not installed")
if compiler() is None:
    pytest.skip("no C++ compiler is installed", allow_module_level=True)

import openaclnn.jax as oj

# A value for which the operator has a gradient and an in-place form.
PLAIN = {op.name: REFERENCES[op.kernel].attributes[0] for op in OPS}


def jax_cases():
    """Every set of attributes in the first dtype, and every dtype with the first set: JAX passes
    both on, each in its own way, and tests/operators has their product.
    """
    return [
        case
        for case in cases()
        for op, dtype, attributes in [case.values]
        if dtype == op.dtypes[0] or attributes == PLAIN[op.name]
    ]


def wide(dtype: str):
    """JAX turns float64 into float32 unless a setting forbids it."""
    return jax.enable_x64(True) if dtype == "DOUBLE" else nullcontext()


def arrays(op, dtype="FLOAT", attributes=None, shape=None, seed=SEED):
    """Inputs of a call as NumPy arrays; element-wise, a quarter of them are special."""
    attributes = attributes or PLAIN[op.name]
    return sample(op, shape or shape_for(op, (3, 41)), dtype, seed, attributes)


def bound(op, attributes=None):
    """The function of a row for these attributes: inputs to a tuple of outputs."""
    attributes = attributes or PLAIN[op.name]

    def run(*inputs):
        named = {p.python_name: x for p, x in zip(op.input_tensors, inputs, strict=True)}
        found = getattr(oj, op.python)(**named, **attributes)
        return found if isinstance(found, tuple) else (found,)

    return run


def same_bits(a, b) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    kind = f"u{a.dtype.itemsize}"
    return a.dtype == b.dtype and a.shape == b.shape and (a.view(kind) == b.view(kind)).all()


def all_same(found, expected) -> bool:
    return all(same_bits(a, b) for a, b in zip(found, expected, strict=True))
