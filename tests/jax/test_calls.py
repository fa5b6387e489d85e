# SPDX-License-Identifier: Apache-2.0
"""openaclnn.jax: values, batches, compiled programs and sentences of every row."""

from __future__ import annotations

import inspect
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.jax.jax_support import (
    PLAIN,
    all_same,
    arrays,
    bound,
    jax,
    jax_cases,
    oj,
    same_bits,
    wide,
)
from tests.support import SEED, all_rows, assert_accurate, results, rows, shape_for

import openaclnn
from openaclnn.rows.gradients import differentiable
from openaclnn.rows.table import OPS

jnp = jax.numpy


# ---- values ----


@pytest.mark.parametrize(("op", "dtype", "attributes"), jax_cases())
def test_values(op, dtype, attributes):
    """Within what the kernel promises, and the bits of the functions for NumPy."""
    inputs = arrays(op, dtype, attributes)
    with wide(dtype):
        found = [np.asarray(y) for y in bound(op, attributes)(*inputs)]
    assert_accurate(op, inputs, attributes, found, SEED)
    assert all_same(found, results(op, inputs, attributes))


@pytest.mark.parametrize("op", all_rows(lambda op: op.extra_dtypes))
def test_any_product(op):
    inputs = arrays(op, "DOUBLE")
    with wide("DOUBLE"):
        with pytest.raises(
            ValueError, match=rf"^{op.python}: \w+ must have dtype .* got float64\b"
        ):
            bound(op)(*inputs)
        openaclnn.set_product(None)
        found = [np.asarray(y) for y in bound(op)(*inputs)]
        assert_accurate(op, inputs, PLAIN[op.name], found, SEED)
        if op.gradient and len(op.input_tensors) == 1:
            jax.vjp(bound(op), *inputs)


@pytest.mark.parametrize("op", rows())
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1), (2, 1, 3, 1, 2, 1, 2, 1)])
def test_shapes(op, shape):
    (found,) = bound(op)(*(jnp.full(shape, 0.25) for _ in op.input_tensors))
    assert found.shape == shape


@pytest.mark.parametrize("op", rows(lambda op: op.shapes == "broadcast"))
def test_broadcast(op):
    one, other = arrays(op, shape=(3, 41))
    (found,) = bound(op)(one[:, None], other)
    (expected,) = bound(op)(*np.broadcast_arrays(one[:, None], other))
    assert same_bits(found, expected)


@pytest.mark.parametrize(
    "op", rows(lambda op: op.inputs == "promote" and len(op.input_tensors) > 1)
)
@pytest.mark.parametrize("dtypes", [("FLOAT16", "BFLOAT16"), ("BFLOAT16", "FLOAT")])
def test_mixed_dtypes(op, dtypes):
    inputs = [arrays(op, dtype)[i] for i, dtype in enumerate(dtypes)]
    (found,) = bound(op)(*inputs)
    (expected,) = results(op, inputs, PLAIN[op.name])
    assert same_bits(found, expected)
    _, pullback = jax.vjp(bound(op), *inputs)
    gradients = pullback((jnp.ones_like(found),))
    assert [g.dtype for g in gradients] == [x.dtype for x in inputs]


@pytest.mark.parametrize("op", all_rows(lambda op: any(p.condition for p in op.outputs)))
def test_optional_outputs(op):
    flags = {p.condition for p in op.outputs if p.condition}
    inputs, whole = arrays(op), bound(op)(*arrays(op))
    for flag in (p for p in op.attributes if p.name in flags):
        found = bound(op, {**PLAIN[op.name], flag.python_name: False})(*inputs)
        for p, y, expected in zip(op.outputs, found, whole, strict=True):
            assert y is None if p.condition == flag.name else same_bits(y, expected)


def test_attributes_that_are_equal_and_not_the_same():
    """0.0 == -0.0, and True == 1."""
    x = jnp.array([-2.0])
    assert [bool(jnp.signbit(oj.leaky_relu(x, s))[0]) for s in (0.0, -0.0, 0.0)] == [1, 0, 1]


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float16, jnp.bfloat16])
def test_functions_for_numpy_return_jax_arrays(dtype):
    found = openaclnn.leaky_relu(jnp.array([-2.0, 3.0], dtype), 0.5)
    assert isinstance(found, jax.Array)
    assert same_bits(found, jnp.array([-1.0, 3.0], dtype))


def test_none_is_the_default():
    x = jnp.array([0.25, -1.0])
    assert same_bits(oj.logit(x, eps=None), oj.logit(x))
    assert same_bits(oj.logit(x, None), oj.logit(x, -1.0))


@pytest.mark.parametrize("op", all_rows())
def test_signatures(op):
    function = getattr(oj, op.python)
    names = [p.python_name for p in op.parameters if p.role != "output"]
    assert list(inspect.signature(function).parameters) == names
    assert op.doc in function.__doc__
    assert op.python in oj.__all__


# ---- compiled programs ----


