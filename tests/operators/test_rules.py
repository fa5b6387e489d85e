# SPDX-License-Identifier: Apache-2.0
"""Tools of the references refuse what phase 1 refuses, with its sentence."""

from __future__ import annotations

import math
import re

import pytest
from tests.support import RULES, SEED, all_rows, arguments, refusal, results

import openaclnn
from openaclnn import _core
from openaclnn.reference.evaluation import REFERENCES, refused, sample
from openaclnn.rows.table import OPS


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
    attributes = {p.python_name: named[p.name] for p in op.attributes}
    status, text = refusal(op, named)
    assert status == 161002
    shapes = [named[p.name].shape for p in op.input_tensors]
    assert refused(op, shapes, attributes) == _core.python_sentence(OPS.index(op), text)


@pytest.mark.parametrize("op", all_rows())
def test_every_attribute_set_of_the_references_is_accepted(op):
    reference = REFERENCES[op.kernel]
    for attributes in reference.attributes:
        inputs = sample(op, reference.example, "FLOAT", SEED, attributes)
        assert refused(op, [x.shape for x in inputs], attributes) is None


@pytest.mark.parametrize(("op", "changed"), BROKEN)
def test_compare_judges_no_call_that_is_refused(op, changed):
    attributes = REFERENCES[op.kernel].attributes[0]
    inputs = sample(op, REFERENCES[op.kernel].example, "FLOAT", SEED, attributes)
    by_name = {p.python_name: x for p, x in zip(op.input_tensors, inputs, strict=True)}
    got = results(op, inputs, attributes)
    mine = got[0] if len(got) == 1 else tuple(got)
    assert openaclnn.compare(mine, op.python, **by_name, **attributes)
    names = {p.name: p.python_name for p in op.attributes}
    attributes = attributes | {names[name]: value for name, value in changed.items()}
    sentence = refused(op, [x.shape for x in inputs], attributes)
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$") as caught:
        openaclnn.compare(mine, op.python, **by_name, **attributes)
    assert not isinstance(caught.value, openaclnn.AclnnError)
