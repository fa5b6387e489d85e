# SPDX-License-Identifier: Apache-2.0
"""The rules in Python refuse what phase 1 refuses, with its sentence."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.support import RULES, SEED, all_rows, arguments, refusal, results

import openaclnn
from openaclnn.reference.evaluation import REFERENCES, input_shapes, refused, sample
from openaclnn.reference.formulas_group_norm import MAX_GROUP_CHANNELS
from openaclnn.rows.calling import sentence
from openaclnn.rows.table import OPS


def known_of(op, named):
    shapes = {p.name: named[p.name].shape for p in op.inputs_}
    return op.known_sizes(shapes, {p.python_name: named[p.name] for p in op.attributes})


def broken():
    """Rows, and attributes that break a rule of them."""
    of_groups = (
        *({"dataFormatOptional": text} for text in ("NHWC", "", "nchw", "a" * 40)),
        *({"swishScale": scale} for scale in (math.inf, -math.inf, math.nan)),
        {"dataFormatOptional": "NHWC", "swishScale": math.inf, "numGroups": 0},
    )
    for op in OPS:
        given = [RULES[name][0] for name in op.rules]
        for i, named in enumerate([*given, *(of_groups if op.family == "group_norm" else ())]):
            yield pytest.param(op, named, id=f"{op.python}-{i}")


BROKEN = list(broken())


@pytest.mark.parametrize(("op", "changed"), BROKEN)
def test_the_sentence_is_that_of_the_library(op, changed):
    named = arguments(op) | changed
    assert refused(op, known_of(op, arguments(op))) is None
    p, must = refused(op, known_of(op, named))
    status, text = refusal(op, named)
    assert status == 161002
    assert f"{op.python}: {p.python_name} must {must}" == sentence(op, text)


@pytest.mark.parametrize("op", all_rows(lambda op: op.family == "group_norm"))
@pytest.mark.parametrize(
    ("shape", "groups"),
    [((0, 12, 5), 4), ((2, 0, 5), 0), ((2, 12, 0), 5), ((1, MAX_GROUP_CHANNELS + 1), 1)],
)
def test_shapes(op, shape, groups):
    named = arguments(op) | {"numGroups": groups}
    attributes = {p.python_name: named[p.name] for p in op.attributes}
    shapes = input_shapes(op, shape, attributes)
    named |= {p.name: np.ones(s, np.float32) for p, s in zip(op.inputs_, shapes, strict=True)}
    made = op.made_shapes({p.name: named[p.name].shape for p in op.inputs_}, attributes, None)
    named |= {p.name: np.ones(s, np.float32) for p, s in zip(op.outputs, made, strict=True)}
    p, must = refused(op, known_of(op, named))
    assert f"{op.python}: {p.python_name} must {must}" == sentence(op, refusal(op, named)[1])


@pytest.mark.parametrize("op", all_rows())
def test_every_attribute_set_of_the_references_is_accepted(op):
    reference = REFERENCES[op.kernel]
    for attributes in reference.attributes:
        inputs = sample(op, reference.example, "FLOAT", SEED, attributes)
        shapes = {p.name: x.shape for p, x in zip(op.inputs_, inputs, strict=True)}
        assert refused(op, op.known_sizes(shapes, attributes)) is None


@pytest.mark.parametrize(("op", "changed"), BROKEN)
def test_compare_judges_no_call_that_is_refused(op, changed):
    attributes = REFERENCES[op.kernel].attributes[0]
    inputs = sample(op, REFERENCES[op.kernel].example, "FLOAT", SEED, attributes)
    by_name = {p.python_name: x for p, x in zip(op.inputs_, inputs, strict=True)}
    got = results(op, inputs, attributes)
    mine = got[0] if len(got) == 1 else tuple(got)
    assert openaclnn.compare(mine, op.python, **by_name, **attributes)
    names = {p.name: p.python_name for p in op.attributes}
    attributes = attributes | {names[name]: value for name, value in changed.items()}
    with pytest.raises(ValueError, match=rf"^({'|'.join(names.values())}) must ") as caught:
        openaclnn.compare(mine, op.python, **by_name, **attributes)
    assert not isinstance(caught.value, openaclnn.AclnnError)
