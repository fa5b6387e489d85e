# SPDX-License-Identifier: Apache-2.0
"""Wrong results that are made in this process, and the findings of verify."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from tests.verify.verify_page_support import Mine

from openaclnn.reference.evaluation import evaluate, rounded
from openaclnn.reference.standards import Standard
from openaclnn.rows.catalogue import find_operator
from openaclnn.rows.table import PRODUCTS
from openaclnn.verify.findings import findings
from openaclnn.verify.generate import generate
from openaclnn.verify.provider import Outcome
from openaclnn.verify.runner import Runner

SMALL = 1 << 12  # elements
PRODUCT = next(p for p in PRODUCTS if p.key == "A2")


def found(op, spoil, *dtypes, every=3):
    """`every`: one case of so many."""
    cases = [case for case in generate([find_operator(op)], dtypes or ["FLOAT"], PRODUCT, 1)
             if math.prod(case.shapes[0]) <= SMALL]  # fmt: skip
    cases = cases[::every]
    runner = Runner([Mine("mine", spoil)], Standard())
    return findings(runner.run(cases, lambda case, done: None))


def with_others(change, inputs_of=lambda inputs: inputs):
    """The formula, rounded once, with other attributes or inputs."""

    def spoil(case, inputs, made):
        others = {**case.attributes, **change(case.attributes)}
        return of_formula(None)(replace(case, attributes=others), inputs_of(inputs), made)

    return spoil


def of_formula(formula):
    def spoil(case, inputs, made):
        exact = evaluate(case.op, inputs, case.attributes, formula=formula)
        if case.op.pointwise:  # a mistake may not use all inputs
            exact = [np.broadcast_to(x, made.shape) for x in exact]
        pairs = zip(exact, case.output_dtypes, strict=True)
        return Outcome(tuple(rounded(x, dtype) for x, dtype in pairs))

    return spoil


def times(factor):
    def spoil(case, inputs, made):
        (exact,) = evaluate(case.op, inputs, case.attributes)
        return Outcome((rounded(exact * factor, case.dtype),))

    return spoil


def where(condition, value):
    """That value where the condition on the first input and its positions holds."""

    def spoil(case, inputs, made):
        x = np.broadcast_to(inputs[0], made.shape)
        wrong = condition(x, np.arange(made.size).reshape(made.shape))
        return Outcome((np.where(wrong, np.array(value, made.dtype), made),))

    return spoil