@pytest.mark.parametrize("op", all_rows())
def test_jit(op):
    inputs = arrays(op)
    expected = bound(op)(*inputs)
    assert all_same(jax.jit(bound(op))(*inputs), expected)
    doubled = jax.jit(lambda *x: bound(op)(*(y * 2 for y in x)))  # beside operators of XLA
    twice = [jnp.asarray(x) * 2 for x in inputs]
    assert all_same(doubled(*inputs), bound(op)(*twice))


@pytest.mark.parametrize("op", all_rows(lambda op: not op.inplace))
def test_nothing_is_copied(op):
    compiled = jax.jit(bound(op)).lower(*arrays(op)).compile().as_text()
    assert f'custom_call_target="openaclnn.{op.python}"' in compiled
    assert not re.search(r"= \S+ (copy|transpose|bitcast-convert|convert)\(", compiled), compiled


@pytest.mark.parametrize("op", rows(lambda op: op.inplace))
def test_in_place(op):
    """A donated array is written over; another one is left as it is."""
    (x,) = arrays(op)
    (expected,) = bound(op)(x)
    kept, given = jnp.array(x), jnp.array(x)
    address = given.unsafe_buffer_pointer()
    (found,) = jax.jit(bound(op), donate_argnums=0)(given)
    assert given.is_deleted()
    assert found.unsafe_buffer_pointer() == address
    assert same_bits(found, expected)
    (found,) = jax.jit(bound(op))(kept)
    assert same_bits(kept, x)
    assert same_bits(found, expected)


def test_many_calls_at_once():
    """Independent calls of one program, which XLA's threads make, from several threads of ours."""
    op = next(op for op in OPS if op.pointwise)
    inputs = [arrays(op, shape=(1 << 17,), seed=SEED + i)[0] for i in range(8)]
    expected = [bound(op)(x)[0] for x in inputs]
    program = jax.jit(lambda x: [bound(op)(y)[0] for y in x])
    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(program, [inputs] * 24):
            assert all_same(found, expected)


@pytest.mark.parametrize("op", all_rows())
def test_symbolic_sizes(op):
    """One exported program for any number of samples, and nothing is computed to trace it."""
    shape = shape_for(op, (3, 41))
    inputs = arrays(op, shape=shape)
    (n,) = jax.export.symbolic_shape("n")
    structs = [
        jax.ShapeDtypeStruct((n, *x.shape[1:]) if len(x.shape) > 1 else x.shape, x.dtype)
        for x in inputs
    ]
    allowed = [jax.export.DisabledSafetyCheck.custom_call(f"openaclnn.{op.python}")]
    exported = jax.export.export(jax.jit(bound(op)), disabled_checks=allowed)(*structs)
    assert all_same(exported.call(*inputs), bound(op)(*inputs))


# ---- batches ----


@pytest.mark.parametrize("op", all_rows())
@pytest.mark.parametrize("axis", [0, -1])
def test_vmap(op, axis):
    """The same bits as one call for each element, whichever inputs are batched."""
    several = [arrays(op, seed=SEED + i) for i in range(3)]
    count = len(op.input_tensors)
    for batched in {*range(count), None}:  # each alone, then all
        axes = [axis if batched in (i, None) else None for i in range(count)]
        inputs = [
            several[0][i] if a is None else np.stack([one[i] for one in several], a)
            for i, a in enumerate(axes)
        ]
        found = jax.vmap(bound(op), in_axes=axes)(*inputs)
        for k, one in enumerate(several):
            taken = [several[0][i] if a is None else one[i] for i, a in enumerate(axes)]
            assert all_same([y[k] for y in found], bound(op)(*taken))


@pytest.mark.parametrize("op", rows(lambda op: op.shapes == "broadcast"))
def test_vmap_of_what_broadcasts(op):
    """Batches meet batches, not the dimensions of a tensor that has more of them."""
    one, other = np.stack([arrays(op, shape=(3, 41), seed=SEED + i) for i in range(3)], 1)
    found = jax.vmap(lambda x, y: bound(op)(x[:, None], y[0])[0])(one, other)
    for k in range(3):
        assert same_bits(found[k], bound(op)(one[k][:, None], other[k][0])[0])


def test_more_dimensions_by_batches_than_the_library_takes():
    x = jnp.linspace(-2, 2, 24).reshape((2, 3, 1, 2, 1, 2, 1, 1))
    function = jax.vmap(jax.vmap(oj.elu))
    assert same_bits(function(x[None, None]), oj.elu(x)[None, None])
    y = jnp.ones((*x.shape[:-1], 2))
    with pytest.raises(Exception, match=r"must have at most 8 dimensions, batches among them"):
        jax.vmap(oj.leaky_relu_backward)(y[None], x[None]).block_until_ready()


@pytest.mark.parametrize("op", rows(lambda op: op.gradient))
def test_vmap_of_gradients(op):
    several = [arrays(op, seed=SEED + i) for i in range(3)]
    first = jax.grad(lambda x, *rest: bound(op)(x, *rest)[0].sum())
    if op.input_tensors[0].name not in {p.name for p in differentiable(op)}:
        pytest.skip("its first input has no gradient")
    found = jax.vmap(first)(*(np.stack(x) for x in zip(*several, strict=True)))
    assert all_same(found, [first(*one) for one in several])
