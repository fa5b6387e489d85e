# SPDX-License-Identifier: Apache-2.0
"""The wrong formulas that the references know: each is named, and wrong in one way."""

from __future__ import annotations

import zlib
from functools import partial

import numpy as np
import pytest
from tests.verify.spoiled import found, of_formula

from openaclnn.reference.evaluation import REFERENCES, absolute_terms, evaluate, sample
from openaclnn.rows.catalogue import find_operator
from openaclnn.verify.finding import Rank

KNOWN = [(op, text) for op, r in REFERENCES.items() for text in r.mistakes]


@pytest.mark.parametrize(("op", "text"), KNOWN)
def test_mistakes_that_the_references_know(op, text):
    spoil = of_formula(REFERENCES[op].mistakes[text])
    dtype = ("FLOAT", "FLOAT16")[zlib.crc32(text.encode()) % 2]
    if "were rounded to" in text:  # the dtype in which that is seen
        dtype = text.removesuffix(" first").split()[-1]
    first, *others = found(op, spoil, dtype, every=11)
    assert f"as if {text}" in first.cause
    assert all(x.rank == Rank.REST and len(x.results) <= 2 for x in others)


# Of those that are one formula with another part.
PLAIN = {
    op: formulas.pop() for op, r in REFERENCES.items()
    if len(formulas := {m.func for m in r.mistakes.values() if isinstance(m, partial)}) == 1
}  # fmt: skip


@pytest.mark.parametrize("op", PLAIN)
def test_without_a_mistake_their_formulas_are_right(op):
    """Or they would be wrong in two ways."""
    row = find_operator(op)
    for attributes in REFERENCES[op].attributes:
        if not attributes.get("eps", 0) < 1:
            continue  # logit_grad has rules for these, which are no part of its mistakes
        inputs = sample(row, REFERENCES[op].example, "FLOAT", 1, attributes)
        made = evaluate(row, inputs, attributes, formula=PLAIN[op])
        exact = evaluate(row, inputs, attributes)
        terms = absolute_terms(row, inputs, attributes) or exact
        for y, due, size in zip(made, exact, terms, strict=True):
            near = np.abs(y - due) <= 1e-9 * np.abs(size)
            assert np.all(near | (y == due) | (np.isnan(y) & np.isnan(due)))
