# SPDX-License-Identifier: Apache-2.0
"""openaclnn.jax: what is refused, and with which sentence."""

from __future__ import annotations

import numpy as np
import pytest
from tests.jax.jax_support import (
    PLAIN,
    arrays,
    bound,
    jax,
    oj,
)
from tests.support import FLOATS, all_rows, shape_for

import openaclnn
from openaclnn.reference.evaluation import REFERENCES
from openaclnn.rows.table import OPS

jnp = jax.numpy


@pytest.mark.parametrize("op", all_rows())
def test_dtypes_that_are_refused(op):
    inputs = [np.ones(x.shape, np.int32) for x in arrays(op)]
    sentence = (
        rf"^{op.python}: {op.input_tensors[0].python_name} must have dtype .*, but got int32\b"
    )
    for function in (bound(op), jax.jit(bound(op))):
        with pytest.raises(ValueError, match=sentence):
            function(*inputs)


@pytest.mark.parametrize("op", all_rows(lambda op: len(op.input_tensors) > 1))
def test_shapes_that_are_refused(op):
    """When the call is traced: nothing runs."""
    for i in range(len(op.input_tensors)):
        shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays(op)]
        shapes[i] = jax.ShapeDtypeStruct((7, 3, 2), np.float32)
        with pytest.raises(ValueError, match=rf"^{op.python}: \w+ must .*, but got "):
            jax.eval_shape(bound(op), *shapes)


@pytest.mark.parametrize("op", all_rows())
def test_attributes_must_be_static(op):
    inputs = arrays(op)
    for p in op.attributes:
        name = f"{op.python}: {p.python_name}"

        def traced(value, p=p):
            return bound(op, {**PLAIN[op.name], p.python_name: value})(*inputs)

        with pytest.raises(TypeError, match=f"^{name} must be known when the call is traced"):
            jax.jit(traced)(1)
        with pytest.raises(TypeError, match=f"^{name} must be"):
            traced([1, 2, 3] if p.kind != "bool" else np.ones(3))


def test_arguments_that_are_refused():
    with pytest.raises(TypeError, match=r"^elu\(x, alpha=1.0, .*\): missing .* 'x'"):
        oj.elu()
    with pytest.raises(TypeError, match=r"^elu: x must be an array, but got dict"):
        oj.elu({})
    for wrong in ("False", 1, np.ones(1, bool)):
        sentence = r"^leaky_relu_backward: self_is_result must be True or False, but got "
        with pytest.raises(TypeError, match=sentence):
            oj.leaky_relu_backward(jnp.ones(3), jnp.ones(3), 0.1, wrong)
    assert oj.leaky_relu_backward(jnp.ones(3), jnp.ones(3), 0.1, np.True_).shape == (3,)
    for wrong in ("0.5", b"0.5", bytearray(b"0.5"), np.str_("0.5")):
        with pytest.raises(TypeError, match=r"^leaky_relu: negative_slope must be a number, but g"):
            oj.leaky_relu(jnp.ones(3), wrong)
        with pytest.raises(TypeError, match=r"^logit: eps must be a number, but got "):
            oj.logit(jnp.ones(3), wrong)
    with pytest.raises(ValueError, match=r"^logit: eps must be a number that float64 holds$"):
        oj.logit(jnp.ones(3), 10**400)


@pytest.mark.parametrize(
    ("groups", "kind", "what"),
    [
        (4, ValueError, "divide the 6 channels of x, but got 4"),
        (0, ValueError, "be greater than 0, but got 0"),
        (-2, ValueError, "be greater than 0, but got -2"),
        (1 << 62, ValueError, f"divide the 6 channels of x, but got {1 << 62}"),
        (1 << 70, TypeError, f"be an integer of at most 64 bits, but got {1 << 70}"),
    ],
)
def test_numbers_of_groups_that_are_refused(groups, kind, what):
    def call(x):
        return oj.group_norm_swish(x, jnp.ones(6), jnp.ones(6), groups)

    sentence = rf"^group_norm_swish: num_groups must {what}\b"
    with pytest.raises(kind, match=sentence):
        call(jnp.ones((2, 6)))
    (n,) = jax.export.symbolic_shape("n")
    struct = jax.ShapeDtypeStruct((n, 6), np.float32)
    with pytest.raises(kind, match=sentence):
        jax.eval_shape(call, struct)


@pytest.mark.parametrize("op", all_rows(lambda op: op.shapes != "broadcast"))
def test_symbolic_sizes_are_accepted_wherever_they_may_fit(op):
    """The library checks them when it computes."""
    whole = [x.shape for x in arrays(op, shape=shape_for(op, (3, 41)))]
    (n,) = jax.export.symbolic_shape("n")
    for i, shape in enumerate(whole):
        for d in range(len(shape)):
            mixed = [list(s) for s in whole]
            mixed[i][d] = n
            jax.eval_shape(bound(op), *(jax.ShapeDtypeStruct(s, np.float32) for s in mixed))


def test_symbolic_sizes_of_a_wrong_rank():
    (n,) = jax.export.symbolic_shape("n")
    structs = [jax.ShapeDtypeStruct(s, np.float32) for s in ((n,), (6,), (6,))]
    with pytest.raises(ValueError, match=r"^group_norm_swish: x must have 2 to 8 dimensions, but"):
        jax.eval_shape(lambda *x: oj.group_norm_swish(*x, 3), *structs)


def test_shapes_are_refused_before_numbers_of_groups():
    with pytest.raises(ValueError, match=r"^group_norm_swish: x must have 2 to 8 dimensions, but"):
        oj.group_norm_swish(jnp.ones(6), jnp.ones(6), jnp.ones(6), -2)


def test_what_is_refused_when_the_program_runs():
    """The product is another one than it was when the program was traced."""
    program = jax.jit(oj.elu)
    x = jnp.ones(3, jnp.bfloat16)
    program(x).block_until_ready()
    openaclnn.set_product("910")
    with pytest.raises(Exception, match=r"elu: x must have dtype .*, but got bfloat16"):
        program(x).block_until_ready()


def test_every_dtype_of_the_rows_has_a_name():
    assert {dtype for op in OPS for dtype in op.computed} == set(FLOATS)
    assert all(REFERENCES[op.kernel].attributes for op in OPS)
