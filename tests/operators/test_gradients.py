# SPDX-License-Identifier: Apache-2.0
"""The gradients that rows name: complete, and the derivatives of their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.support import SEED, all_rows, gradient_call, text

from openaclnn.reference.evaluation import REFERENCES, input_shapes
from openaclnn.rows.gradients import BY_NAME, differentiable, gradient_dtypes, gradient_row, sources
from openaclnn.rows.schema import Op
from openaclnn.rows.table import OPS

# What a forward row may have and its gradient row lack, as in CANN.
LACKING_PRODUCTS = {"aclnnHardshrink": {"310P"}}
LACKING_DTYPES = {"aclnnElu": {"DOUBLE"}, "aclnnInplaceElu": {"DOUBLE"}}
# Second derivatives that no row computes: the gradient of these refuses those of these inputs.
LACKING_INPUTS = {"aclnnEluBackward": {"selfOrResult"}, "aclnnLogitGrad": {"x"}}

WITH = all_rows(lambda op: op.gradient is not None)


@pytest.mark.parametrize("op", all_rows(lambda op: op.gradient is None))
def test_a_row_whose_gradient_is_a_row_names_it(op: Op):
    plain = op.name.replace("Inplace", "")
    assert not {plain + "Backward", plain + "Grad"} & set(BY_NAME)


@pytest.mark.parametrize("op", WITH)
def test_every_parameter_of_a_gradient_is_supplied(op: Op):
    row = gradient_row(op)
    named = {p.name: p for p in op.parameters}
    inputs = {p.name for p in op.input_tensors}
    outputs = {p.name for p in op.outputs}
    assert set(op.gradient.given) <= {p.name for p in row.parameters}
    found = sources(op)
    assert [s.parameter for s in found] == list(row.parameters)
    for s in found:
        what = f"{op.name}: {row.name}: {s.parameter.name} takes {s.kind} {s.name!r}"
        if s.kind == "incoming":
            assert s.parameter.kind == "tensor", what
            assert s.name in outputs, what
        elif s.kind == "value":
            assert s.name in named, what
            assert named[s.name].kind == s.parameter.kind, what
        elif s.kind == "made":
            assert s.name in inputs, what
        else:
            assert s.parameter.kind == "bool", what
            assert s.kind != "wanted" or s.name in inputs, what
        if s.parameter.kind == "tensor":
            assert str(s.parameter.form) == str(named[s.name].form), f"{what} of another shape"
    made = [s.name for s in found if s.kind == "made"]
    assert len(set(made)) == len(made)
    assert sum(s.kind == "incoming" for s in found) == 1
    lacking = inputs - set(made) - set(op.gradient.zero)
    assert lacking == LACKING_INPUTS.get(op.name, set())
    assert not set(made) & set(op.gradient.zero)
    assert [p.name for p in differentiable(op)] == [n for n in named if n in made]


@pytest.mark.parametrize("op", WITH)
def test_where_a_gradient_is_supported(op: Op):
    row = gradient_row(op)
    assert set(op.products) - set(row.products) <= LACKING_PRODUCTS.get(op.name, set())
    assert set(op.dtypes) - set(gradient_dtypes(op)) <= LACKING_DTYPES.get(op.name, set())
    flags = {p.name for p in op.attributes if p.kind == "bool"}
    numbers = {p.name for p in op.attributes if p.kind in ("scalar", "double")}
    assert op.gradient.only_if is None or op.gradient.only_if in flags
    assert set(op.gradient.nonnegative) <= numbers


# ---- finite differences of the reference formulas ----


def with_gradient(op: Op, attributes) -> bool:
    named = {p.name: attributes[p.python_name] for p in op.attributes}
    flag = op.gradient.only_if
    return (flag is None or named[flag]) and all(named[n] >= 0 for n in op.gradient.nonnegative)


CASES = [
    pytest.param(op, attributes, id=f"{op.name}-{text(attributes)}")
    for op in OPS
    if op.gradient is not None
    for attributes in REFERENCES[op.kernel].attributes
    if with_gradient(op, attributes)
]


def evaluate(op: Op, inputs, attributes):
    with np.errstate(all="ignore"):
        found = REFERENCES[op.kernel].formula(*inputs, **attributes)
    return found if isinstance(found, tuple) else (found,)


def draw(op: Op, attributes, rng):
    """Ordinary inputs, not close to where a formula switches."""
    reference = REFERENCES[op.kernel]
    points = [0.0, 1.0, *reference.special(attributes).values()]
    made = []
    shapes = input_shapes(op, reference.example, attributes)
    for domain, shape in zip(reference.domain, shapes, strict=True):
        x = np.clip(domain(rng, math.prod(shape)), -30, 30)
        for point in points if op.pointwise else ():
            for sign in (-1, 1):
                near = np.abs(x - sign * point) < 1e-3
                x = np.where(near, x + np.copysign(4e-3, x), x)
        made.append(x.reshape(shape).astype(np.longdouble))
    return made


def gradient(op: Op, inputs, attributes, incoming):
    """The gradients that the formula of the gradient row returns, by input."""
    row = BY_NAME[op.gradient.row]
    outputs = evaluate(op, inputs, attributes)
    tensors, named = gradient_call(op, inputs, outputs, incoming, attributes)
    found = evaluate(row, tensors, named)
    made = [s.name for s in sources(op) if s.kind == "made"]
    return dict(zip(made, found, strict=True))


def beyond(attributes) -> bool:
    """Where a function has one value or none, there is nothing to compare."""
    numbers = [v for v in attributes.values() if isinstance(v, float)]
    return not all(map(math.isfinite, numbers)) or attributes.get("eps", 0) >= 1


@pytest.mark.parametrize(("op", "attributes"), CASES)
def test_gradients_are_the_derivatives(op: Op, attributes):
    """Central differences in long double: of each element or, where the row is not pointwise, along
    random directions."""
    rng = np.random.default_rng(SEED)
    step = np.longdouble(1e-6)
    compared = 0
    for _ in range(5):
        inputs = draw(op, attributes, rng)
        incoming = rng.normal(size=inputs[0].shape)
        position = next(
            i for i, p in enumerate(op.outputs) for s in sources(op) if s.name == p.name
        )
        found = gradient(op, inputs, attributes, incoming)
        for zero in op.gradient.zero:
            found[zero] = np.zeros_like(inputs[0])
        for i, p in enumerate(op.input_tensors):
            if p.name not in found:
                continue
            direction = np.ones(()) if op.pointwise else rng.normal(size=inputs[i].shape)
            ends = []
            for sign in (1, -1):
                moved = list(inputs)
                moved[i] = inputs[i] + sign * step * direction
                ends.append(evaluate(op, moved, attributes)[position] * incoming)
            with np.errstate(all="ignore"):
                expected = (ends[0] - ends[1]) / (2 * step)
                actual = found[p.name] * direction
            if not op.pointwise:
                expected, actual = expected.sum(), actual.sum()
            usable = np.isfinite(expected)
            compared += np.count_nonzero(usable)
            # the second term: what cancels in the difference of two long doubles
            size = max(abs(ends[0][np.isfinite(ends[0])]).max(initial=0), 1e-12)
            allowed = 1e-6 * np.abs(expected) + 1e-12 * size
            with np.errstate(all="ignore"):
                wrong = usable & ~(np.abs(actual - expected) <= allowed)
            assert not np.any(wrong), (
                f"{op.name} by {p.name}, seed {SEED}: {actual[wrong][:3]} for {expected[wrong][:3]}"
            )
    assert compared or beyond(attributes), (
        f"{op.name} with {attributes} has no finite difference to compare; leave the set out"
    )
