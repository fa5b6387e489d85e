# SPDX-License-Identifier: Apache-2.0
"""torch.func.vmap over every row, and gradients of each sample."""

from __future__ import annotations

import pytest
from tests.support import all_rows, rows, shape_for
from tests.torch.torch_support import arguments, call, operator, same_bits, tensors, torch

from openaclnn.rows.gradients import differentiable

pytestmark = pytest.mark.filterwarnings(
    "ignore:.torch.jit.script. is deprecated",
    "ignore:.torch.jit.trace. is deprecated",
    "ignore:.torch.jit.trace_method. is deprecated",
    "ignore:.isinstance.treespec, LeafSpec.. is deprecated",
)


@pytest.mark.parametrize("op", all_rows())
def test_vmap(op):
    shape = shape_for(op, (3, 5))
    batches = [tensors(op, "FLOAT", shape=shape, seed=seed) for seed in (1, 2, 3)]
    expected = [call(op, inputs) for inputs in batches]
    for dim in (0, -1):
        stacked = [torch.stack(x, dim) for x in zip(*batches, strict=True)]
        function = operator(op)

        def one(*inputs, function=function):
            return function(*arguments(op, inputs))

        taken = [x.clone() for x in stacked]
        found = torch.vmap(one, in_dims=dim)(*taken)
        found = found if isinstance(found, tuple) else (found,)
        for column, y in zip(zip(*expected, strict=True), found, strict=True):
            assert same_bits(torch.stack(column), y)
        if op.inplace:
            assert same_bits(taken[0].movedim(dim, 0), found[0])


@pytest.mark.parametrize("op", all_rows())
def test_vmap_over_no_samples(op):
    inputs = tensors(op, "FLOAT", shape=shape_for(op, (3, 5)))
    expected = call(op, inputs)
    many = [torch.stack([x])[:0] for x in inputs]
    for p, x in zip(op.input_tensors, many, strict=True):
        x.requires_grad_(p in differentiable(op) and not op.inplace)
    found = torch.vmap(lambda *taken: operator(op)(*arguments(op, taken)))(*many)
    found = found if isinstance(found, tuple) else (found,)
    assert [y.shape for y in found] == [(0, *y.shape) for y in expected]
    if op.gradient and not op.inplace:
        found[0].sum().backward()
        assert all(x.grad.shape == x.shape for x in many if x.requires_grad)


@pytest.mark.parametrize("op", rows())
def test_vmap_over_samples_of_the_highest_rank(op):
    """The library takes 8 dimensions, and the batch is one more."""
    batches = [tensors(op, "FLOAT", shape=(2, 1, 3, 1, 2, 1, 1, 2), seed=s) for s in (1, 2)]
    expected = torch.stack([call(op, inputs)[0] for inputs in batches])
    for dim in (0, -1):
        stacked = [torch.stack(x, dim) for x in zip(*batches, strict=True)]
        found = torch.vmap(lambda *taken: operator(op)(*arguments(op, taken)), dim)(*stacked)
        assert same_bits(found, expected)
        assert not op.inplace or same_bits(stacked[0].movedim(dim, 0), expected)
    nine = [x.reshape(1, *x.shape) for x in batches[0]]
    with pytest.raises(ValueError, match="must have at most 8 dimensions"):
        torch.vmap(lambda *taken: operator(op)(*arguments(op, taken)))(*(x[None] for x in nine))
    if op.shapes == "same" and len(op.input_tensors) == 2:
        one, other = (x[None] for x in batches[0])
        with pytest.raises(ValueError, match="must have the shape"):
            torch.vmap(lambda *taken: operator(op)(*arguments(op, taken)))(one, other[..., :1])


@pytest.mark.parametrize("op", rows(lambda op: len(op.input_tensors) == 2))
def test_vmap_over_one_of_two(op):
    one, other = tensors(op, "FLOAT", shape=(3, 5))
    many = torch.stack([one, one * 2])

    def function(a, b):
        return operator(op)(*arguments(op, [a, b]))

    found = torch.vmap(function, in_dims=(0, None))(many, other)
    assert same_bits(found, torch.stack([function(a, other) for a in many]))
    found = torch.vmap(function, in_dims=(None, 0))(other, many)
    assert same_bits(found, torch.stack([function(other, b) for b in many]))


@pytest.mark.parametrize("op", rows(lambda op: op.shapes == "broadcast"))
def test_vmap_over_inputs_of_different_rank(op):
    one, other = torch.randn(4, 3, 1), torch.randn(4, 2, 1, 5)

    def function(a, b):
        return operator(op)(*arguments(op, [a, b]))

    expected = torch.stack([function(a, b) for a, b in zip(one, other, strict=True)])
    assert same_bits(torch.vmap(function)(one, other), expected)


@pytest.mark.parametrize("op", all_rows(lambda op: op.gradient and not op.inplace))
def test_gradients_of_each_sample(op):
    """Also of what the samples share, such as gamma and beta."""
    shape = shape_for(op, (3, 5))
    inputs = tensors(op, "FLOAT", shape=shape)
    inputs = [x.nan_to_num(0.5, 0.5, 0.5) for x in inputs]
    many = torch.stack([inputs[0], inputs[0] * 0.5])
    wanted = tuple(i for i, p in enumerate(op.input_tensors) if p in differentiable(op))

    def loss(*taken):
        found = operator(op)(*arguments(op, taken))
        return (found[0] if isinstance(found, tuple) else found).square().sum()

    gradient = torch.func.grad(loss, wanted)
    dims = (0, *[None] * (len(inputs) - 1))
    found = torch.vmap(gradient, in_dims=dims)(many, *inputs[1:])
    expected = [gradient(x, *inputs[1:]) for x in many]
    for column, g in zip(zip(*expected, strict=True), found, strict=True):
        assert same_bits(torch.stack(column), g)
