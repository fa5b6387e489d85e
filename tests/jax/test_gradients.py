# SPDX-License-Identifier: Apache-2.0
"""openaclnn.jax: the gradients of every row, those that are refused among them."""

from __future__ import annotations

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
from tests.support import SEED, all_rows, assert_accurate, gradient_call, rows

from openaclnn.rows.gradients import differentiable, gradient_dtypes, gradient_row, sources

jnp = jax.numpy
WITH = all_rows(lambda op: op.gradient is not None)


def has_gradient(op, dtype, attributes) -> bool:
    if op.gradient is None or dtype not in gradient_dtypes(op):
        return False
    named = {p.name: attributes[p.python_name] for p in op.attributes}
    flag = op.gradient.only_if is None or named[op.gradient.only_if]
    return flag and not any(named[name] < 0 for name in op.gradient.nonnegative)


def gradient_cases():
    return [case for case in jax_cases() if has_gradient(*case.values)]


@pytest.mark.parametrize(("op", "dtype", "attributes"), gradient_cases())
def test_gradients(op, dtype, attributes):
    """Against the float64 reference, within the accuracy that the gradient row promises; with the
    first attributes, uncompiled too."""
    inputs = arrays(op, dtype, attributes)
    having = {p.name for p in differentiable(op)}

    def gradients(incoming, *inputs):
        def first(*wanted):
            given = iter(wanted)
            return bound(op, attributes)(
                *(
                    next(given) if p.name in having else x
                    for p, x in zip(op.input_tensors, inputs, strict=True)
                )
            )

        wanted = [x for p, x in zip(op.input_tensors, inputs, strict=True) if p.name in having]

        def divided(*wanted):  # the others have no gradient, not even of zeros that XLA has made
            y, *others = first(*wanted)
            return y, others

        y, pullback, others = jax.vjp(divided, *wanted, has_aux=True)
        return (y, *others), pullback(incoming)

    with wide(dtype):
        shape = jax.eval_shape(bound(op, attributes), *inputs)[0]
        incoming = np.random.default_rng(SEED).standard_normal(shape.shape).astype(shape.dtype)
        outputs, found = jax.jit(gradients)(incoming, *inputs)
        if attributes == PLAIN[op.name]:
            alike = gradients(incoming, *inputs)
            assert all_same([*alike[0], *alike[1]], [*outputs, *found])
        outputs, found = [np.asarray(y) for y in outputs], [np.asarray(g) for g in found]
    row = gradient_row(op)
    taken, named = gradient_call(op, inputs, outputs, incoming, attributes)
    by_name = dict(zip([p.name for p in differentiable(op)], found, strict=True))
    order = [s.name for s in sources(op) if s.kind == "made"]
    assert_accurate(row, taken, named, [by_name[name] for name in order], SEED)


@pytest.mark.parametrize("op", rows(lambda op: op.shapes == "broadcast" and op.gradient))
def test_gradients_of_what_was_broadcast(op):
    one, other = arrays(op, shape=(3, 41))
    wide_one = np.broadcast_to(one[:, None], (3, 3, 41))
    (_, pullback), (_, whole) = (jax.vjp(bound(op), x, other) for x in (one[:, None], wide_one))
    incoming = (jnp.ones((3, 3, 41)),)
    (found, zero), (expected, _) = pullback(incoming), whole(incoming)
    np.testing.assert_allclose(found, expected.sum(1, keepdims=True), rtol=1e-6)
    assert zero.shape == other.shape
    assert not zero.any()


@pytest.mark.parametrize("op", WITH)
def test_second_derivatives_are_right_or_refused(op):
    """By inputs of a row that no gradient row covers and that are not constant."""
    having = {p.name for p in differentiable(op)} | set(op.gradient.zero)
    inputs = arrays(op)
    for i, p in enumerate(op.input_tensors):
        if p.name in having:
            continue
        with pytest.raises(
            NotImplementedError, match=f"^{op.python}: there is no gradient by {p.python_name}"
        ):
            jax.grad(lambda x, i=i: bound(op)(*inputs[:i], x, *inputs[i + 1 :])[0].sum())(inputs[i])


