# SPDX-License-Identifier: Apache-2.0
"""The matrix of all operators, through the element-wise kernels in Triton's interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from tests.operators import test_attributes, test_ops
from tests.operators.test_attributes import FOUND, each_dtype, judge
from tests.support import LAYOUTS, SEED, assert_accurate, bits, cases, grid, rows
from tests.triton.interpreting import to_torch, torch

import openaclnn
from openaclnn import triton as kernels
from openaclnn.reference.evaluation import REFERENCES, numpy_dtype, sample
from openaclnn.rows.table import OPS
from openaclnn.torch import cuda


def call(op, inputs, attributes, out=None):
    """What tests.support.call does, computed by the kernel for CUDA tensors."""
    tensors = [to_torch(x) for x in inputs]
    if op.inplace:
        out = inputs[0].copy() if out is None else out
        out[...] = inputs[0]
        tensors[0] = to_torch(out)
    named = {p.python_name: x for p, x in zip(op.input_tensors, tensors, strict=True)}
    named |= dict(attributes)
    values = [named[p.python_name] for p in op.parameters if p.role != "output"]
    keywords = {}
    if not op.inplace and out is not None:
        keywords["out"] = to_torch(out)
    result = cuda.kernel(op)(*values, **keywords)
    if out is not None:
        if any(s < 0 for s in out.strides):
            out[...] = to_numpy(result)
        return out
    return to_numpy(result)


def to_numpy(x):
    import ml_dtypes

    if x.dtype == torch.bfloat16:
        return x.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return x.numpy()


def results(op, inputs, attributes, out=None):
    return (call(op, inputs, attributes, out),)


@pytest.fixture(autouse=True)
def _through_triton(monkeypatch):
    for module in (test_ops, test_attributes):
        monkeypatch.setattr(module, "call", call)
    monkeypatch.setattr(test_ops, "results", results)
    with np.errstate(all="ignore"):  # NumPy computes in the interpreter
        yield


@pytest.mark.parametrize(("op", "dtype", "attributes"), cases(condition=lambda op: op.pointwise))
def test_values(op, dtype, attributes):
    """Every row, dtype and attribute set of the references: ordinary and special values."""
    inputs = sample(op, (5, 3, 67), dtype, SEED, attributes)
    assert_accurate(op, inputs, attributes, call(op, inputs, attributes), SEED)
    inputs = grid(op, dtype, attributes)
    assert_accurate(op, inputs, attributes, call(op, inputs, attributes))


@pytest.mark.parametrize("op", rows())
def test_shapes(op):
    test_ops.test_shapes(op)


@pytest.mark.parametrize("op", rows(lambda op: op.shapes == "broadcast"))
def test_broadcast(op):
    test_ops.test_broadcast(op)


@pytest.mark.parametrize("op", rows(lambda op: op.output == "castable" and not op.inplace))
def test_output_dtypes(op):
    test_ops.test_output_dtypes(op)


@pytest.mark.parametrize(
    "op", rows(lambda op: len(op.input_tensors) > 1 and op.inputs == "promote")
)
def test_promotion(op):
    test_ops.test_promotion(op)


@pytest.mark.parametrize("op", rows())
def test_layouts(op):
    """The same bits as on packed memory, into every layout, and over an input."""
    attributes = REFERENCES[op.kernel].attributes[0]
    for dtype in op.dtypes:
        inputs = sample(op, (5, 3, 67), dtype, SEED, attributes)
        expected = call(op, inputs, attributes)
        for move in LAYOUTS.values():
            moved = [move(x) for x in inputs]
            out = move(np.zeros_like(inputs[0]))
            assert (bits(call(op, moved, attributes, out)) == bits(expected)).all()
            if not op.inplace and all(s >= 0 for s in moved[-1].strides):
                found = call(op, moved, attributes, moved[-1])
                assert (bits(found) == bits(expected)).all()


@pytest.mark.parametrize(("op", "dtype"), each_dtype(lambda op: True))
def test_the_whole_range_of_attributes(op, dtype):
    judge(op, dtype, 40, 200, np.random.default_rng([SEED, 1]))


@pytest.mark.parametrize(("op", "dtype"), each_dtype(test_attributes.approximated))
def test_hard_inputs(op, dtype):
    rng = np.random.default_rng([SEED, 2])
    judge(op, dtype, 4, 15_000, rng, kinds=(test_attributes.near_one,))


@pytest.mark.parametrize("name", sorted({case[0] for case in FOUND}))
def test_what_programs_found(name):
    test_attributes.test_what_programs_found(name)


@pytest.mark.parametrize("dtype", ["FLOAT16", "BFLOAT16"])
@pytest.mark.parametrize("op", rows(lambda op: not op.inplace))
def test_halves_agree_with_the_cpu(op, dtype):
    """All bits of all 65,536 values, with the attributes that people use."""
    attributes = REFERENCES[op.kernel].attributes[0]
    values = np.arange(1 << 16, dtype=np.uint16).view(numpy_dtype(dtype))
    partner = sample(op, (1 << 16,), dtype, SEED, attributes)
    inputs = [values if REFERENCES[op.kernel].domain[i] else x for i, x in enumerate(partner)]
    if len(inputs) == 2:  # the other one is ordinary
        inputs[0 if op.input_tensors[-1].python_name != "dy" else 1] = partner[0]
    found, expected = call(op, inputs, attributes), openaclnn_call(op, inputs, attributes)
    assert (bits(found) != bits(expected)).sum() <= 2


@pytest.mark.parametrize("op", rows(lambda op: not op.inplace))
def test_double_has_the_bits_of_the_cpu(op):
    """One formula in fp64 on both, even where no product has DOUBLE."""
    openaclnn.set_product("any")
    for attributes in REFERENCES[op.kernel].attributes:
        inputs = grid(op, "DOUBLE", attributes)
        found, expected = call(op, inputs, attributes), openaclnn_call(op, inputs, attributes)
        differ = bits(found) != bits(expected)
        assert not differ.any(), (attributes, [x[differ][:4] for x in inputs], found[differ][:4])


def openaclnn_call(op, inputs, attributes):
    named = {p.python_name: x for p, x in zip(op.input_tensors, inputs, strict=True)}
    return getattr(openaclnn, op.python)(**named, **attributes)


def test_every_formula_runs():
    """Each kernel of an element-wise row has its forms."""
    from openaclnn.triton.forms import EXACT, FORMS

    assert {op.kernel for op in OPS if op.pointwise} == set(FORMS) >= set(EXACT)
    assert kernels.prepare is not None
