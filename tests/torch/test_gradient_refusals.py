# SPDX-License-Identifier: Apache-2.0
"""Gradients that PyTorch does not get: an error, never a wrong number."""

from __future__ import annotations

import pytest
from tests.support import all_rows
from tests.torch.test_gradients import PLAIN, WITH, record
from tests.torch.torch_support import (
    arguments,
    call,
    operator,
    tensors,
    torch,
)

from openaclnn.reference.evaluation import REFERENCES
from openaclnn.rows.gradients import (
    differentiable,
    gradient_dtypes,
)

# torch.func.jvp makes it, the first time.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")


# ---- refusals: an error, never a wrong number ----


@pytest.mark.parametrize("op", all_rows(lambda op: op.gradient and op.gradient.nonnegative))
def test_where_a_result_does_not_tell_the_input(op):
    (x,) = tensors(op, "FLOAT")
    for p in op.attributes:
        if p.name not in op.gradient.nonnegative:
            continue
        attributes = {**REFERENCES[op.kernel].attributes[0], p.python_name: -0.5}
        with pytest.raises(ValueError, match=f"^{op.python}: {p.python_name} must not be negative"):
            operator(op)(*arguments(op, [x.clone().requires_grad_() * 1], attributes))
        operator(op)(*arguments(op, [x.clone()], attributes))  # nothing is recorded


@pytest.mark.parametrize("op", all_rows(lambda op: op.gradient and op.gradient.only_if))
def test_where_a_flag_takes_the_gradient_away(op):
    p = next(p for p in op.attributes if p.name == op.gradient.only_if)
    attributes = {**REFERENCES[op.kernel].attributes[0], p.python_name: False}
    with pytest.raises(ValueError, match=f"^{op.python}: {p.python_name} must be True where"):
        record(op, tensors(op, "FLOAT"), attributes)


@pytest.mark.parametrize("op", WITH)
def test_dtypes_without_a_gradient(op):
    for dtype in set(op.dtypes) - set(gradient_dtypes(op)):
        with pytest.raises(ValueError, match=r"must have dtype .* where a gradient is recorded"):
            record(op, tensors(op, dtype))


@pytest.mark.parametrize("op", all_rows())
def test_second_derivatives_are_right_or_refused(op):
    """By inputs of a row that no gradient row covers and that are not constant."""
    having = {p.name for p in differentiable(op)} | set(op.gradient.zero if op.gradient else ())
    for p in op.input_tensors:
        if p.name in having or (op.name, p.name) == ("aclnnEluBackward", "selfOrResult"):
            continue
        for i in range(len(op.outputs)):
            _, outputs = record(op, tensors(op, "FLOAT"), only={p.name})
            sentence = f"there is no gradient by {p.python_name}"
            with pytest.raises(NotImplementedError, match=sentence):
                outputs[i].sum().backward()


def test_no_term_is_missing_from_a_second_derivative_of_group_norm():
    """The gradients of gamma and beta are no constants, though no row differentiates them."""
    x, beta = torch.randn(2, 4, 5), torch.zeros(4)
    gamma = torch.ones(4, requires_grad=True)
    y = torch.ops.openaclnn.group_norm_swish(x, gamma, beta, 2)[0]
    (g,) = torch.autograd.grad(y.square().sum(), gamma, create_graph=True)
    with pytest.raises(NotImplementedError, match=r"^group_norm_swish_grad: there is no gradient"):
        (g.square().sum() + gamma.sum()).backward()


@pytest.mark.parametrize("op", all_rows(lambda op: op.shapes == "named"))
def test_tangents_that_nothing_maps_are_refused(op):
    inputs = tensors(op, "FLOAT")
    with pytest.raises(NotImplementedError, match="there is no forward-mode derivative"):
        torch.func.jvp(
            lambda x: operator(op)(*arguments(op, [x, *inputs[1:]]))[0], (inputs[0],), (inputs[0],)
        )


@pytest.mark.parametrize("op", PLAIN)
def test_out_is_not_recorded(op):
    inputs = [x.requires_grad_() for x in tensors(op, "FLOAT")]
    with torch.no_grad():
        results = call(op, inputs)
    names = [a.name for a in operator(op, "out")._schema.arguments if a.kwarg_only]
    outs = dict(zip(names, results, strict=True))
    with pytest.raises(ValueError, match="a call with out= must not require a gradient"):
        operator(op, "out")(*arguments(op, inputs), **outs)
    with torch.no_grad():
        operator(op, "out")(*arguments(op, inputs), **outs)