@pytest.mark.parametrize("op", all_rows(lambda op: op.gradient is None))
def test_rows_without_a_gradient(op):
    with pytest.raises(NotImplementedError, match=f"^{op.python}: there is no gradient by"):
        jax.grad(lambda x, *rest: bound(op)(x, *rest)[0].sum())(*arrays(op))


def test_second_derivatives():
    x = jnp.array([-2.0, 3.0])
    second = jax.grad(lambda x: jax.grad(lambda x: (oj.leaky_relu(x, 0.5) ** 2).sum())(x).sum())
    np.testing.assert_array_equal(second(x), [0.5, 2.0])
    with pytest.raises(NotImplementedError, match=r"^elu_backward: there is no gradient by self"):
        jax.grad(lambda x: jax.grad(lambda x: oj.elu(x).sum())(x).sum())(x)


@pytest.mark.parametrize("op", all_rows(lambda op: op.gradient and op.gradient.nonnegative))
def test_attributes_without_a_gradient(op):
    (x,) = arrays(op)
    for p in (p for p in op.attributes if p.name in op.gradient.nonnegative):
        attributes = {**PLAIN[op.name], p.python_name: -0.5}
        bound(op, attributes)(x)
        with pytest.raises(ValueError, match=f"^{op.python}: {p.python_name} must not be negative"):
            jax.vjp(bound(op, attributes), x)


@pytest.mark.parametrize("op", all_rows(lambda op: op.gradient and op.gradient.only_if))
def test_where_a_flag_takes_the_gradient_away(op):
    p = next(p for p in op.attributes if p.name == op.gradient.only_if)
    attributes = {**PLAIN[op.name], p.python_name: False}
    bound(op, attributes)(*arrays(op))
    with pytest.raises(ValueError, match=f"^{op.python}: {p.python_name} must be True where"):
        jax.vjp(bound(op, attributes), *arrays(op))


@pytest.mark.parametrize("op", WITH)
def test_dtypes_without_a_gradient(op):
    for dtype in set(op.dtypes) - set(gradient_dtypes(op)):
        with wide(dtype):
            inputs = arrays(op, dtype)
            bound(op)(*inputs)
            with pytest.raises(ValueError, match=r"must have dtype .* where a gradient is rec"):
                jax.vjp(bound(op), *inputs)


@pytest.mark.parametrize("op", all_rows())
def test_forward_mode_is_refused(op):
    inputs = arrays(op)
    with pytest.raises((TypeError, NotImplementedError), match=r"forward-mode|is no gradient by"):
        jax.jvp(bound(op), inputs, inputs)


NORM = dict(num_groups=3, eps=1e-5)


def norm(x, gamma, beta):
    return oj.group_norm_swish(x, gamma, beta, **NORM)


@pytest.mark.parametrize("around", [lambda f: f, jax.jit, jax.checkpoint])
def test_only_the_first_output_has_a_gradient(around):
    """The others may be used as constants, also where nobody uses them."""
    x, gamma, beta = jnp.arange(48.0).reshape(2, 6, 4) % 5, jnp.ones(6), jnp.zeros(6)
    expected = jax.grad(lambda x: norm(x, gamma, beta)[0].sum())(x)
    with pytest.raises(NotImplementedError, match=r"^group_norm_swish: there is no gradient of me"):
        jax.grad(around(lambda x: sum(y.sum() for y in norm(x, gamma, beta))))(x)

    def constant(x):
        y, mean, _ = norm(x, gamma, beta)
        return y.sum() + jax.lax.stop_gradient(mean).sum()

    assert same_bits(jax.grad(around(constant))(x), expected)

    def repeated(x):
        return jax.lax.scan(lambda x, _: (norm(x, gamma, beta)[0], None), x, length=2)[0].sum()

    twice = jax.grad(lambda x: norm(norm(x, gamma, beta)[0], gamma, beta)[0].sum())(x)
    assert same_bits(jax.grad(around(repeated))(x), twice)
