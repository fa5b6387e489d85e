# SPDX-License-Identifier: Apache-2.0
"""Gradients that PyTorch computes through the rows: exact, the same in all layouts."""

from __future__ import annotations

import pytest
from tests.support import SEED, all_rows, assert_accurate, gradient_call, rows, shape_for
from tests.torch.torch_support import (
    LAYOUTS,
    arguments,
    gradient_cases,
    name_of,
    operator,
    same_bits,
    tensors,
    to_numpy,
    torch,
)

import openaclnn
from openaclnn.reference.evaluation import REFERENCES
from openaclnn.rows.gradients import (
    differentiable,
    extra_gradient_dtypes,
    gradient_dtypes,
    gradient_row,
    sources,
)
from openaclnn.rows.schema import Op

# torch.func.jvp makes it, the first time.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")

WITH = all_rows(lambda op: op.gradient is not None)
PLAIN = all_rows(lambda op: op.gradient is not None and not op.inplace)


def record(op: Op, inputs, attributes=None, only=None):
    """Leaves, what the call takes (in place: a copy) and its outputs."""
    having = {p.name for p in differentiable(op)} if only is None else only
    leaves = [
        x.clone(memory_format=torch.preserve_format).requires_grad_(p.name in having)
        for p, x in zip(op.input_tensors, inputs, strict=True)
    ]
    taken = [x.clone(memory_format=torch.preserve_format) for x in leaves] if op.inplace else leaves
    found = operator(op)(*arguments(op, taken, attributes))
    return leaves, found if isinstance(found, tuple) else (found,)


def incoming_for(y, seed=SEED):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(y.shape, generator=generator, dtype=torch.float64).to(y.dtype)


@pytest.mark.parametrize(("op", "dtype", "attributes"), gradient_cases(), ids=name_of)
def test_gradients(op, dtype, attributes):
    """Against the float64 reference, within the accuracy that the gradient row promises."""
    inputs = tensors(op, dtype, attributes)
    leaves, outputs = record(op, inputs, attributes)
    incoming = incoming_for(outputs[0])
    outputs[0].backward(incoming)
    row = gradient_row(op)
    taken, named = gradient_call(op, inputs, outputs, incoming, attributes)
    order = [s.name for s in sources(op) if s.kind == "made"]
    found = {p.name: x.grad for p, x in zip(op.input_tensors, leaves, strict=True)}
    arrays = [to_numpy(found[name]) for name in order]
    assert_accurate(row, [to_numpy(x) for x in taken], named, arrays, SEED)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", WITH)
def test_gradients_do_not_depend_on_the_layout(op, layout):
    shape = shape_for(op, (2, 3, 4, 5))
    inputs = tensors(op, "FLOAT", shape=shape)
    grads = []
    for place in (torch.clone, LAYOUTS[layout]):
        leaves, outputs = record(op, [place(x) for x in inputs])
        outputs[0].backward(place(incoming_for(outputs[0])))
        grads.append([x.grad for x in leaves])
    assert all(map(same_bits, *grads))
    for x, g in zip(leaves, grads[1], strict=True):
        if layout in ("transposed", "channels_last") and g is not None:
            assert g.stride() == x.stride()


@pytest.mark.parametrize("op", WITH)
def test_an_expanded_gradient(op):
    """What sum().backward() sends."""
    inputs = tensors(op, "FLOAT")
    leaves, outputs = record(op, inputs)
    outputs[0].sum().backward()
    others, outputs = record(op, inputs)
    outputs[0].backward(torch.ones_like(outputs[0]))
    assert all(same_bits(a.grad, b.grad) for a, b in zip(leaves, others, strict=True))


@pytest.mark.parametrize("op", all_rows(lambda op: len(differentiable(op)) > 1))
def test_each_gradient_alone(op):
    inputs = tensors(op, "FLOAT")
    leaves, outputs = record(op, inputs)
    outputs[0].backward(incoming_for(outputs[0]))
    for i, p in enumerate(op.input_tensors):
        others, outputs = record(op, inputs, only={p.name})
        outputs[0].backward(incoming_for(outputs[0]))
        assert [x.grad is None for x in others] == [k != i for k in range(len(others))]
        assert same_bits(others[i].grad, leaves[i].grad)


@pytest.mark.parametrize("op", all_rows(lambda op: len(op.outputs) > 1 and op.gradient))
def test_statistics_are_not_differentiable(op):
    _, outputs = record(op, tensors(op, "FLOAT"))
    assert [y.requires_grad for y in outputs] == [True, *[False] * (len(outputs) - 1)]


