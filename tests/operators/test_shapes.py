# SPDX-License-Identifier: Apache-2.0
"""The library checks, infers and prints the shapes that rows give."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support import SEED, all_rows, arguments, refusal, results

from openaclnn.reference.evaluation import REFERENCES, sample
from openaclnn.rows.catalogue import shapes
from openaclnn.rows.schema import Op
from openaclnn.rows.shapes import ANY_SHAPE, BROADCAST, Form, bind, parse, shape_of

NAMED = all_rows(lambda op: op.shapes == "named")


def test_the_notation():
    assert parse(None) == parse("*") == ANY_SHAPE
    assert parse("...") == BROADCAST
    assert parse("N,C,*") == Form(("N", "C"), rest=True)
    assert parse("N, groups") == Form(("N", "groups"))
    assert parse("(N,groups)") == Form(("N", "groups"), flat=True)
    for wrong in ("", "N,,C", "N C", "(N,*)", "*,N", "N-1"):
        with pytest.raises(ValueError, match="not a shape"):
            parse(wrong)


def test_sizes_are_bound_by_the_first_tensor_that_has_them():
    forms = {"x": parse("N,C,*"), "gamma": parse("C"), "mean": parse("(N,groups)")}
    known = bind(forms, {"x": (2, 12, 5, 7), "gamma": (13,), "mean": (8,)})
    assert known == {"N": 2, "C": 12, "*": (5, 7)}
    assert shape_of(forms["mean"], known | {"groups": 4}) == (2, 4)
    assert shape_of(forms["x"], known) == (2, 12, 5, 7)


@pytest.mark.parametrize("op", all_rows(lambda op: op.shapes != "broadcast" and not op.inplace))
def test_results_have_the_shape_that_the_row_gives(op):
    reference = REFERENCES[op.kernel]
    for attributes in reference.attributes:
        inputs = sample(op, reference.example, op.dtypes[0], SEED, attributes)
        shapes = {p.name: x.shape for p, x in zip(op.input_tensors, inputs, strict=True)}
        known = op.known_sizes(shapes, attributes)
        found = results(op, inputs, attributes)
        wanted = [shape_of(p.form, known) for p in op.outputs]
        assert [y.shape for y in found] == wanted


def sized(op: Op) -> list[tuple[str, int]]:
    """Each dimension with a name that does not define it: tensor and position."""
    seen: set[str] = {p.name for p in op.attributes}
    made = []
    for p in op.tensors:
        made += [(p.name, d) for d, size in enumerate(p.form.sizes) if size in seen]
        seen |= set(p.form.sizes)
    return made


@pytest.mark.parametrize("op", NAMED)
def test_every_size_that_differs_is_refused(op):
    """One more in each dimension of each tensor that others have given."""
    assert sized(op)
    for name, d in sized(op):
        named = arguments(op)
        shape = list(named[name].shape)
        shape[d] += 1
        named[name] = np.ones(shape, named[name].dtype)
        code, sentence = refusal(op, named)
        assert code == 161002
        assert sentence.startswith(f"{op.name}: {name} must have ")
        assert sentence.endswith(f"got {shape}") or sentence.endswith(f"got shape {shape}")


@pytest.mark.parametrize("op", NAMED)
def test_the_page_of_an_operator_names_all_sizes(op):
    text = shapes(op)
    for name, counted in op.sizes.items():
        assert f"{name} {counted}" in text
    for p in op.tensors:
        assert p.name in text