@pytest.mark.parametrize("op", WITH)
def test_gradients_are_deterministic(op):
    inputs = tensors(op, "FLOAT", shape=(4, 12, 48, 48))
    found = []
    for threads in (1, 2, 2):
        openaclnn.set_num_threads(threads)
        leaves, outputs = record(op, inputs)
        outputs[0].backward(incoming_for(outputs[0]))
        found.append([x.grad for x in leaves])
    assert all(map(same_bits, found[0], found[1]))
    assert all(map(same_bits, found[0], found[2]))


# ---- what torch checks itself ----


def doubles(op):
    generator = torch.Generator().manual_seed(SEED)
    return [
        (torch.randn(3, 4, generator=generator, dtype=torch.float64) * 3).requires_grad_()
        for _ in op.input_tensors
    ]


@pytest.mark.parametrize("op", rows(lambda op: op.gradient and "DOUBLE" in gradient_dtypes(op)))
def test_gradcheck(op):
    """First derivatives backwards and forwards, batched, and second derivatives."""

    def function(*inputs):
        taken = [x * 1 for x in inputs] if op.inplace else inputs
        return operator(op)(*arguments(op, taken))

    assert torch.autograd.gradcheck(
        function, doubles(op), check_forward_ad=True, check_batched_grad=True
    )
    assert torch.autograd.gradgradcheck(function, doubles(op), check_fwd_over_rev=True)


@pytest.mark.parametrize(
    "op", [row for row in PLAIN if "DOUBLE" in extra_gradient_dtypes(row.values[0])]
)
def test_gradcheck_of_what_no_product_has(op):
    """Float64 on product `any`; on a product the refusal says how to get there."""
    attributes = REFERENCES[op.kernel].attributes[0]
    generator = torch.Generator().manual_seed(SEED)
    shapes = [x.shape for x in tensors(op, "FLOAT", attributes, (2, 12, 2, 3))]
    leaves = [  # where logit is defined
        0.2 + 0.6 * torch.rand(shape, generator=generator, dtype=torch.float64) for shape in shapes
    ]
    for p, x in zip(op.input_tensors, leaves, strict=True):
        x.requires_grad_(p in differentiable(op))
    with pytest.raises(ValueError, match=r"must have dtype"):
        operator(op)(*arguments(op, leaves, attributes))
    openaclnn.set_product(None)

    def function(*taken):
        found = operator(op)(*arguments(op, taken, attributes))
        return found[0] if isinstance(found, tuple) else found

    assert torch.autograd.gradcheck(function, leaves)


POINTWISE = rows(lambda op: op.gradient and len(differentiable(op)) == len(op.input_tensors))


@pytest.mark.parametrize("op", POINTWISE)
def test_tangents_are_the_gradients(op):
    """The Jacobian is diagonal: forwards and backwards give the same numbers."""
    (x,) = tensors(op, "FLOAT")
    leaves, outputs = record(op, [x])
    tangent = incoming_for(outputs[0])
    outputs[0].backward(tangent)

    def function(t):
        return operator(op)(*arguments(op, [t * 1 if op.inplace else t]))

    value, pushed = torch.func.jvp(function, (x,), (tangent,))
    assert same_bits(value, outputs[0])
    assert same_bits(pushed, leaves[0].grad)


SELU = {"alpha": 1.6732632423543772, "scale": 1.0507009873554805, "input_scale": 1.0}
ELUS = [SELU, {"alpha": 0.3, "scale": 2.0, "input_scale": 0.7}]


@pytest.mark.parametrize("attributes", ELUS)
@pytest.mark.parametrize("inplace", [False, True])
def test_second_derivatives_of_elu(attributes, inplace):
    """No row computes them: backwards twice, and forwards over backwards, beside float64."""
    x = torch.randn(200, generator=torch.Generator().manual_seed(SEED)) * 2
    function = torch.ops.openaclnn.elu_ if inplace else torch.ops.openaclnn.elu

    def penalty(x, elu):
        taken = x * 1
        (g,) = torch.autograd.grad(elu(taken).square().sum(), x, create_graph=True)
        return (g * g).sum()

    def ours(t):
        return function(t, *attributes.values())

    def exact(t):
        a, s, i = attributes.values()
        return s * torch.where(t > 0, t, a * torch.expm1(torch.clamp(t, max=0) * i))

    mine, true = x.clone().requires_grad_(), x.double().requires_grad_()
    found = torch.autograd.grad(penalty(mine, ours), mine)[0]
    expected = torch.autograd.grad(penalty(true, exact), true)[0]
    torch.testing.assert_close(found.double(), expected, rtol=2e-5, atol=2e-5)

    def loss(f):
        return lambda t: f(t * 1).square().sum()

    found = torch.func.hessian(loss(ours))(x[:20])
    expected = torch.func.hessian(loss(exact))(x[:20].double())
    torch.testing.assert_close(found.double(), expected, rtol=2e-5, atol=2e-5)


def test_a_graph_is_walked_once():
    x = torch.randn(3, requires_grad=True)
    y = torch.ops.openaclnn.elu(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()
